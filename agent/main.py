"""lava-agent, one for each host: ``python -m agent.main --host H --conf DIR --run DIR --spool DIR --master HOST:PORT``.

Rule: the starter is started before anything heavy is imported; that is why the imports stand inside functions.
"""

from __future__ import annotations

import argparse
import ctypes
import fcntl
import os
import sys
from typing import TYPE_CHECKING

from agent.starter.system import folders
from agent.starter_client import starterlink
from config.lsfconf import level_of, read_lsf_conf, why_no_conf
from proto.daemon.cpu_precedence import precede_jobs
from proto.localsocket import why_not_kept
from proto.whole_file import write_pid

if TYPE_CHECKING:
    from agent.launch.site import Site


def main(argv: list[str] | None = None) -> int:
    """Run an agent until SIGTERM."""
    options = _options(argv)
    os.umask(0o022)
    if why := why_no_conf(options.conf):
        sys.stderr.write(f"lava-agent: {why}\n")
        return 1
    try:
        for folder in (options.run, options.spool):
            folders.make_own(folder)
            if why := why_not_kept(folder):
                sys.stderr.write(f"lava-agent: {why}\n")
    except (folders.NotOwn, OSError) as e:
        sys.stderr.write(f"lava-agent: {e}\n")
        return 1
    lock = os.open(os.path.join(options.spool, "agent.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        sys.stderr.write(f"lava-agent: {options.spool} is served by another agent already\n")
        return 1
    _set_name()
    precede_jobs()
    socket_path = os.path.join(options.run, f"starter-{options.host}.sock")
    starter_log = os.path.join(os.path.dirname(options.log), f"starter-{options.host}.log") if options.log else ""
    if not options.await_starter and not starterlink.answers(socket_path):
        folder = os.path.join(options.spool, "starter")
        starterlink.spawn(options.host, folder, socket_path, options.run, starter_log)
    return _serve(options, starter_log)


def _serve(options: argparse.Namespace, starter_log: str) -> int:
    import asyncio
    import gc

    from proto.daemon import grpc_threads, programs

    grpc_threads.load()
    programs.wait_by_files()

    from agent.daemon import Daemon
    from agent.launch import launchers
    from agent.launch.prepost import sudoers
    from agent.parts.spool import NotReadable

    _log_to(_log_file(options))
    try:
        site = _site(options)
        folders.make_own(site.output_dir)  # users' own folders are in it, which nobody may put there before
    except (sudoers.NotUsable, folders.NotOwn, OSError) as e:
        sys.stderr.write(f"lava-agent: {e}\n")
        return 1
    if options.pidfile:
        write_pid(options.pidfile)
    launchers.look_up(site.address)
    if options.gpus:
        from agent.devtools import simgpu

        # hosts of two clusters on this machine have the same names, and see each other's processes
        simgpu.install(simgpu.SimulatedDriver(options.gpus, f"{site.host} {site.run_dir}"))
    gc.freeze()

    async def serve() -> None:
        masters = options.master.split(",") if options.master else site.masters
        await Daemon(site, masters, options.slots_hint, None if options.await_starter else starter_log).serve()

    try:
        asyncio.run(serve())
    except NotReadable as e:
        sys.stderr.write(f"lava-agent: {e}\n")
        return 1
    finally:
        if options.pidfile:
            _remove_pid(options.pidfile)
    return 0


def _options(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="lava-agent")
    parser.add_argument("--host", required=True)
    parser.add_argument("--conf", required=True, type=os.path.abspath)
    parser.add_argument("--run", required=True, type=os.path.abspath)
    parser.add_argument("--spool", required=True, type=os.path.abspath)
    parser.add_argument(
        "--master", default="", help="HOST:PORT[,HOST:PORT…] or unix:PATH; else LSF_MASTER_LIST of lsf.conf, at LAVA_PORT"
    )
    parser.add_argument("--address", default="127.0.0.1", help="where other hosts reach this one")
    parser.add_argument("--await-starter", action="store_true", help="the starter is a service of its own: start none")
    parser.add_argument("--sudoers", type=os.path.abspath, help="lsf.sudoers of this host; else /etc/lsf.sudoers")
    parser.add_argument("--gpus", type=int, default=0, help="simulated GPUs")
    parser.add_argument("--pidfile", type=os.path.abspath)
    parser.add_argument("--log", type=os.path.abspath)
    parser.add_argument("--slots-hint", type=int, default=0, help="cores to report instead of those that are there")
    return parser.parse_args(argv)


def _site(options: argparse.Namespace) -> Site:
    import logging
    import pwd

    from agent.launch.prepost import sudoers
    from agent.launch.site import Site
    from config.read.params import settings_of
    from proto.daemon.logs import log_as

    try:
        own = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        own = str(os.geteuid())
    conf = read_lsf_conf(os.path.join(options.conf, "lsf.conf"))
    logging.getLogger().setLevel(level_of(conf.get("LSF_LOG_MASK", "")))
    log_as(conf.get("LAVA_LOG_FORMAT", ""))
    eexec = os.path.join(conf.get("LSF_SERVERDIR", ""), "eexec")
    return Site(
        host=options.host,
        run_dir=options.run,
        spool=options.spool,
        conf_dir=options.conf,
        conf=conf,
        settings=settings_of(conf),
        address=options.address,
        root=os.geteuid() == 0,
        own_user=own,
        exec_user=sudoers.exec_user(options.sudoers or sudoers.FILE) if os.geteuid() == 0 else None,
        eexec=eexec if os.path.isabs(eexec) and os.access(eexec, os.X_OK) else "",
    )


def _log_file(options: argparse.Namespace) -> str:
    """--log, else a file in LSF_LOGDIR, else "": standard error."""
    folder = read_lsf_conf(os.path.join(options.conf, "lsf.conf")).get("LSF_LOGDIR", "")
    return options.log or (f"{folder}/lava-agent.log.{options.host}" if folder else "")


def _log_to(path: str) -> None:
    import logging
    import signal

    from proto.daemon import logfile
    from proto.daemon.logs import log_to

    form = "%(asctime)s %(levelname)s %(message)s"
    # A line for each job: what the format does not show is not looked up.
    logging._srcfile = None
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    log_to(sys.stderr, form)
    if path:
        try:
            logfile.follow(path)
        except OSError as e:
            logging.getLogger("lava-agent").warning("no log in %s: %s; standard error is the log", path, e.strerror)


def _remove_pid(path: str) -> None:
    try:
        with open(path, encoding="ascii") as file:
            mine = file.read().strip() == str(os.getpid())
        if mine:
            os.unlink(path)
    except OSError:
        pass


def _set_name() -> None:
    try:
        ctypes.CDLL(None).prctl(15, b"lava-agent", 0, 0, 0)
    except (OSError, AttributeError):
        pass


if __name__ == "__main__":
    sys.exit(main())
