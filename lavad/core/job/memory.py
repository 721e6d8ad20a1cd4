"""What programs of a user have needed of memory, as jobs with ``-M auto`` have shown: the limit of the next job follows from it.

Sizes in KB.
"""

from __future__ import annotations

import re

import msgspec

from lavad.core.lang.job_names import one_line

NEWEST = 5
"""Jobs of a program whose largest need counts: an old large one is forgotten."""
KEPT = 100
"""Programs of a user; the one that has not run for the longest time is forgotten first."""
HEADROOM = 1.25
"""A limit is the most that was used, and a quarter more: it is measured every few seconds only."""
LEAST = 64 * 1024
LONGEST = 60
"""Characters of what a program is known by."""
_INTERPRETERS = re.compile(
    r"(?:python|perl|ruby|php|lua|julia|octave|node|java|Rscript|R|(?:ba|da|z|k|tc|c)?sh|mpirun|mpiexec|srun)[\d.]*"
)
_SCRIPT = re.compile(
    r"\s*(?:\S*/)?("
    r"(?:(?:python|(?:ba|da|z|k)?sh)[\d.]*\s+(?:-\w+\s+)*?-\w*c"
    r"|(?:perl|ruby)[\d.]*\s+(?:-\w+\s+)*?-\w*e)\s.*)",
    re.DOTALL,
)
"""An interpreter that is given its program as text; -e of a shell is another option."""
_RUNS = frozenset(("exec", "env", "nice", "nohup", "time", "stdbuf", "numactl", "taskset"))
"""Commands that run another."""
_NUMBER = re.compile(r"[-_.]?\d+$")


class Need(msgspec.Struct, frozen=True, gc=False):
    """Of a program: the limits with which its newest jobs would have done, oldest first."""

    what: str
    limits: tuple[int, ...]


class Learnt(msgspec.Struct, frozen=True):
    """Of a user: that of the programs which ran last, the newest behind."""

    user: str
    needs: tuple[Need, ...] = ()

    def limit(self, what: str) -> int | None:
        """The limit that the next job of a program begins with."""
        return next((max(need.limits) for need in self.needs if need.what == what), None)


def learn(known: Learnt | None, user: str, what: str, limit: int) -> Learnt:
    """One more job of a program would have done with this limit."""
    needs = known.needs if known is not None else ()
    before = next((need.limits for need in needs if need.what == what), ())
    others = tuple(need for need in needs if need.what != what)
    return Learnt(user, (*others, Need(what, (*before, limit)[-NEWEST:]))[-KEPT:])


def limit_for(used: int) -> int:
    """The limit with which a job that used so much would have done, in whole MB."""
    return max(LEAST, -(-int(used * HEADROOM) // 1024) * 1024)


def size_text(kb: int) -> str:
    """``900 MB``, ``1.5 GB``."""
    return f"{kb / 1024:.0f} MB" if kb < 1024**2 else f"{kb / 1024**2:.4g} GB"


def program_of(app: str, name: str) -> str:
    """What jobs that need as much are known by: application profile and program, by the job's name or, without one, its command.

    Of an interpreter it is the script, or the beginning of the text that it is given with -c or -e. The index of an array element
    and a number at the end do not count.
    """
    name = one_line(name)  # as a job is called by its command
    if script := _SCRIPT.match(name):
        return f"{app}:{script[1]}"[:LONGEST] if app else script[1][:LONGEST]
    line = next((line for line in re.split(r"[;\n]", name.partition("[")[0]) if line.strip() and line.strip()[0] != "#"), name)
    words = [word for word in line.split() if "=" not in word and not word.startswith("-")]
    found = ""
    for word in words:
        found = word.rpartition("/")[2]
        if found not in _RUNS and not _INTERPRETERS.fullmatch(found) and not word.isdigit():
            break
    found = _NUMBER.sub("", found) or found
    return f"{app}:{found}"[:LONGEST] if app else found[:LONGEST]
