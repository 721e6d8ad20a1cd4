"""Jobs that write a line when they begin and end when they are told to: who ran, how often, and as which process."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from tests.support.wait import wait_until


class Submits(Protocol):
    """What takes jobs."""

    def submit(self, words: str, *, cwd: Path) -> int: ...


class Work:
    """The jobs of a test, by name, below one folder."""

    def __init__(self, site: Submits, folder: Path) -> None:
        self.site = site
        self.folder = folder

    def submit(self, name: str, options: str = "", code: int = 0) -> int:
        """The job id. It exits with ``code`` once it is told to end."""
        wait = f"while [ ! -e {self.folder}/end.{name} ]; do sleep 0.1; done"
        script = self.folder / f"{name}.sh"
        script.write_text(f"echo $$ >>{self.folder}/{name}\n{wait}\nexit {code}\n")
        return self.site.submit(f"-o /dev/null {options} sh {script}", cwd=self.folder)

    def end(self, name: str) -> None:
        """Tell it to end."""
        (self.folder / f"end.{name}").touch()

    def pids(self, name: str) -> list[int]:
        """The processes that ever began it."""
        path = self.folder / name
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    def began(self, name: str, times: int = 1) -> list[int]:
        """Wait until it has begun so often."""
        return wait_until(lambda: self.pids(name) if len(self.pids(name)) == times else [], 30, f"{name} to begin {times} times")
