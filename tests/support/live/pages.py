"""The commands of a page of the documentation, carried out one after the other in a shell, beside what the page says they print.

Rule: a block ``console`` has commands (``$ ``, going on with ``> ``) and what each prints. ``…`` stands for any text; on a line
of its own, for any lines. Runs of blanks count as one. Where the page shows nothing, what a command prints does not count. A
command that only shows is asked again until it prints what the page says.
"""

from __future__ import annotations

import getpass
import re
import subprocess
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.wait import wait_until

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SHOWS = re.compile(r"(bjobs|bhist|bhosts|bqueues|bpeek|bacct|head|tail|cat [^>]|lava (why|status|explain|report))\b")


@dataclass
class Step:
    """A command, and the lines that it prints."""

    command: str
    prints: list[str] = field(default_factory=list)

    def agrees(self, text: str) -> bool:
        if not self.prints:
            return True
        pattern = ""
        for line in self.prints:
            words = re.escape(_plain(line)).replace("…", ".*")
            pattern += r"(?:.*\n)*?" if line.strip() == "…" else f"{words}\n"
        shown = "".join(f"{_plain(line)}\n" for line in text.splitlines() if line.strip())
        return re.fullmatch(pattern, shown) is not None


def _plain(line: str) -> str:
    return " ".join(line.split())


def steps(page: Path) -> list[Step]:
    """What the page does, in order; an empty line of output does not count."""
    found: list[Step] = []
    for block in _BLOCK.findall(page.read_text()):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append(Step(line[2:]))
            elif line.startswith("> "):
                found[-1].command += f"\n{line[2:]}"
            elif line.strip():
                found[-1].prints.append(line)
    return found


class Shell:
    """A bash that carries out one command after the other."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self._end = f"end-{uuid.uuid4().hex}"
        self._process = subprocess.Popen(
            ["/bin/bash", "--norc"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=folder,
            env=dict(environ),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        self.run("lava down")  # also after a step that failed
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def run(self, command: str) -> tuple[int, str]:
        """(exit status, output)."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{command}\nstatus=$?; echo; echo {self._end} $status\n")
        self._process.stdin.flush()
        lines: list[str] = []
        for line in self._process.stdout:
            if line.startswith(self._end):
                return int(line.split()[1]), "".join(lines)
            lines.append(line)
        raise AssertionError(f"the shell ended: {''.join(lines)}")


def follow(page: Path, folder: Path, environ: Mapping[str, str]) -> int:
    """Do what the page says, in the folder; returns the number of commands. The first that prints something else is an error."""
    todo = steps(page)
    with Shell(folder, environ) as shell:
        for step in todo:
            _do(shell, step)
    return len(todo)


def _do(shell: Shell, step: Step) -> None:
    text = ""

    def agrees() -> bool:
        nonlocal text
        status, text = shell.run(step.command)
        text = text.replace(getpass.getuser(), "root")
        return status == 0 and step.agrees(text)

    if _SHOWS.match(step.command):
        wait_until(agrees, 30, lambda: f"{step.command}\nto print\n{step.prints}\nit prints\n{text}")
    else:
        assert agrees(), f"{step.command}\nis to print\n{step.prints}\nit prints\n{text}"
