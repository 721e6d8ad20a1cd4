"""A job that writes checkpoints in a running cluster: what a test that kills and moves it again and again waits for."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until

KILLS = int(os.environ.get("LAVA_CHECKPOINT_KILLS", "10"))
MOVES = int(os.environ.get("LAVA_CHECKPOINT_MOVES", "5"))


class Checkpointed:
    """``begins``: what its output says once each time that it has begun to calculate; a job is RUN from its dispatch on."""

    def __init__(self, cluster: Cluster, folder: Path, options: str, program: str, begins: str) -> None:
        self.cluster, self.begins, self.out = cluster, begins, folder / "out"
        self.job = cluster.submit(f'-k "{folder}/ck method=app" -o {self.out} -R "span[ptile=1]" {options} {program}')
        self.made = folder / "ck" / str(self.job)

    def starts(self) -> int:
        """How often it has begun to calculate."""
        return self.out.read_text().count(self.begins) if self.out.exists() else 0

    def hosts(self) -> list[str]:
        """Where it runs."""
        return self.cluster.run(f"bjobs -noheader -o exec_host {self.job}").stdout.strip().split(":")

    def newest(self) -> int:
        """The newest generation; 0: there is none."""
        return max((int(path.name[4:]) for path in self.made.glob("gen-*") if path.name[4:].isdigit()), default=0)

    def story(self) -> str:
        """For the text of a failure."""
        return f"{self.cluster.run(f'bhist -l {self.job}', ok=False).stdout}\n{self.out.read_text() if self.out.exists() else ''}"

    def wait(self, condition: Callable[[], object], seconds: float = 120) -> None:
        wait_until(condition, seconds, self.story)

    def wait_for_start(self, number: int) -> None:
        """Until it has begun to calculate ``number`` times."""
        self.wait(lambda: self.starts() >= number)

    def wait_for_more_than(self, known: int) -> None:
        """Until there is a newer generation."""
        self.wait(lambda: self.newest() > known)

    def ask(self) -> None:
        """bchkpnt; refused while its hosts are not heard of."""
        self.wait(lambda: self.cluster.run(f"bchkpnt {self.job}", ok=False).returncode == 0)

    def lose(self, host: str) -> None:
        """All of a host dies, the job waits or runs elsewhere, and the host returns."""
        self.cluster.kill_host(host)
        self.cluster.wait_for(self.job, "PEND", "RUN", timeout=120)
        self.cluster.up()

    def move(self, moves: int) -> None:
        """bmig, as often, each time once it has begun to calculate: it writes a checkpoint first."""
        for move in range(moves):
            self.wait_for_start(move + 1)
            known = self.newest()
            self.cluster.run(f"bmig {self.job}")
            self.wait_for_more_than(known)
