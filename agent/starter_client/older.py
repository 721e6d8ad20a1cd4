"""What a starter of the previous version reads differently. Goes when ``agent.starter.protocol.version.OLDEST`` is 2."""

from __future__ import annotations

from agent.starter.protocol.codec import Json


def for_protocol_1(part: Json) -> Json:
    """A part for a starter that has one network for the ranks of a job and another, ``star``, for the tasks of blaunch.

    It gets the one that the job needs: with the first, blaunch reaches no other host of the job. ValueError: it cannot do that.
    """
    if part.get("mps"):
        raise ValueError("the starter of this host is of a version before MPS (mps=)")
    link = part.get("link")
    if not isinstance(link, dict):
        return part
    other = {name: value for name, value in part.items() if name != "link"}
    if link.get("ranks", True):
        return {**other, "link": {**link, "role": "leaf" if link["place"] else "root", "nodes": link.get("nodes", 1)}}
    return {**other, "star": {"bind": link.get("bind", ""), "cert": link["cert"], "key": link["key"]}}
