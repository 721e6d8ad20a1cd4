"""``lava up`` and ``lava down``: a cluster on one machine, with the daemons that a site runs.

Rule: ``up`` again with the same folder starts what is not running and loses nothing.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from cli.local.daemons import DaemonFailed, begun, children, end, find_pid, last_line, start
from cli.local.folder import ROOT, CannotUp, Folder, Shape, commands_folder
from cli.local.page import start_page, write_url
from cli.local.probe import query
from cli.local.shells import write_profiles
from config.lsfconf import read_lsf_conf
from config.write.generate import write_cluster
from proto.localsocket import address

READY_WITHIN = 60.0
QUIET = 5.0
"""Seconds after which it is told why nobody answers."""


class Wanted(NamedTuple):
    """The options of ``lava up``; 0, "" and -1 stand for those that were not given."""

    hosts: int = 0
    slots: int = 0
    database: str = ""
    masters: int = 0
    confdir: str = ""
    gpus: int = -1
    web: int = -1
    """The port of the page, 0 for any; -1: none."""


def up(folder: Folder, wanted: Wanted) -> None:
    """Start what is not running; returns when all hosts are ok. Raises CannotUp, OSError.

    Where a new cluster's first master does not start, what was written for it is removed: the next ``up`` begins from nothing.
    """
    _refuse_conf(wanted.confdir)
    folder.make()
    shape = folder.find_shape()
    for words in without_effect(shape, wanted) if shape else ():
        print(f"lava up: {words}", file=sys.stderr)
    before = None if shape else set(folder.conf.rglob("*"))
    try:
        shape = shape or _make(folder, wanted)
        if wanted.confdir:
            copy_conf(Path(wanted.confdir), folder)
        write_profiles(folder.conf, folder.places())
        database = _database(folder, shape.database)
        names = folder.master_names(shape.masters)
        _start_master(folder, 1, names[0], shape.hosts[0], database, new=before is not None)
    except BaseException as error:
        if before is not None and not find_pid(folder, "lavad"):
            _unmake(folder, before)
        if isinstance(error, DaemonFailed):
            if before is None:
                _check(folder)
            raise CannotUp(str(error)) from None
        raise
    try:
        for number, name in enumerate(names[1:], 2):
            _start_master(folder, number, name, shape.hosts[0], database)
        masters = ",".join(address(str(folder.run), name) for name in names)
        for host in shape.hosts:
            _start_agent(folder, host, masters, shape.gpus)
        if wanted.web >= 0 or shape.web >= 0:
            _start_page(folder, shape, wanted.web)
    except DaemonFailed as failed:
        raise CannotUp(str(failed)) from None
    _wait_ok(folder, shape.hosts)
    _check(folder)  # last: lavad, if it was to be started, has read it too
    if wanted.web >= 0 or shape.web >= 0:
        write_url(folder)
        print(f"lava: the page is served; its address, signed in as you, is in {folder.run / 'web.url'}", file=sys.stderr)


def _refuse_conf(confdir: str) -> None:
    if confdir and not Path(confdir).is_dir():
        raise CannotUp(f"--conf {confdir}: not a folder")


def _start_page(folder: Folder, shape: Shape, wanted: int) -> None:
    port = start_page(folder, wanted if wanted > 0 else max(shape.web, 0))
    folder.keep_shape(shape._replace(web=port))
    if wanted > 0 and wanted != port:
        print(f"lava up: --web {wanted} changes nothing: the page runs at port {port} (lava down ends it)", file=sys.stderr)


def without_effect(shape: Shape, wanted: Wanted) -> list[str]:
    """What was asked for that a cluster is not, which was made before, a line each."""
    asked: list[tuple[str, int | str, int | str]] = []
    if wanted.hosts:
        asked.append(("--hosts", wanted.hosts, len(shape.hosts)))
    if wanted.slots:
        asked.append(("--slots", wanted.slots, shape.slots))
    if wanted.masters:
        asked.append(("--masters", wanted.masters, shape.masters))
    if wanted.gpus >= 0:
        asked.append(("--gpus", wanted.gpus, shape.gpus))
    found = [
        f"{name} {given} changes nothing: this cluster was made with {is_so}" for name, given, is_so in asked if given != is_so
    ]
    if wanted.database not in ("", shape.database):
        found.append("--database changes nothing: this cluster keeps the one that it was made with")
    return [f"{words} (lava down and another --dir make another)" for words in found]


def _unmake(folder: Folder, before: set[Path]) -> None:
    """Remove the shape and what has come into the configuration since."""
    folder.shape_file.unlink(missing_ok=True)
    for path in sorted(set(folder.conf.rglob("*")) - before, reverse=True):
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink(missing_ok=True)
    if (folder.path / "postgres").exists():
        _store(folder, "stop")


def _make(folder: Folder, wanted: Wanted) -> Shape:
    """Write the configuration of a new cluster; its shape. Raises CannotUp."""
    database = wanted.database or ("postgres" if wanted.masters > 1 else "sqlite")
    if wanted.masters > 1 and database.startswith("sqlite"):
        raise CannotUp("several masters need PostgreSQL: SQLite takes one writer")
    if wanted.confdir:
        copy_conf(Path(wanted.confdir), folder)
    hosts = _host_names(folder, wanted.hosts or 1)
    user = _user()
    extra = {
        "LAVA_RUNDIR": str(folder.run),
        "LAVA_SPOOLDIR": str(folder.spool),
        "LSB_SHAREDIR": str(folder.path / "work"),
        "LSF_CONFDIR": str(folder.conf),
        "LSF_LOGDIR": str(folder.log),
        "LSF_BINDIR": str(commands_folder()),
        "LSF_SERVERDIR": str(folder.path / "etc"),
        "LSF_LIBDIR": str(folder.path / "lib"),
        # short, so that a lost host is noticed within seconds; a site keeps the defaults
        "LAVA_HEARTBEAT": "1",
        "LAVA_HOST_TIMEOUT": "4",
        "LAVA_LEASE": "7",
        "LAVA_LEASE_MARGIN": "11",
        "LAVA_SAMPLE_PERIOD": "1",
    }
    if "LSB_CONFDIR" in read_lsf_conf(str(folder.conf / "lsf.conf")):
        extra["LSB_CONFDIR"] = str(folder.conf / "lsbatch")
    if os.geteuid() == 0:
        extra["LSF_ROOT_USER"] = "Y"
        if "LSF_ROOT_USER" not in read_lsf_conf(str(folder.conf / "lsf.conf")):
            print("lava: this cluster was started by root, so root's jobs are allowed in it (LSF_ROOT_USER=Y)", file=sys.stderr)
    sized = any((folder.conf / name).exists() for name in ("lsb.queues", "lsb.applications", "lsb.resources"))
    if wanted.confdir and sized and not (folder.conf / "lsf.conf").exists():
        # what a site wrote without setting a unit is in LSF's
        extra["LSF_UNIT_FOR_LIMITS"] = "KB"
    (folder.path / "etc").mkdir(exist_ok=True)
    (folder.path / "work").mkdir(exist_ok=True)
    slots = wanted.slots or os.cpu_count() or 1
    _add_parameters(folder, extra)
    write_cluster(folder.conf, _cluster_name(folder), [(host, slots) for host in hosts], [user], extra)
    shape = Shape(hosts, slots, wanted.masters or 1, database, max(0, wanted.gpus))
    _check(folder)
    folder.keep_shape(shape)
    return shape


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def _cluster_name(folder: Folder) -> str:
    """The name in the site's own lsf.cluster.NAME where it has one."""
    own = sorted(folder.conf.glob("lsf.cluster.*"))
    return own[0].name.removeprefix("lsf.cluster.") if len(own) == 1 else "lava"


def _host_names(folder: Folder, count: int) -> list[str]:
    """host1 … hostN, or those of the site's own lsf.cluster where it has one."""
    names = [f"host{number}" for number in range(1, count + 1)]
    if not list(folder.conf.glob("lsf.cluster.*")):
        return names
    from config.read.load import load

    listed = [host.name for host in load(str(folder.conf)).config.hosts if host.server]
    return names if not listed or set(names) <= set(listed) else listed[:count]


def copy_conf(source: Path, folder: Folder) -> None:
    """A site's configuration with the files that it includes, and its lsb.* files from where LSF has them."""
    for file in [*source.iterdir(), *_lsb_files(source)]:
        target = folder.conf / file.name
        if file.is_file() and not target.exists():
            shutil.copy(file, target)
        elif file.is_dir() and file.name not in ("lsbatch", "ego") and not target.exists():
            shutil.copytree(file, target)


def _lsb_files(source: Path) -> list[Path]:
    """The lsb.* files where LSF has them: LSB_CONFDIR/NAME/configdir."""
    from config.read.load import lsb_folder

    names = [file.name.removeprefix("lsf.cluster.") for file in source.glob("lsf.cluster.*")]
    folder = lsb_folder(str(source), str(source), names[0], read_lsf_conf(str(source / "lsf.conf"))) if len(names) == 1 else ""
    return sorted(Path(folder).glob("lsb.*")) if folder and Path(folder) != source else []


def _add_parameters(folder: Folder, extra: dict[str, str]) -> None:
    """Append to a site's own lsf.conf the folders and ports of this cluster, and the other parameters that it does not set."""
    path = folder.conf / "lsf.conf"
    if not path.exists():
        return
    known = read_lsf_conf(str(path))
    folders = ("LSF_BINDIR", "LSF_SERVERDIR", "LSF_LIBDIR", "LSF_CONFDIR", "LSB_CONFDIR", "LSF_LOGDIR")
    places = ("LAVA_RUNDIR", "LAVA_SPOOLDIR", *folders)
    lines = [f'{name}="{value}"' for name, value in extra.items() if name in places or name not in known]
    with path.open("a") as file:
        file.write("\n# --- this cluster\n" + "\n".join(lines) + "\n")


def _check(folder: Folder) -> None:
    from config.read.load import load

    wrong = [problem for problem in load(str(folder.conf)).problems if problem.fatal]
    if wrong:
        first = wrong[0]
        raise CannotUp(f"{first.where}: {first.text}")


def _database(folder: Folder, wanted: str) -> str:
    if wanted == "sqlite":
        return f"sqlite:///{folder.path}/lavad.sqlite"
    if wanted == "postgres":
        done = _store(folder, "start")
        if done.returncode:
            raise CannotUp(done.stderr.strip() or "the private PostgreSQL did not start")
        return done.stdout.strip()
    return wanted


def _store(folder: Folder, what: str) -> subprocess.CompletedProcess[str]:
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); from lavad.devtools.__main__ import main; sys.exit(main(sys.argv[1:]))"
    )
    words = [sys.executable, "-I", "-c", code, what, str(folder.path / "postgres")]
    return subprocess.run(words, capture_output=True, text=True, cwd="/", check=False)


def _start_master(folder: Folder, number: int, name: str, host: str, database: str, new: bool = False) -> None:
    """``new``: of a cluster that has no store yet, whose database is named wrongly rather than away."""
    if find_pid(folder, name):
        return
    start(
        folder,
        name,
        "lavad.main",
        [
            "--conf",
            str(folder.conf),
            "--run",
            str(folder.run),
            "--host",
            host,
            "--number",
            str(number),
            "--listen",
            address(str(folder.run), name),
            "--database-file",
            str(_secret(folder, "database", database)),
            "--log",
            str(folder.log / f"{name}.log"),
            *(["--no-wait"] if new else []),
        ],
    )


def _secret(folder: Folder, name: str, text: str) -> Path:
    """A file in the run folder that only this user can read, for what no command line may show."""
    path = folder.run / name
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text + "\n")
    return path


def _start_agent(folder: Folder, host: str, masters: str, gpus: int) -> None:
    if find_pid(folder, f"agent-{host}"):
        return
    words = [
        "--host",
        host,
        "--conf",
        str(folder.conf),
        "--run",
        str(folder.run),
        "--spool",
        str(folder.spool / host),
        "--master",
        masters,
        "--address",
        "127.0.0.1",
        "--pidfile",
        str(folder.pid_file(f"agent-{host}")),
        "--log",
        str(folder.log / f"agent-{host}.log"),
    ]
    if gpus:
        words += ["--gpus", str(gpus)]
    start(folder, f"agent-{host}", "agent.main", words)


def _wait_ok(folder: Folder, hosts: list[str]) -> None:
    """Return when every host is ok or closed. Raises CannotUp after READY_WITHIN seconds."""
    began = time.monotonic()
    deadline = began + READY_WITHIN
    states: dict[str, str] = {}
    told = False
    while time.monotonic() < deadline:
        states = _states(folder)
        if not states and not told and time.monotonic() > began + QUIET:
            print(f"lava up: lavad does not serve yet: {last_line(folder.log / 'lavad.log')}", file=sys.stderr)
            told = True
        if all(states.get(host, "").startswith(("ok", "closed")) for host in hosts):
            return
        time.sleep(0.1)
    missing = next(host for host in hosts if not states.get(host, "").startswith(("ok", "closed")))
    raise CannotUp(f"{missing} is not ok after {READY_WITHIN:.0f} s: {states.get(missing, 'unknown')}; see {folder.log}")


def _states(folder: Folder) -> dict[str, str]:
    for path in sorted(folder.run.glob("lavad*.sock")):
        text = query(path, "bhosts", {"noheader": True, "o": "host_name status"})
        if text is not None:
            return {words[0]: words[1] for line in text.splitlines() if len(words := line.split()) > 1}
    return {}


def _may_end(folder: Folder, pids: list[int]) -> None:
    """Raises CannotUp where these are processes of another user."""
    for pid in filter(None, pids):
        try:
            os.kill(pid, 0)
        except PermissionError:
            raise CannotUp(f"{folder.path}: its daemons are of another user: Operation not permitted") from None
        except ProcessLookupError:
            continue


def down(folder: Folder) -> None:
    """End every process that ``up`` started, and the jobs; raises CannotUp if something would not end."""
    names = [path.stem for path in sorted(folder.run.glob("*.pid"))]
    agents = [find_pid(folder, name) for name in names if name.startswith("agent-")]
    starters = [find_pid(folder, name) for name in names if name.startswith("starter-")]
    masters = [find_pid(folder, name) for name in names if name.startswith("lavad")]
    _may_end(folder, [*agents, *starters, *masters, find_pid(folder, "web")])
    everything = begun(children(agents + starters + masters))
    end(begun([find_pid(folder, "web")]), 3.0)
    end(begun(agents), 5.0)
    end(begun(starters), 10.0)
    end(begun(masters), 5.0)
    left = end(everything, 1.0)
    if (folder.path / "postgres").exists():
        _store(folder, "stop")
    if left:
        raise CannotUp(f"these processes would not end: {' '.join(map(str, sorted(left)))}")
