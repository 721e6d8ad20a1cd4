"""``lava run [bsub options] FILE``: submit a job file, of lava's own layout or a Kubernetes manifest of a training job.

``--dry-run`` prints what it means instead: the bsub line where there is one, else the file in lava's own layout.
"""

from __future__ import annotations

import os
import shlex
from shutil import which
from typing import TYPE_CHECKING

from cli.client.client import Client, read_conf
from cli.client.context import Context, Fail, start
from cli.client.options import read_command_options, show_help
from cli.jobs import manifests, own
from cli.jobs.local import use_images, use_secrets
from cli.jobs.model import JobFile
from cli.submit.job_file import read_text
from cli.submit.local_inputs import add_local_inputs
from cli.submit.script import Work
from cli.submit.submission import home_of, not_done, passed_environment, send, site_of, submission, wait_for
from cli.submit.submit_options import bsub_table, last_rival, merged, with_defaults
from cli.submit.yaml_text import read_yaml
from proto.options import SECRETS_FOLDER

if TYPE_CHECKING:
    from cli.client.frames import Json
    from cli.client.options import Options, Table

_NOT_HERE = ("n", "pack", "json", "yaml", "jsdl", "jsdl_strict", "Zs", "Z", "I", "Ip", "Is", "IS", "ISp", "ISs", "IX")


def read_job(context: Context, name: str) -> JobFile:
    """The job file."""
    return job_of(read_yaml(name, read_text(context, name)), name)


def job_of(documents: list[Json], name: str) -> JobFile:
    """The one job among the documents of a file; a manifest's other documents are named as ignored."""
    kinds = [one.get("kind") if isinstance(one, dict) else None for one in documents]
    if not any(kinds):
        if len(documents) != 1:
            raise Fail(f"{name}: a job file is one document")
        return own.read_own(documents[0], name)
    jobs = [one for one, kind in zip(documents, kinds, strict=True) if kind in manifests.KINDS or kind == "Job"]
    if not jobs:
        raise Fail(f"{name}: kind {str(kinds[0])[:64]}: it is one of {', '.join(manifests.KINDS)} and Volcano's Job")
    if len(jobs) > 1:
        raise Fail(f"{name}: {len(jobs)} jobs: give each a file of its own")
    job = manifests.read_manifest(jobs[0], name)
    job.ignore(*(str(kind)[:64] for one, kind in zip(documents, kinds, strict=True) if one is not jobs[0]))
    return job


def bsub_line(job: JobFile) -> str:
    """The bsub command that says the same; only a job without roles has one."""
    words = ["bsub"]
    for name, value in job.options.items():
        for one in value if isinstance(value, list) else [value]:
            words += [f"-{name}"] if one is True else [f"-{name}", str(one)]
    if job.env:
        words += ["-env", ", ".join(["all", *(f"{name}={_quoted(value)}" for name, value in job.env.items())])]
    return f"{shlex.join(words)} {job.command}"


def _quoted(value: str) -> str:
    if "'" not in value:
        return f"'{value}'"
    if '"' not in value:
        return f'"{value}"'
    raise Fail("a variable with both kinds of quotes has no bsub line")


def shown(job: JobFile) -> str:
    """What a job file means."""
    if not job.roles:
        return bsub_line(job) + "\n"
    import yaml

    text: str = yaml.safe_dump(own.show(job), sort_keys=False, default_flow_style=False, width=120, allow_unicode=True)
    return text


def run(context: Context) -> int:
    """Submit; 0, or with -K the job's exit status."""
    table = bsub_table("lava run")
    try:
        given, names, dry = _words(context, table)
        helped = show_help(context, table, given)
        if helped is not None:
            return helped
        if len(names) != 1:
            raise Fail("lava run: give one job file")
        job = read_job(context, names[0])
        job.options = merged(job.options, last_rival(given))
        use_images(job, lambda name: which(name, path=context.environ.get("PATH")) is not None)
        kept = os.path.join(home_of(context), SECRETS_FOLDER)
        use_secrets(job, lambda name: name.isidentifier() and os.path.exists(os.path.join(kept, name)))
        if job.ignored:
            context.err(f"lava run: {names[0]}: ignored here: {', '.join(job.ignored)}\n")
        if dry:
            context.out(shown(job))
            return 0
        return _submit(context, job)
    except Fail as fail:
        raise not_done(context, fail, "lava run", "Job not submitted.") from None


def _words(context: Context, table: Table) -> tuple[Options, list[str], bool]:
    words = [word for word in context.argv if word != "--dry-run"]
    given, rest = read_command_options(table, words)
    more, names = read_command_options(table, rest[1:]) if rest else ({}, [])
    given = {**given, **more}
    for name in _NOT_HERE:
        if name in given:
            raise Fail(f"lava run: -{name} cannot be given here")
    return given, [*rest[:1], *names], len(words) < len(context.argv)


def _submit(context: Context, job: JobFile) -> int:
    conf = read_conf(context)
    client = Client(context, conf)
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
    ok = send(context, client, frame)
    if site is not None:
        site.submitted(ok)
    return wait_for(context, client, int(ok["job"])) if "K" in options else 0


def main(argv: list[str] | None = None) -> int:
    return start(run, argv)
