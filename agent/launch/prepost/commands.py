"""Shell commands that run before and after a job: pre- and post-execution, the site's eexec, and the copies of ``bsub -f``.

Rule: pure; the result is one command of /bin/sh for each side, so that the shepherd need not know where its pieces come from.
Those of the queue and of hosts run as the job's user with the others, or ``apart``, as another user (``sudoers``).
Copies run nearest to the job, then the job's own commands, the queue's, and outermost those of hosts.

A path of ``-f`` that both hosts share is copied on the first host; otherwise the site's LSF_REMOTE_COPY_CMD is called
(``COMMAND host:from to``).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

from agent.launch.command import quote
from agent.launch.site import Site
from agent.starter.part import generations
from agent.starter.part.task_start import ABORT, LATE
from proto import agent_pb2 as pb

DATA = "LAVA_EEXEC_DATA"
"""The variable that holds what the esubs wrote to their standard output."""
_SAID = '"/proc/self/fd/${LAVA_SAY:-2}"'
"""Where a command says why it fails: opened by its name, as a shell may take no number above 9 behind ``>&``."""
_TRY = f"""lava_try() {{
    lava_file=$(mktemp -p /dev/shm 2>/dev/null || mktemp 2>/dev/null)
    ( lava_copy ) >"${{lava_file:-/dev/null}}" 2>&1
    lava_code=$?
    lava_why=$(cat -- "${{lava_file:-/dev/null}}")
    rm -f -- "$lava_file"
    [ "$lava_code" = 0 ] || printf '%s%s\\n' "$1" "$lava_why" >> {_SAID}
    return "$lava_code"
}}"""
"""Runs ``lava_copy``. What it prints goes to a file: of a pipe the end would not come before that of all that it leaves behind,
as ssh does the connection that it shares (ControlPersist)."""


class Around(NamedTuple):
    """Commands before and after a part, each in its order."""

    before: tuple[str, ...]
    after: tuple[str, ...]


def of_user(text: pb.JobText, place: int, apart: bool) -> Around:
    """What runs as the job's user around its part on the host ``place``; ``apart``: what is not the job's own does not."""
    own = Around((text.pre_exec,), (text.post_exec,)) if place == 0 else Around((), ())
    if apart:
        return own
    others = of_site(text, place)
    return Around((*others.before, *own.before), (*own.after, *others.after))


def of_site(text: pb.JobText, place: int) -> Around:
    """What the queue and hosts run around a part: on the job's first host those of the queue nearest to the job."""
    before, after = tuple(text.host_pre_exec), tuple(text.host_post_exec)
    if place:
        return Around(before, after)
    return Around((*before, text.queue_pre_exec), (text.queue_post_exec, *after))


def pre_exec(
    commands: Sequence[str],
    checkpoint_dir: str = "",
    copies: str = "",
    checkpoint_of: str = "",
    seconds: int = 0,
    most: int | None = None,
) -> str | None:
    """One shell command for everything that runs before the job; it ends at the first failure. None: there is nothing to run.

    ``copies`` runs last. ``checkpoint_dir`` is made first, as a link to ``checkpoint_of`` if that is given.
    With ``most`` damaged generations there, and those above it (-1: none), are set aside. ``seconds``: time limit, 0: none.
    """
    given = [command for command in (*commands, copies) if command]
    parts = given if len(given) == 1 and not checkpoint_dir else [f"(\n{command}\n)" for command in given]
    if checkpoint_dir:
        folder = quote(checkpoint_dir)
        make = f"mkdir -p {folder}"
        if checkpoint_of:
            # a job that is restarted under another number goes on in the folder of the old one
            make = f"{{ [ -e {folder} ] || ln -s {quote(checkpoint_of)} {folder}; }} && [ -d {folder} ]"
        if most is not None:
            make += " && " + " ".join(map(quote, (sys.executable, "-I", "-S", generations.__file__, checkpoint_dir, str(most))))
        parts.insert(0, make)
    return _within(" && ".join(parts), seconds, LATE) or None


def post_exec(commands: Sequence[str], seconds: int = 0) -> str | None:
    """One shell command for everything that runs after the job, in this order; None: there is nothing to run.

    Every command runs, whether the others failed or not; the exit code is that of the last one that failed.
    ``seconds``: time limit, 0: none.
    """
    given = [command for command in commands if command]
    if len(given) < 2:
        return _within(given[0], seconds, 0) if given else None
    text = "\n".join([*(f"(\n{command}\n) || lava_failed=$?" for command in given), "exit ${lava_failed:-0}"])
    return _within(text, seconds, 0)


def _within(command: str, seconds: int, late: int) -> str:
    """The command with a time limit, at which its process group is killed; its exit code is then ``late``, if that is not 0."""
    if not command or not seconds:
        return command
    line = f"timeout -s KILL {seconds} /bin/sh -c {quote(command)}"
    if not late:
        return line
    say = f'echo "the pre-execution command was ended after {seconds} s (JOB_PREPROC_TIMEOUT)" >> {_SAID}'
    return f"{line}\nlava_code=$?\n[ $lava_code = 137 ] && {{ {say}; exit {late}; }}\nexit $lava_code"


def site_before(text: pb.JobText, site: Site) -> str:
    """lava's own shell command just before the job on its first host: copies of ``-f``, then eexec; "" if there is none."""
    return _joined(copies_before(text, site), _eexec(site, "START"))


def site_after(text: pb.JobText, site: Site) -> str:
    """lava's own shell command just after the job on its first host: eexec, then copies of ``-f``; "" if there is none."""
    return _joined(_eexec(site, "END"), copies_after(text, site))


def _eexec(site: Site, when: str) -> str:
    """The site's eexec with the output of the esubs on its standard input; its exit code is ignored."""
    if not site.eexec:
        return ""
    return f'printf %s "${DATA}" | LS_EXEC_T={when} {quote(site.eexec)} || :'


def _joined(*commands: str) -> str:
    return "\n".join(command for command in commands if command)


# -- bsub -f -------------------------------------------------------------------------------------------------------------


def copies_before(text: pb.JobText, site: Site) -> str:
    """The shell command that copies files to this host before the job, "" if there are none."""
    lines = []
    for spec in text.copies:
        if _operator(spec) in (">", "><", "<>"):
            lines.append(_or_say(spec, _copy_in(text, site, *_paths(text, spec)), f"exit {ABORT}"))
    return "\n".join([_TRY, *lines]) if lines else ""


def _or_say(spec: str, copy: str, otherwise: str) -> str:
    """The command ``copy``; where it fails, why is said, and ``otherwise`` follows. Behind ``_TRY``."""
    return f"lava_copy() {{ {copy}; }}\nlava_try {quote(f'-f {spec}: not copied: ')} || {otherwise}"


def copies_after(text: pb.JobText, site: Site) -> str:
    """The shell command that copies files back after the job, "" if there are none. It fails where one copy does."""
    copies = []
    for spec in text.copies:
        if (operator := _operator(spec)) in ("<", "><"):
            copies.append((spec, _copy_out(text, site, *_paths(text, spec))))
        elif operator in ("<<", "<>"):
            copies.append((spec, _append_out(text, site, *_paths(text, spec))))
    if not copies:
        return ""
    lines = [_or_say(spec, copy, "lava_copied=no") for spec, copy in copies]
    return "\n".join([_TRY, "lava_copied=", *lines, '[ -z "$lava_copied" ]'])


def _operator(spec: str) -> str:
    return spec.split()[1]


def _paths(text: pb.JobText, spec: str) -> tuple[str, str]:
    """(path on the submission host, path on this host); relative ones start where bsub was called, and where the job runs.

    The command is run in the job's working folder, whose name may have a pattern (``-cwd run.%J``).
    """
    words = spec.split()
    local, remote = words[0], words[2] if len(words) > 2 else words[0]
    return os.path.join(text.submit_cwd or text.cwd, local), os.path.join(".", remote)


def _remote(text: pb.JobText, site: Site) -> str:
    return "" if text.from_host == site.host else site.conf.get("LSF_REMOTE_COPY_CMD", "")


def _copy_in(text: pb.JobText, site: Site, local: str, remote: str) -> str:
    same, copy = f"[ {quote(local)} -ef {quote(remote)} ]", f"cp -- {quote(local)} {quote(remote)}"
    if remote_copy := _remote(text, site):
        return f"{same} || {remote_copy} {quote(text.from_host + ':' + local)} {quote(remote)}"
    return f"{same} || {copy}"


def _copy_out(text: pb.JobText, site: Site, local: str, remote: str) -> str:
    if remote_copy := _remote(text, site):
        return f"{remote_copy} {quote(remote)} {quote(text.from_host + ':' + local)}"
    return f"[ {quote(local)} -ef {quote(remote)} ] || cp -- {quote(remote)} {quote(local)}"


def _append_out(text: pb.JobText, site: Site, local: str, remote: str) -> str:
    if remote_copy := _remote(text, site):
        there, part = quote(text.from_host + ":" + local), f"{quote(remote)}.$$"
        steps = f"{remote_copy} {there} {part} && cat -- {quote(remote)} >> {part} && {remote_copy} {part} {there}"
        return f"{steps}; lava_code=$?; rm -f -- {part}; exit $lava_code"
    return f"[ {quote(local)} -ef {quote(remote)} ] || cat -- {quote(remote)} >> {quote(local)}"
