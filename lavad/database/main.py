"""`lava db`: check, back up, restore or upgrade a store.

Exit 0; 1: something is wrong with the store, or one line on stderr says why it was not done.
"""

from __future__ import annotations

import argparse
import sys
import time

from lavad.database.check import Checked, check
from lavad.database.held_lease import held_lease
from lavad.database.restore import Restored, Wanted, restore
from lavad.local_time import local_time
from lavad.progress import Progress
from lavad.replay.history import HistoryError, Parser, add_source, named_store
from lavad.store.backup import backup
from lavad.store.errors import StoreError
from lavad.store.schema import HEAD
from lavad.store.writer import Store


def parser() -> argparse.ArgumentParser:
    """The command line."""
    options = Parser(prog="lava db", allow_abbrev=False, description="The store of a cluster: SQLite or PostgreSQL.")
    commands = options.add_subparsers(dest="command", required=True, metavar="check | backup | restore | upgrade")
    helps = {
        "check": "whether the store is sound and its rows are what its events say; lavad may run",
        "backup": "copy the store into a file; lavad may run",
        "restore": "make the store from a backup; no lavad may run",
        "upgrade": "bring the store up to date without starting lavad; no lavad may run",
    }
    for name, text in helps.items():
        command = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        add_source(command)
        if name in ("backup", "restore"):
            command.add_argument("file", metavar="FILE", help="the backup")
        if name == "restore":
            command.add_argument("--replace", action="store_true", help="there may be a store, which the backup replaces")
            command.add_argument("--active", action="store_true", help="leave queues active: nothing has run since the backup")
            command.add_argument("--first-job", type=int, default=0, metavar="N", help="the lowest id of new jobs")
    return options


def main(argv: list[str] | None = None) -> int:
    """The program."""
    options = parser().parse_args(argv)
    try:
        return _carry_out(options, named_store(options))
    except (HistoryError, StoreError, OSError) as error:
        sys.stderr.write(f"lava db {options.command}: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 130


def _carry_out(options: argparse.Namespace, url: str) -> int:
    progress = Progress(f"lava db {options.command}")
    if options.command == "check":
        with progress:
            checked = check(url, progress.tell)
        return _check(checked)
    if options.command == "backup":
        with progress:
            backup(url, options.file, progress.tell)
        _say(f"{options.file}: the store is backed up")
    elif options.command == "restore":
        wanted = Wanted(options.replace, not options.active, max(0, options.first_job))
        with progress:
            restored = restore(options.file, url, wanted, time.time(), progress.tell)
        _restored(options.file, restored)
    else:
        with progress:
            progress.tell("bringing the store up to date")
            former = _upgrade(url)
        _say(f"version {HEAD}" if former is None else f"version {former} is {HEAD} now")
    return 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")


def _check(checked: Checked) -> int:
    for problem in checked.problems:
        _say(problem)
    for note in checked.notes:
        _say(f"note: {note}")
    counts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in checked.counts.items())
    _say(f"version {checked.version}; {counts}; {'sound' if not checked.problems else f'{len(checked.problems)} problems'}")
    return 1 if checked.problems else 0


def _restored(file: str, restored: Restored) -> None:
    taken = local_time(restored.taken).strftime("%b %d %H:%M:%S %Y")
    _say(f"{file}: the store as of {taken} is restored, with {restored.jobs} live jobs, {restored.started} of them started")
    _say(f"New jobs get ids from {restored.next_job} on.")
    if restored.kept:
        _say(f"The former store is {restored.kept}.")
    if restored.queues:
        _say("Inactive until you have seen all hosts come back (bhosts): " + " ".join(restored.queues))
        _say("then: badmin qact " + " ".join(restored.queues))


def _upgrade(url: str) -> str | None:
    """The version that the store had; None where it was up to date."""
    store = Store.open(url, create=False)
    try:
        with held_lease(store) as epoch:
            return store.take_over(epoch)
    finally:
        store.close()
