"""What lava itself runs around a job on its first host: the site's eexec, and the copies of ``-f``.

Rule: pure. What an esub wrote to its standard output comes to eexec as standard input; how eexec ends is its own affair.
"""

from __future__ import annotations

from agent.launch import copies
from agent.launch.command import quote
from agent.launch.site import Site
from proto import agent_pb2 as pb

DATA = "LAVA_EEXEC_DATA"


def before(text: pb.JobText, site: Site) -> str:
    """What runs last before the job, "" for nothing."""
    return _joined(copies.before(text, site), _eexec(site, "START"))


def after(text: pb.JobText, site: Site) -> str:
    """What runs first after the job."""
    return _joined(_eexec(site, "END"), copies.after(text, site))


def _eexec(site: Site, when: str) -> str:
    if not site.eexec:
        return ""
    return f'printf %s "${DATA}" | LS_EXEC_T={when} {quote(site.eexec)} || :'


def _joined(*commands: str) -> str:
    return "\n".join(command for command in commands if command)
