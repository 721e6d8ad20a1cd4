"""``lava run [bsub options] FILE… | -``: submit job files, of lava's own layout or Kubernetes manifests of training jobs.

``--set name=value`` gives variables of the files their values.
``--dry-run`` prints what it means instead: the bsub line where there is one, else the file in lava's own layout.
``--dry-run=server`` also asks the master whether it would take them.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from shutil import which
from typing import TYPE_CHECKING, cast

from cli.client.client import Client, read_conf
from cli.client.context import Context, Fail, Refused, start
from cli.client.options import read_command_options, show_help
from cli.client.texts import one_line
from cli.jobs import manifests, own
from cli.jobs.elastic import make_resizable
from cli.jobs.local import use_images, use_priority_class, use_secrets, written_secrets
from cli.jobs.model import JobFile
from cli.jobs.variables import Variables
from cli.submit.bulk import submit_many
from cli.submit.job_file import read_text
from cli.submit.local_inputs import add_local_inputs
from cli.submit.prepare import Prepared
from cli.submit.script import Work
from cli.submit.submission import home_of, not_done, passed_environment, site_of, submission, tell, wait_for
from cli.submit.submit_options import bsub_table, last_rival, merged, refuse_left_out, with_defaults
from cli.submit.yaml_text import read_yaml
from proto.options import SECRETS_FOLDER

if TYPE_CHECKING:
    from cli.client.frames import Json
    from cli.client.options import Options, Table


def read_jobs(context: Context, names: list[str], variables: Variables) -> list[tuple[str, JobFile]]:
    """(file, job) of all files, one of each document; ``-`` is standard input.

    A runtime or template in one of the files is there for the jobs of all.
    """
    files = [(name, _documents(context, name, variables)) for name in names]
    named = manifests.named_of([one for _, documents in files for one in documents])
    return [(name, job) for name, documents in files for job in jobs_of(documents, name, named, alone=len(files) == 1)]


def _documents(context: Context, name: str, variables: Variables) -> list[Json]:
    return manifests.unfolded(read_yaml(name, read_text(context, name, stdin=name == "-"), variables.of_file(name)), name)


def jobs_of(documents: list[Json], name: str, named: Mapping[str, Json] | None = None, alone: bool = True) -> list[JobFile]:
    """The jobs among the documents of a file; a manifest's other documents are named as ignored.

    ``named``: what manifests may name (``manifests.named_of``), by itself what this file has. ``alone``: whether it is the only
    file, which has to have a job then.
    """
    if named is None:
        named = manifests.named_of(documents)
    kinds = [one.get("kind") if isinstance(one, dict) else None for one in documents]
    where = [name if len(documents) == 1 else f"{name}: document {at}" for at in range(1, len(documents) + 1)]
    jobs, others = [], []
    for one, kind, place in zip(documents, kinds, where, strict=True):
        if not kind:
            jobs.append(own.read_own(one, place))
        elif kind in manifests.KINDS:
            jobs += manifests.read_manifest(one, place, named)
        elif isinstance(kind, str) and kind in manifests.REFUSED:
            raise Fail(f"{place}: kind {kind}: {manifests.REFUSED[kind]}")
        elif kind not in manifests.NAMED:
            others.append(str(kind)[:64])
    if jobs:
        jobs[0].ignore(*others)
    elif others:
        raise Fail(f"{name}: kind {others[0]}: it is one of {manifests.KNOWN}")
    elif alone or not documents:
        raise Fail(f"{name}: there is no job in it")
    return jobs


def bsub_line(job: JobFile) -> str:
    """The bsub command that says the same; only a job without roles has one."""
    words = ["bsub"]
    for name, value in job.options.items():
        for one in value if isinstance(value, list) else [value]:
            words += [f"-{name}"] if one is True else [f"-{name}", str(one)]
    if job.env:
        words += ["-env", ", ".join(["all", *(f"{name}={_quoted(value)}" for name, value in job.env.items())])]
    return f"{shlex.join(words)} {job.command if _PLAIN.fullmatch(job.command) else shlex.quote(job.command)}"


_PLAIN = re.compile(r"[\w@%+:,./][\w@%+=:,./-]*( [\w@%+=:,./-]+)*", re.ASCII)
"""A command that a shell gives to bsub as it is; any other is one word, which bsub takes for the whole command."""


def _quoted(value: str) -> str:
    if "'" not in value:
        return f"'{value}'"
    if '"' not in value:
        return f'"{value}"'
    raise Fail("a variable with both kinds of quotes has no bsub line")


def shown(job: JobFile) -> str:
    """What a job file means."""
    if job.before:
        job = replace(job, options={**job.options, "w": condition(job.options, job, _quoted_name)})
    if not job.roles:
        return bsub_line(job) + "\n"
    import yaml

    text: str = yaml.safe_dump(own.show(job), sort_keys=False, default_flow_style=False, width=120, allow_unicode=True)
    return text


def condition(options: Mapping[str, object], job: JobFile, called: Callable[[JobFile], object]) -> str:
    """What a job waits for: its own condition, and those on jobs before it, which are ``called`` by number or by name."""
    words = [_phase(kind, one, called(one)) for kind, one in job.before]
    if own := options.get("w"):
        words.insert(0, f"({own})")
    return " && ".join(words)


def _phase(kind: str, job: JobFile, name: object) -> str:
    """The condition on one job before it. An array of which some elements are enough has ended well with these."""
    if job.enough and kind in ("done", "exit"):
        return f"numended({name},*) && numdone({name},{'>=' if kind == 'done' else '<'} {job.enough})"
    return f"{kind}({name})"


def _quoted_name(job: JobFile) -> str:
    return f'"{str(job.options.get("J", "")).partition("[")[0]}"'


def run(context: Context) -> int:
    """Submit all jobs of all files, once all of them could be read; 0, or with -K the status of the first that failed.

    A job that the master refuses is told with its file, and the others are submitted: 255 then.
    """
    table = bsub_table("lava run")
    try:
        given, names, dry, variables = _words(context, table)
        show_help(context, table, given)
        if not names:
            raise Fail("lava run: give a job file, or - for standard input")
        if names.count("-") > 1:
            raise Fail("lava run: standard input can be read once")
        jobs = _read_all(context, names, variables, given)
    except Fail as fail:
        raise not_done(context, fail, "lava run", "Job not submitted.") from None
    for name, job in jobs:
        if job.ignored:
            context.err(one_line(f"lava run: {name}: ignored here: {', '.join(job.ignored)}") + "\n")
        if secrets := written_secrets(job):
            told = f"lava run: {name}: stored as it stands: env {', '.join(secrets)}; lava secret keeps secrets apart"
            context.err(one_line(told) + "\n")
    if dry:
        context.out("---\n".join(shown(job) for _, job in jobs))
        return _check_all(context, jobs) if dry == "server" else 0
    return _submit_all(context, jobs)


def _read_all(context: Context, names: list[str], variables: Variables, given: Options) -> list[tuple[str, JobFile]]:
    """The jobs of all files, ready to be submitted. An error is one line, whatever control characters are in the files."""
    try:
        jobs = [(name, _complete(context, name, job, given)) for name, job in read_jobs(context, names, variables)]
        variables.refuse_unknown(names)
    except Fail as fail:
        fail.text = one_line(fail.text)
        raise
    return jobs


def _complete(context: Context, name: str, job: JobFile, given: Options) -> JobFile:
    """A job with the options of the command line, and with what depends on this host, its user and the site."""
    job.options = merged(job.options, last_rival(given))
    use_images(job, lambda program: which(program, path=context.environ.get("PATH")) is not None)
    kept = os.path.join(home_of(context), SECRETS_FOLDER)
    use_secrets(job, lambda secret: secret.isidentifier() and os.path.exists(os.path.join(kept, secret)))
    use_priority_class(job, lambda: read_conf(context).get("LAVA_PRIORITY_CLASSES", ""))
    make_resizable(job, name)
    return job


def _check_all(context: Context, jobs: list[tuple[str, JobFile]]) -> int:
    """Ask the master whether it would take each, but for what it says of jobs before it; 255 where it would not."""
    conf = read_conf(context)
    client = Client(context, conf)
    status = 0
    for name, job in jobs:
        try:
            ok = client.ask(_prepared(context, conf, job).frame | {"check": True})
        except Refused as refusal:
            told = not_done(context, refusal, "lava run", "Job would not be submitted.")
            context.err(f"{name}: {told.text.rstrip()}\n")
            status = told.status
        else:
            for notice in ok.get("notices") or ():
                context.err(f"{name}: {notice}\n")
    return status


def _submit_all(context: Context, jobs: list[tuple[str, JobFile]]) -> int:
    """Submit them, those first that others wait for. A job is not submitted where one before it was not."""
    conf = read_conf(context)
    client = Client(context, conf)
    numbers: dict[int, int] = {}
    sent: list[tuple[JobFile, int, bool]] = []
    status = 0
    for wave in _waves([(name, job, _prepared(context, conf, job)) for name, job in jobs]):
        able = [row for row in wave if all(id(one) in numbers for _, one in row[1].before)]
        for name, job, one in wave:
            if any(id(other) not in numbers for _, other in job.before):
                context.err(f"{name}: job {job.options.get('J', '')} is not submitted, as one before it was not\n")
                status = 255
            elif job.before:
                options = cast("dict[str, object]", one.frame["options"])
                one.frame["options"] = options | {"w": condition(options, job, lambda one: numbers[id(one)])}
        answers = submit_many(context, client, [one.frame for _, _, one in able])
        for (name, job, one), ok in zip(able, answers, strict=True):
            if ok is None:
                continue
            if isinstance(ok, Refused):
                told = not_done(context, ok, "lava run", "Job not submitted.")
                if len(jobs) == 1:
                    raise told
                context.err(f"{name}: {told.text.rstrip()}\n")
                status = told.status
                continue
            tell(context, ok, one.frame)
            if one.site is not None:
                one.site.submitted(ok)
            numbers[id(job)] = int(ok["job"])
            sent.append((job, int(ok["job"]), one.is_array))
    for job, number, is_array in sent:
        if "K" in job.options:
            status = wait_for(context, client, conf, number, is_array) or status
    return status


def _waves(jobs: list[tuple[str, JobFile, Prepared]]) -> Iterator[list[tuple[str, JobFile, Prepared]]]:
    """The jobs in as few lots as can be, those that others wait for in an earlier one."""
    while jobs:
        left = {id(job) for _, job, _ in jobs}
        yield [row for row in jobs if left.isdisjoint(id(one) for _, one in row[1].before)]
        jobs = [row for row in jobs if not left.isdisjoint(id(one) for _, one in row[1].before)]


def _words(context: Context, table: Table) -> tuple[Options, list[str], str, Variables]:
    """(options, files, who looks at them only: "", client or server, what --set says): options may stand anywhere."""
    left, settings, dry = [], [], ""
    words = iter(context.argv)
    for word in words:
        if word == "--set":
            settings.append(next(words, ""))
        elif word.partition("=")[0] == "--dry-run":
            dry = word.partition("=")[2] or "client"
            if dry not in ("client", "server"):
                raise Fail(f"--dry-run={dry[:40]}: it is one of client, server")
        else:
            left.append(word)
    given: Options = {}
    names: list[str] = []
    while left:
        more, rest = read_command_options(table, left)
        given.update(more)
        names += rest[:1]
        left = rest[1:]
    refuse_left_out("lava run", given)
    return given, names, dry, Variables(settings)


def _prepared(context: Context, conf: dict[str, str], job: JobFile) -> Prepared:
    options = with_defaults(context, job.options)
    env = passed_environment(context, options) | job.env
    work = Work(job.shown_command())
    site = site_of(context, conf, "bsub")
    if site is not None:
        site.check(work, options, env)
    add_local_inputs(context, options)
    frame = submission(context, work, options, env)
    if job.roles:
        frame["roles"] = [role.frame() for role in job.roles]
        frame["policy"] = job.policy.frame()
    return Prepared(frame, site, "")


def main(argv: list[str] | None = None) -> int:
    return start(run, argv)
