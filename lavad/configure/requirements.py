"""Whether a resource requirement of the configuration reads, for what `config` knows the files of and lavad the language."""

from __future__ import annotations

from lavad.core.lang.resreq import text as resreq
from lavad.core.lang.resreq.text import ResReqError


def why_not(text: str) -> str:
    """Why jobs cannot ask for it; "": they can."""
    try:
        missing = resreq.unsupported(resreq.parse(text))
    except ResReqError as error:
        return str(error)
    return f"{missing} is not supported by lava" if missing else ""
