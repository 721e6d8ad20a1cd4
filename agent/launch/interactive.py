"""What an interactive job has that a batch job has not: a door for its user, and the streams that come and go through it.

Rule: pure. A stream for which the user named a file goes to that file, as ``bsub -I -o`` says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent.launch.site import Site
from proto import agent_pb2 as pb

if TYPE_CHECKING:
    from agent.launch.build import Places


def add(fields: dict[str, Any], start: pb.Start, where: Places, text: pb.JobText, site: Site) -> None:
    """Add the fields to a part; only the first host's has a door."""
    fields["env"]["LSB_INTERACTIVE"] = "Y"
    if start.place:
        return
    fields["interactive"] = {
        "shell": text.interactive == "Is",
        "tee": text.tee,
        "stdin": not text.input,
        "stdout": not where.output,
        "stderr": not where.error,
        "bind": site.address,
        "cert": start.cert_pem.decode(),
        "key": start.key_pem.decode(),
    }
    fields.setdefault("stderr", {"path": "/dev/null", "append": True, "mkdir": False})
