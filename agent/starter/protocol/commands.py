"""What a user's commands say to a shepherd: ``bsub -I`` that attaches to its job, and ``blaunch`` that starts a task in it.

They are bodies of frames of wire/taskwire.py: HELLO of the one, START of the other. The commands make them in
cli/terminal/attach.py and cli/blaunch.py, which import nothing from here. Whoever sends them is not trusted.
"""

# No "from __future__ import annotations": the codec reads the annotations.

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from agent.starter.protocol.codec import ProtocolError, parse, read


class Greeting(NamedTuple):
    """``bsub -I`` attaches."""

    token: str
    """The secret of the attempt."""
    tty: bool = False
    """It has a terminal, and wants one for the job."""
    term: str = ""
    """TERM of that terminal."""
    size: tuple[int, ...] = ()
    """Its rows and columns."""
    x11: bool = False
    """It shows what the job's programs draw (-XF)."""


class Shell(Enum):
    """What runs the words of a task."""

    SH = "sh"
    LOGIN = "login"
    """The user's login shell."""
    NONE = "none"
    """The words are the program and its arguments."""


class TaskRequest(NamedTuple):
    """``blaunch`` asks for a task."""

    host: str
    """Where, by any name that it has."""
    words: tuple[str, ...]
    env: Mapping[str, str]
    """The caller's variables."""
    task: int = 1
    """LSF_PM_TASKID."""
    stdin: bool = False
    """Standard input follows; else it is /dev/null."""
    shell: Shell = Shell.SH
    cwd: str = ""
    nth: int = 0
    """Which of the tasks that the same command starts on this host, from 0."""
    of: int = 0
    """How many these are; 0: not told."""


def read_greeting(body: bytes) -> Greeting:
    """The body of a HELLO; ProtocolError when it is none."""
    return read(Greeting, parse(body))


def read_request(body: bytes) -> TaskRequest:
    """The body of a START; ProtocolError when it is no command."""
    asked = read(TaskRequest, parse(body))
    if not asked.words or any("\0" in word for word in asked.words):
        raise ProtocolError("no words of a command")
    return asked
