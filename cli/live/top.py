"""``lava top``: the cluster at a terminal, live: hosts with their use, queues, and the jobs that run, sorted by a key.

Where stdout is no terminal it prints once, without colours.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from cli.client.client import Client, read_conf
from cli.client.context import Context, Fail, start
from cli.live.listings import Asked, Row, hms, megabytes, number, rows
from cli.live.screen import Line, Piece, Screen, bar, has_colours, plain
from proto.numbers import find_seconds

USAGE = "Usage: lava top [-d seconds] [-1]"
_BAR = 12
_SHARE = 5
"""A listing may take one part in so many of the time: the cluster has other work."""
_WELL = ("ok", "closed_Full", "closed_Excl", "closed_Busy")
"""States of hosts that take jobs again by themselves."""
_HELP = "q quit  c CPU time  m memory  t run time  p waiting jobs  u own jobs"
_FIELDS = "jobid jobindex stat user queue slots run_time cpu_used mem exec_host pend_reason job_name"


class Seen(NamedTuple):
    """What was asked of the cluster at one time."""

    cluster: str
    hosts: list[Row]
    load: dict[str, Row]
    queues: list[Row]
    jobs: list[Row]


class Choice(NamedTuple):
    """What the keys have chosen."""

    sort: str = "c"
    waiting: bool = False
    own: bool = False


def look(client: Client, choice: Choice) -> Seen:
    """Ask for all that is shown. Raises Fail."""
    which: Asked = {"p": True} if choice.waiting else {"r": True}
    if not choice.own:
        which["u"] = "all"
    text = client.text_of({"ask": "query", "command": "lsid", "options": {}, "words": []}, quiet=True)
    name = next((line.rpartition(" ")[2] for line in text.splitlines() if line.startswith("My cluster name")), "")
    return Seen(
        name,
        rows(client, "bhosts", "host_name status max njobs ngpus ngpus_alloc total_mem available_mem"),
        {row["HOST_NAME"]: row for row in rows(client, "lsload", "host_name ut")},
        rows(client, "bqueues", "queue_name priority status njobs pend run susp"),
        rows(client, "bjobs", _FIELDS, which),
    )


def page(seen: Seen, choice: Choice, height: int, now: float) -> list[Line]:
    """The lines of the page: at most ``height``, of which hosts have a third and queues a quarter."""
    lines: list[Line] = [_summary(seen, now), []]
    lines += _part("HOST             STATUS        SLOTS                    CPU   MEMORY", _hosts(seen), height // 3)
    busy = [row for row in seen.queues if number(row["NJOBS"])] or seen.queues[:1]
    lines += _part(
        "QUEUE            PRIO STATUS             NJOBS    PEND     RUN    SUSP", [_queue(row) for row in busy], height // 4
    )
    title = "JOBID          USER       QUEUE      STAT  SLOTS  RUN_TIME   CPU_TIME        MEM HOSTS        JOB_NAME"
    jobs = [_job(row, choice.waiting) for row in _sorted(seen.jobs, choice)]
    lines += _part(
        title if not choice.waiting else "JOBID          USER       QUEUE      WHY IT WAITS",
        jobs,
        max(3, height - len(lines) - 2),
    )
    return [*lines[: height - 1], [Piece(_HELP, "dim")]]


def _part(title: str, found: list[Line], most: int) -> list[Line]:
    left = len(found) - max(1, most - 2)
    more: list[Line] = [[Piece(f"  ... and {left} more", "dim")]] if left > 0 else []
    return [[Piece(title, "head")], *found[: max(1, most - 2)], *more, []]


def _summary(seen: Seen, now: float) -> Line:
    states = [row["STATUS"] for row in seen.hosts]
    well, closed = (
        sum(state in _WELL for state in states),
        sum(state.startswith("closed") and state not in _WELL for state in states),
    )
    away = len(states) - well - closed
    slots, used = (sum(number(row[name]) for row in seen.hosts) for name in ("MAX", "NJOBS"))
    gpus, taken = (sum(number(row[name]) for row in seen.hosts) for name in ("NGPUS", "NGPUS_ALLOC"))
    run, wait, held = (sum(number(row[name]) for row in seen.queues) for name in ("RUN", "PEND", "SUSP"))
    cards = f"   GPUs {taken:.0f}/{gpus:.0f}" if gpus else ""
    return [
        Piece(f"{seen.cluster} {time.strftime('%H:%M:%S', time.localtime(now))}", "bold"),
        Piece(f"   hosts {well} ok, {closed} closed"),
        Piece(f", {away} away", "bad" if away else ""),
        Piece(f"   slots {used:.0f}/{slots:.0f}{cards}   slots of jobs: {run:.0f} run, {wait:.0f} wait, {held:.0f} suspended"),
    ]


def _hosts(seen: Seen) -> list[Line]:
    return [_host(row, seen.load.get(row["HOST_NAME"], {})) for row in seen.hosts]


def _host(row: Row, load: Row) -> Line:
    used, most = number(row["NJOBS"]), number(row["MAX"])
    whole, free = megabytes(row["TOTAL_MEM"]), megabytes(row["AVAILABLE_MEM"])
    state = row["STATUS"]
    style = "good" if state in _WELL else "warn" if state.startswith("closed") else "bad"
    memory = f"{(whole - free) / 1024:.1f}/{whole / 1024:.1f}G" if whole else "-"
    gpus = f"   GPUs {row['NGPUS_ALLOC']}/{row['NGPUS']}" if number(row["NGPUS"]) else ""
    share = used / most if most else 0.0
    return [
        Piece(f"{row['HOST_NAME']:<16} "),
        Piece(f"{state:<12}", style),
        Piece(
            f" {bar(share, _BAR)} {used:>3.0f}/{row['MAX']:<4} {load.get('ut') or load.get('UT') or '-':>5}  {memory:>12}{gpus}"
        ),
    ]


def _queue(row: Row) -> Line:
    style = "" if row["STATUS"] == "Open:Active" else "warn"
    counts = "".join(f"{row[name]:>8}" for name in ("NJOBS", "PEND", "RUN", "SUSP"))
    return [Piece(f"{row['QUEUE_NAME']:<16} {row['PRIORITY']:>4} "), Piece(f"{row['STATUS']:<16}", style), Piece(counts)]


def _sorted(jobs: list[Row], choice: Choice) -> list[Row]:
    if choice.waiting:
        return jobs
    by = {
        "c": lambda row: number(row["CPU_USED"]),
        "m": lambda row: megabytes(row["MEM"]),
        "t": lambda row: number(row["RUN_TIME"]),
    }
    return sorted(jobs, key=by[choice.sort], reverse=True)


def _job(row: Row, waiting: bool) -> Line:
    index = row["JOBINDEX"]
    name = f"{row['JOBID']}[{index}]" if number(index) else row["JOBID"]
    lead = f"{name:<14} {row['USER'][:10]:<10} {row['QUEUE'][:10]:<10} "
    if waiting:
        return [Piece(lead), Piece(row["PEND_REASON"].rstrip("; "), "dim")]
    style = "warn" if "SUSP" in row["STAT"] else "bad" if row["STAT"] in ("UNKWN", "ZOMBI") else ""
    memory = f"{megabytes(row['MEM']):.0f} MB" if row["MEM"] else "-"
    hosts = row["EXEC_HOST"].split(":")
    place = hosts[0] if len(set(hosts)) == 1 else f"{hosts[0]} +{len(set(hosts)) - 1}"
    return [
        Piece(lead),
        Piece(f"{row['STAT']:<5}", style),
        Piece(f" {row['SLOTS']:>5} {hms(number(row['RUN_TIME'])):>9} {hms(number(row['CPU_USED'])):>10} {memory:>10} "),
        Piece(f"{place[:12]:<12} {row['JOB_NAME']}"),
    ]


def pressed(choice: Choice, key: str) -> Choice:
    """What a key makes of the choice; another one changes nothing."""
    if key in ("c", "m", "t"):
        return choice._replace(sort=key, waiting=False)
    if key == "p":
        return choice._replace(waiting=not choice.waiting)
    return choice._replace(own=not choice.own) if key == "u" else choice


def _options(words: list[str]) -> tuple[float, bool]:
    """(seconds between two looks, whether there is one look only). Raises Fail."""
    period, once = 2.0, False
    left = list(words)
    while left:
        word = left.pop(0)
        if word == "-1":
            once = True
        elif word == "-d" and left and (seconds := find_seconds(left[0])):
            period = seconds
            left.pop(0)
        else:
            raise Fail(USAGE)
    return period, once


def run(context: Context) -> int:
    """Until ``q`` or Ctrl-C."""
    period, once = _options(context.argv)
    client = Client(context, read_conf(context))
    choice = Choice()
    if once or not has_colours({**context.environ, "NO_COLOR": ""}, context.stdout):
        context.out(plain(page(look(client, choice), choice, 1000, time.time())[:-1]))
        return 0
    with Screen(context.stdin, context.stdout, context.environ) as screen:
        while True:
            begun = time.monotonic()
            seen = look(client, choice)
            took = time.monotonic() - begun
            until = begun + max(period, _SHARE * took)
            while True:
                screen.draw(page(seen, choice, screen.size.lines, time.time()))
                key = screen.key(max(0.0, until - time.monotonic()))
                if key == "q":
                    return 0
                before, choice = choice, pressed(choice, key)
                if not key or (before.waiting, before.own) != (choice.waiting, choice.own):
                    break


def main(argv: list[str] | None = None) -> int:
    return start(run, argv)
