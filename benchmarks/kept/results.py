"""A run of benchmarks as a file of ``benchmarks/results``: what was measured, where, when, and of which versions."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.floors import floors
from benchmarks.line import Line, rounded
from cli.local.folder import ROOT
from proto.version import VERSION

FOLDER = ROOT / "benchmarks" / "results"


@dataclass(frozen=True)
class Machine:
    """Where it ran."""

    processor: str
    cores: int
    memory_gb: float
    kernel: str
    system: str
    python: str


@dataclass(frozen=True)
class Results:
    """One run."""

    date: str
    """UTC, to the minute."""
    commit: str
    machine: Machine
    versions: dict[str, str]
    load: float
    """Mean number of processes that ran or waited to, in the minute before it began: what else the machine did."""
    minutes: float
    note: str = ""
    floors: dict[str, float] = field(default_factory=dict)
    """Milliseconds, at the start (``benchmarks/floors.py``)."""
    figures: list[Line] = field(default_factory=list)

    def of(self, metric: str) -> Line | None:
        """The figure of that name."""
        return next((one for one in self.figures if one["metric"] == metric), None)


class Begun:
    """What has to be noted before the first benchmark."""

    def __init__(self) -> None:
        self.load = os.getloadavg()[0]
        self.floors = {name: rounded(value) for name, value in floors().items()}
        self._clock = time.monotonic()

    def end(self, figures: Sequence[Line], note: str) -> Results:
        """The run as it is kept."""
        versions = {"lava": VERSION} | {one["contender"]: one["version"] for one in figures if "contender" in one}
        return Results(
            date=time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime()),
            commit=_commit(),
            machine=machine(),
            versions=versions,
            load=round(self.load, 2),
            minutes=round((time.monotonic() - self._clock) / 60, 1),
            note=note,
            floors=self.floors,
            figures=list(figures),
        )


def machine() -> Machine:
    """This one."""
    return Machine(
        processor=_value("/proc/cpuinfo", "model name", ":") or platform.machine(),
        cores=len(os.sched_getaffinity(0)),
        memory_gb=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        kernel=platform.release(),
        system=_value("/etc/os-release", "PRETTY_NAME", "=").strip('"') or platform.system(),
        python=platform.python_version(),
    )


def _value(path: str, name: str, mark: str) -> str:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition(mark)[2].strip() for line in lines if line.partition(mark)[0].strip() == name), "")


def _commit() -> str:
    """Of the checkout, with a ``+`` where files differ from it."""
    git = ["git", "-C", str(ROOT)]
    found = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    changed = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, check=False).stdout.strip()
    return f"{found}+" if found and changed else found


def save(results: Results, folder: Path = FOLDER) -> Path:
    """Write it under its date; a figure a line, so that changes can be read."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{results.date.replace(':', '')}.json"
    fields = asdict(results)
    figures = fields.pop("figures")
    head = json.dumps(fields, indent=1).removesuffix("\n}")
    lines = ",\n".join(f"  {json.dumps(one)}" for one in figures)
    path.write_text(f'{head},\n "figures": [\n{lines}\n ]\n}}\n')
    return path


def load(path: Path) -> Results:
    """Raises ValueError for a file that is none."""
    try:
        fields: dict[str, Any] = json.loads(path.read_text())
        return Results(**(fields | {"machine": Machine(**fields["machine"])}))
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path.name} is not a file of results: {error}") from error


def newest(cores: int | None = None, folder: Path = FOLDER) -> Results | None:
    """The last run; of those on machines with so many cores where there is one. None: nothing is kept."""
    runs = [load(path) for path in sorted(folder.glob("*.json"))]
    alike = [one for one in runs if one.machine.cores == cores]
    return (alike or runs)[-1] if runs else None
