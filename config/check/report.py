"""The text of `badmin ckconfig`."""

from collections.abc import Iterable

from config.model.problems import Problem


def line(problem: Problem) -> str:
    """`/conf/lsb.queues:12: error: queue normal: …`."""
    where = f"{problem.file}:{problem.line}" if problem.line else problem.file
    return f"{where}: {'error' if problem.fatal else 'note' if problem.note else 'warning'}: {problem.text}"


def report(problems: Iterable[Problem]) -> str:
    """A line a problem and the count; LSF's `No errors found.` where there is none but notes."""
    found = list(problems)
    errors = sum(problem.fatal for problem in found)
    warnings = sum(not problem.fatal and not problem.note for problem in found)
    counts = f"{_counted(errors, 'error')}, {_counted(warnings, 'warning')}." if errors or warnings else "No errors found."
    return "\n".join([*(line(problem) for problem in found), counts]) + "\n"


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
