"""`lava whatif` without a trace: a recorded history, or the current jobs, under changes.

Rule: all columns are about the same jobs. The recorded column is beside a simulation without changes, so that a reader sees how
accurate the simulation is.
"""

from __future__ import annotations

import argparse
import json
import os

import msgspec
from msgspec.structs import replace

from config.read.load import load
from lavad.configure.resolve import resolve
from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.snapshot import restore, take
from lavad.core.site.conf import Conf
from lavad.progress import Tell, counted, silent
from lavad.replay.changes import ChangeError, Changes, added_hosts, changed_actions, changed_conf, check, new_names, pattern
from lavad.replay.history import read_source
from lavad.replay.measures import Measures, fields, measure, table
from lavad.replay.past import Guess, Past, read_past
from lavad.replay.plot import draw
from lavad.replay.simulate import Run
from lavad.replay.virtual import Virtual


class Column(msgspec.Struct):
    """One way in which it went, or would go."""

    runs: dict[int, Run]
    slots: int
    assumed: int = 0
    """Jobs whose run time is assumed."""
    never: int = 0
    """Jobs that never start."""


def report(options: argparse.Namespace, tell: Tell = silent) -> str:
    """The text, or the JSON object. Raises ``ChangeError`` and what reading a history raises."""
    past = read_past(counted(read_source(options, options.history), tell, "reading events and plans"))
    variants = _variants(options, past)
    columns = _live(past, variants, tell) if options.live else _again(past, variants, tell)
    shared = set.intersection(*(set(column.runs) for column in columns.values()))
    if not shared:
        raise ChangeError("no job is live" if options.live else "no job has ended")
    parts = {name: [column.runs[key] for key in sorted(shared)] for name, column in columns.items()}
    measures = {name: measure(part, columns[name].slots) for name, part in parts.items()}
    if options.plot:
        most = max(column.slots for column in columns.values())
        write_plot(options.plot, draw("the live jobs" if options.live else "the recorded jobs", parts, most))
    return _json(options, columns, measures) if options.json else _text(options, columns, measures)


def write_plot(path: str, text: str) -> None:
    """Raises ``ChangeError``."""
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except (OSError, ValueError) as error:
        raise ChangeError(f"{path}: cannot write the plot: {getattr(error, 'strerror', error)}") from None


def _variants(options: argparse.Namespace, past: Past) -> dict[str, Changes]:
    """Name of the column to the changes in it, none first."""
    base = Changes(
        add=options.add_hosts,
        slots=options.slots,
        like=options.like,
        remove=tuple(options.remove_hosts),
        priorities=tuple(options.queue_priority),
        conf=_other_conf(options.config),
    )
    check(base, past.cluster.conf, past.cluster.hosts.rows)
    if options.policy:
        changed = {policy: replace(base, policy=policy) for policy in options.policy}
    else:
        changed = {} if base.none else {"changed": base}
    return {"as it is" if options.live else "simulated": Changes(), **changed}


def _other_conf(folder: str) -> Conf | None:
    if not folder:
        return None
    loaded = load(folder)
    wrong = next((problem for problem in loaded.problems if problem.fatal), None)
    if wrong is not None:
        raise ChangeError(f"{wrong.where}: {wrong.text}")
    return resolve(loaded.config)


def _again(past: Past, variants: dict[str, Changes], tell: Tell) -> dict[str, Column]:
    """The whole history: as it was, and as it would have been."""
    columns = {"recorded": Column(past.runs, _slots(past.cluster, ()))}
    begin = past.asked[0].at if past.asked else 0.0
    for name, changes in variants.items():
        like = pattern(changes, past.cluster.hosts.rows.values())
        names = new_names(changes, past.cluster.hosts.rows)
        guess = Guess(past, past.now)
        virtual = Virtual(Cluster(), guess.life, past.specs, begin)
        virtual.add(changed_actions(past.asked, changes, names, like))
        virtual.run(tell, f"{name}: jobs simulated")
        columns[name] = _column(virtual, guess, changes)
    return columns


def _live(past: Past, variants: dict[str, Changes], tell: Tell) -> dict[str, Column]:
    """What becomes of the jobs that are there now."""
    columns = {}
    for name, changes in variants.items():
        cluster = restore(take(past.cluster))
        like = pattern(changes, cluster.hosts.rows.values())
        names = new_names(changes, cluster.hosts.rows)
        guess = Guess(past, past.now)
        virtual = Virtual(cluster, guess.life, past.specs, past.now)
        conf = changed_conf(cluster.conf, changes, names, like)
        virtual.add([ev.Configured(at=past.now, conf=conf)])
        virtual.add(ev.HostSwitched(at=past.now, host=host, closed=True, by="whatif") for host in changes.remove)
        if names:
            virtual.add(added_hosts(names, cluster.hosts.rows[like].facts, changes, past.now))
        virtual.run(tell, f"{name}: jobs simulated")
        columns[name] = _column(virtual, guess, changes)
    return columns


def _column(virtual: Virtual, guess: Guess, changes: Changes) -> Column:
    return Column(virtual.done, _slots(virtual.cluster, changes.remove), len(guess.used), virtual.never)


def _slots(cluster: Cluster, removed: tuple[str, ...]) -> int:
    return max(1, sum(max(0, cluster.slots_of(host)) for host in cluster.hosts.rows if host not in removed))


def _json(options: argparse.Namespace, columns: dict[str, Column], measures: dict[str, Measures]) -> str:
    about = {
        name: {"slots": column.slots, "assumed": column.assumed, "never": column.never, **fields(measures[name], options.users)}
        for name, column in columns.items()
    }
    return json.dumps(about) + "\n"


def _text(options: argparse.Namespace, columns: dict[str, Column], measures: dict[str, Measures]) -> str:
    where = os.path.basename(options.history) if options.history else "the cluster"
    lines = [f"{where}: {'the jobs that are there now' if options.live else 'the jobs that have ended'}"]
    lines.append(f"{'slots':24}" + "".join(f"{column.slots:>16}" for column in columns.values()))
    if any(column.never for column in columns.values()):
        lines.append(f"{'never start':24}" + "".join(f"{column.never:>16}" for column in columns.values()))
    if any(column.assumed for column in columns.values()):
        lines.append(f"{'run time assumed':24}" + "".join(f"{column.assumed:>16}" for column in columns.values()))
    return "\n".join([*lines, *table(measures, options.users)]) + "\n"
