"""What is wrong with a configuration, said with file and line.

Rule: reading configuration never raises; whatever cannot be taken as it stands becomes a Problem.
"""

from collections.abc import Iterable

import msgspec


class Problem(msgspec.Struct, frozen=True):
    """`fatal`: the value was not understood, its default stands, and a reconfiguration is refused.

    Not fatal is a warning: the file says something that lava does not do. ``note`` is a warning that asks for no answer:
    the parameter is about daemons or files that lava does not have, so nothing is missing without it.
    """

    file: str
    line: int
    text: str
    fatal: bool = False
    note: bool = False

    @property
    def where(self) -> str:
        """`/conf/lsb.queues:12`; of what stands on no line the file alone."""
        return f"{self.file}:{self.line}" if self.line else self.file


class Place(msgspec.Struct, frozen=True):
    """``root`` is the file of LSF's that an included ``file`` is a part of."""

    file: str
    line: int
    root: str = ""

    @property
    def kind(self) -> str:
        """The name of LSF's file: ``lsb.queues``, ``lsf.cluster``."""
        name = (self.root or self.file).rpartition("/")[2]
        return "lsf.cluster" if name.startswith("lsf.cluster.") else name


class Problems:
    """Collects problems in the order of reading; says each once, and stops at LARGEST."""

    LARGEST = 1000

    def __init__(self) -> None:
        self._found: dict[Problem, None] = {}

    def warn(self, place: Place, text: str) -> None:
        self._add(Problem(place.file, place.line, text))

    def note(self, place: Place, text: str) -> None:
        self._add(Problem(place.file, place.line, text, note=True))

    def error(self, place: Place, text: str) -> None:
        self._add(Problem(place.file, place.line, text, fatal=True))

    def all(self) -> tuple[Problem, ...]:
        """File by file in the order of reading, each by line."""
        files = {file: rank for rank, file in enumerate(dict.fromkeys(problem.file for problem in self._found))}
        return tuple(sorted(self._found, key=lambda problem: (files[problem.file], problem.line)))

    def _add(self, problem: Problem) -> None:
        has_room = len(self._found) < self.LARGEST
        if has_room or (problem.fatal and not any(known.fatal for known in self._found)):
            self._found.setdefault(problem)


def line(problem: Problem) -> str:
    """`/conf/lsb.queues:12: error: queue normal: …`."""
    return f"{problem.where}: {'error' if problem.fatal else 'note' if problem.note else 'warning'}: {problem.text}"


def report(problems: Iterable[Problem]) -> str:
    """The text of `badmin ckconfig`: a line a problem and the count; LSF's `No errors found.` where there is none but notes."""
    found = list(problems)
    errors = sum(problem.fatal for problem in found)
    warnings = sum(not problem.fatal and not problem.note for problem in found)
    counts = f"{_counted(errors, 'error')}, {_counted(warnings, 'warning')}." if errors or warnings else "No errors found."
    return "\n".join([*(line(problem) for problem in found), counts]) + "\n"


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
