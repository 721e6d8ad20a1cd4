"""``bsub -f``: shell commands that copy files between the host of submission and the first host, as the job's user.

Rule: pure. A path that both hosts see is copied here; between hosts that do not share it the site's LSF_REMOTE_COPY_CMD
does it (``COMMAND host:from to``). A copy before the job that fails ends the job, as pre-execution does with code 99.
"""

from __future__ import annotations

import os

from agent.launch.command import quote
from agent.launch.site import Site
from proto import agent_pb2 as pb

ABORT = 99


def before(text: pb.JobText, site: Site) -> str:
    """What runs before the job, "" for nothing."""
    lines = [_to_here(text, site, *_paths(text, spec)) for spec in text.copies if _operator(spec) in (">", "><", "<>")]
    return "\n".join(f"{line} || exit {ABORT}" for line in lines)


def after(text: pb.JobText, site: Site) -> str:
    """What runs after the job."""
    lines = []
    for spec in text.copies:
        if (operator := _operator(spec)) in ("<", "><"):
            lines.append(_from_here(text, site, *_paths(text, spec)))
        elif operator in ("<<", "<>"):
            lines.append(_append(text, site, *_paths(text, spec)))
    return "\n".join(lines)


def _operator(spec: str) -> str:
    return spec.split()[1]


def _paths(text: pb.JobText, spec: str) -> tuple[str, str]:
    """(the file of the host of submission, the file here); relative ones are of the job's folder."""
    words = spec.split()
    local, remote = words[0], words[2] if len(words) > 2 else words[0]
    return os.path.join(text.cwd, local), os.path.join(text.cwd, remote)


def _remote(text: pb.JobText, site: Site) -> str:
    return "" if text.from_host == site.host else site.conf.get("LSF_REMOTE_COPY_CMD", "")


def _to_here(text: pb.JobText, site: Site, local: str, remote: str) -> str:
    same, copy = f"[ {quote(local)} -ef {quote(remote)} ]", f"cp -- {quote(local)} {quote(remote)}"
    if far := _remote(text, site):
        return f"{{ {same} || {far} {quote(text.from_host + ':' + local)} {quote(remote)}; }}"
    return f"{{ {same} || {copy}; }}"


def _from_here(text: pb.JobText, site: Site, local: str, remote: str) -> str:
    if far := _remote(text, site):
        return f"{far} {quote(remote)} {quote(text.from_host + ':' + local)}"
    return f"[ {quote(local)} -ef {quote(remote)} ] || cp -- {quote(remote)} {quote(local)}"


def _append(text: pb.JobText, site: Site, local: str, remote: str) -> str:
    if far := _remote(text, site):
        there, part = quote(text.from_host + ":" + local), f"{quote(remote)}.$$"
        return f"{far} {there} {part} && cat -- {quote(remote)} >> {part} && {far} {part} {there}; rm -f -- {part}"
    return f"[ {quote(local)} -ef {quote(remote)} ] || cat -- {quote(remote)} >> {quote(local)}"
