"""lsacct: tasks of remote execution from a task log of LSF (lsf.acct): sums, and with -l each of them.

Rule: lava's own remote tasks are jobs, and bacct has them; this command reads files that LSF's RES wrote.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from lavad.core.lang.asks import Refused
from lavad.lsb.read import Fields
from lavad.queries.facts import lsf_log
from lavad.queries.frame import formats
from lavad.queries.frame.formats import RULE
from lavad.queries.frame.request import Request, Shown, leave, out, read_period
from proto.numbers import find_number


class Task(msgspec.Struct, frozen=True):
    """A line of the file. Times in seconds."""

    pid: int
    user: str
    status: int
    began: float
    ended: float
    from_host: str
    host: str
    cwd: str
    command: str
    cpu: float


def show(request: Request) -> Iterator[Shown]:
    """The tasks that the options choose."""
    options = request.options()
    if "f" not in options:
        raise Refused("lsacct: no task log is named; tasks of lava are jobs: see bacct")
    windows = {letter: read_period(request, options.text(letter)) for letter in "CS" if letter in options}
    users = options.words("u") or [request.caller.user]
    for word in request.words:
        if find_number(word) is None:
            raise Refused(f"{word[:80]}: Bad process ID")
    pids, hosts = {int(word) for word in request.words}, options.words("m")
    chosen = [
        task
        for task in _tasks(lsf_log.text_of(options))
        if (not pids or task.pid in pids)
        and ("all" in users or pids or task.user in users)
        and (not hosts or task.host in hosts)
        and all(begin <= (task.ended if letter == "C" else task.began) <= end for letter, (begin, end) in windows.items())
    ]
    if not chosen:
        yield out("No matching task found\n")
        yield leave(255)
        return
    if "l" in options:
        yield out("".join(map(_long, chosen)))
    yield out(_summary(chosen))


def _tasks(text: str) -> Iterator[Task]:
    for line in text.splitlines():
        fields = Fields(line, kind=False)
        try:
            pid, user, status, began, ended = fields.number(), fields.text(), fields.number(), fields.real(), fields.real()
            from_host, host, cwd, command = fields.text(), fields.text(), fields.text(), fields.text()
            yield Task(pid, user, status, began, ended, from_host, host, cwd, command, fields.real() + fields.real())
        except (IndexError, ValueError, OverflowError):
            continue  # cut off


def _long(task: Task) -> str:
    return (
        f"Starting time:      {formats.full_time(task.began)}\nEnding time:        {formats.full_time(task.ended)}\n"
        f"User and host:      {task.user}@{task.from_host}\nExecution host:     {task.host}\nCommand line:       {task.command}\n"
        f"CWD:                {task.cwd}\nProcess ID:         {task.pid}\nExit status:        {task.status}\n"
        f"CPU time:           {task.cpu:.2f} seconds\n{RULE}"
    )


def _summary(tasks: list[Task]) -> str:
    cpu = [task.cpu for task in tasks]
    failed = sum(task.status != 0 for task in tasks)
    return (
        "\nSUMMARY:      ( time unit: second )\n"
        f" Total number of tasks:      {len(tasks):>7}      Number of failed tasks:     {failed:>7}\n"
        f" Total CPU time consumed:    {sum(cpu):>7.1f}      Average CPU time consumed:  {sum(cpu) / len(cpu):>7.1f}\n"
        f" Maximum CPU time of a task: {max(cpu):>7.1f}      Minimum CPU time of a task: {min(cpu):>7.1f}\n"
        f" Starting time: {formats.full_time(min(t.began for t in tasks))}"
        f"      Ending time: {formats.full_time(max(t.ended for t in tasks))}\n"
    )
