"""lavad: reads the configuration, and starts its replicas while it loads what it serves with."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys

from config.lsfconf import SITE_ENVDIR, level_of, why_no_conf
from config.model.problems import report
from config.programs.egroup import Egroup
from config.read.load import load as load_files
from lavad.collector import look_rarely
from lavad.configure.requirements import why_not
from lavad.replica.spawn import AHEAD, end_ahead, set_title, spawn_ahead
from proto.daemon import logfile
from proto.daemon.cpu_precedence import precede_jobs
from proto.daemon.logs import log_as, log_to

log = logging.getLogger("lavad")


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """The command line of the daemon."""
    parser = argparse.ArgumentParser(prog="lavad", description="The master daemon of lava.")
    parser.add_argument("--conf", default=os.environ.get("LSF_ENVDIR", SITE_ENVDIR), help="LSF_ENVDIR")
    parser.add_argument("--run", default="", help="folder of sockets and pid files (LAVA_RUNDIR)")
    parser.add_argument("--host", default=os.uname().nodename, help="this host's name in the cluster")
    parser.add_argument("--number", type=int, default=1, help="which of the masters on this machine")
    parser.add_argument("--listen", default="", help="where agents come in, HOST:PORT or unix:PATH")
    parser.add_argument("--database", default="", help="SQLAlchemy URL of the store (LAVA_DATABASE_URL)")
    parser.add_argument("--database-file", default="", help="a file that holds the URL (LAVA_DATABASE_URL_FILE)")
    parser.add_argument("--no-wait", action="store_true", help="end where the database is away at the start")
    parser.add_argument("--log", default="", help="log file")
    return parser.parse_args(argv)


def _log_in(folder: str, name: str) -> None:
    if folder:
        try:
            logfile.follow(f"{folder}/{name}", inherited=True)
        except OSError as error:
            log.warning("LSF_LOGDIR: %s; standard error is the log", error)


def main(argv: list[str] | None = None) -> int:
    """Entry point; exit 1 with one line where the daemon cannot start."""
    options = arguments(argv)
    set_title("lavad")
    precede_jobs()
    look_rarely()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    if why := why_no_conf(options.conf):
        print(f"lavad: {why}", file=sys.stderr)  # noqa: T201
        return 1
    try:
        if options.log:
            logfile.follow(options.log, inherited=True)
        log_to(sys.stderr, "%(asctime)s %(levelname)s %(name)s: %(message)s")
        loaded = load_files(options.conf, egroup_in=Egroup, grammar=why_not)
    except OSError as error:
        print(f"lavad: {error}", file=sys.stderr)  # noqa: T201
        return 1
    if loaded.has_errors:
        print(f"lavad: {report(loaded.problems).strip().replace(chr(10), '; ')}", file=sys.stderr)  # noqa: T201
        return 1
    logging.getLogger().setLevel(level_of(loaded.config.lsf.get("LSF_LOG_MASK", "")))
    log_as(loaded.config.lsf.get("LAVA_LOG_FORMAT", ""))
    if not options.log:
        name = "lavad" if options.number == 1 else f"lavad-{options.number}"
        _log_in(loaded.config.lsf.get("LSF_LOGDIR", ""), f"{name}.log.{options.host}")
    for group in loaded.unanswered:
        log.warning("group %s: egroup has not said its members: it has none until badmin reconfig", group)
    for module in AHEAD:
        spawn_ahead(module, sys.stderr.buffer)
    try:
        # as long to import as the replicas are
        from lavad import office

        return office.serve(options, loaded)
    finally:
        end_ahead()
