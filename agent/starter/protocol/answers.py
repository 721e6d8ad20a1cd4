"""Answers to what the agent asks of a user's files: shepherds give them, the starter passes them on."""

# No "from __future__ import annotations": the codec reads the annotations.

from typing import NamedTuple

from agent.starter.protocol.report_kinds import report


@report("data")
class Data(NamedTuple):
    """The answer to ``Read``."""

    id: int
    data: bytes = b""
    size: int = 0
    """Of the whole file."""
    error: str = ""


@report("folders")
class Folders(NamedTuple):
    """The answer to ``FindFolders``."""

    id: str
    names: tuple[str, ...] = ()
    error: str = ""


@report("generations")
class Generations(NamedTuple):
    """The answer to ``FindGenerations``, oldest first."""

    id: str
    whole: tuple[tuple[int, int], ...] = ()
    """Number and bytes of each that agrees with its manifest."""
    damaged: tuple[tuple[int, str], ...] = ()
    """Number, and what is wrong with it, of each that does not."""
    error: str = ""
