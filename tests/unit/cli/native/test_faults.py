"""Servers that are killed, hang, are swamped, changed or not the user's: a command is done, once."""

from __future__ import annotations

import os
import resource
import select
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

from tests.support.wait import wait_until
from tests.unit.cli.caller import Caller
from tests.unit.cli.native.installed import ROOT, WAS_PLAIN, Installed, Ran
from tests.unit.cli.scripted_master import CUT, Frame, ScriptedMaster

SUBMITTED = {"ok": {"job": 7, "queue": "q", "default": False}}
LOST = b"bsub: the process that ran this command has ended: whether it is done is not known\n"


@pytest.fixture
def served(installed: Installed, caller: Caller) -> Installed:
    installed.start(caller.environ)
    return installed


def sockets(installed: Installed) -> list[Path]:
    """Those of the servers that live, by the names in their command lines."""
    names = [Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[-2].decode() for pid in installed.servers()]
    folders = [Path(f"/run/user/{os.geteuid()}/lava-commands"), Path(f"/tmp/lava-commands-{os.geteuid()}")]
    return [path for folder in folders for name in names if (path := folder / name).exists()]


def test_folder_and_socket_are_the_users_alone(served: Installed) -> None:
    (path,) = sockets(served)
    found = [path.lstat(), path.parent.lstat()]
    assert [stat.S_IMODE(one.st_mode) & 0o077 for one in found] == [0, 0]
    assert {one.st_uid for one in found} == {os.geteuid()}


def test_servers_and_workers_that_were_killed(served: Installed, caller: Caller) -> None:
    """What is left of them stands in nobody's way."""
    served.end(signal.SIGKILL)
    assert served.run("bsub", "-V", environ=caller.environ) == WAS_PLAIN
    served.start(caller.environ)
    served.kill_workers()
    # one that had just taken the connection has not begun
    assert served.run("bsub", "-V", environ=caller.environ).status in (0, WAS_PLAIN[0])
    served.start(caller.environ)


def test_a_server_that_is_ended_leaves_nothing(served: Installed, caller: Caller) -> None:
    (path,) = sockets(served)
    served.end()
    assert not path.exists()
    assert not path.with_name(f"{path.name}.lock").exists()


def test_a_worker_that_is_killed_has_submitted_once(served: Installed, caller: Caller) -> None:
    """The command says that it does not know; it does not do it again."""

    def kill(_: Frame) -> list[Frame]:
        served.kill_workers()
        return [CUT]

    with ScriptedMaster(caller.socket, kill) as master:
        assert served.served("bsub", "true", environ=caller.environ) == (255, b"", LOST)
        assert len(master.asks) == 1


def test_a_worker_that_is_killed_before_it_asks_has_done_nothing(served: Installed, caller: Caller) -> None:
    """The command does it."""
    os.mkfifo(caller.folder / "fifo")

    def killed_at_the_fifo() -> Ran | None:
        words = [str(served.native / "bsub"), "-hostfile", "fifo", "true"]
        with subprocess.Popen(words, env=caller.environ, cwd=caller.folder, stdout=PIPE, stderr=PIPE) as command:
            end = wait_until(lambda: opened(caller.folder / "fifo") or command.poll() is not None, 20, "a worker")
            served.kill_workers()
            out, err = command.communicate(timeout=20)
        if isinstance(end, bool):  # no worker was ready
            return None
        os.close(end)
        return Ran(command.returncode, out, err)

    assert wait_until(killed_at_the_fifo, 60, "a worker that reads the fifo") == WAS_PLAIN


def opened(fifo: Path) -> int | None:
    """The other end of a fifo that somebody opens to read it."""
    with suppress(OSError):
        return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
    return None


def test_a_worker_that_is_killed_while_it_reads_a_script_has_taken_it(served: Installed, caller: Caller) -> None:
    """The rest of it alone would be another job."""

    def killed_while_it_reads() -> Ran | None:
        reading, writing = os.pipe()
        with subprocess.Popen([served.native / "bsub"], env=caller.environ, stdin=reading, stdout=PIPE, stderr=PIPE) as command:
            try:
                os.write(writing, b"echo\n")
                unread = select.poll()
                unread.register(reading, select.POLLIN)
                wait_until(lambda: not unread.poll(0) or command.poll() is not None, 20, "a worker")
                served.kill_workers()
            finally:
                os.close(writing)
                os.close(reading)
            out, err = command.communicate(timeout=20)
        ran = Ran(command.returncode, out, err)
        return None if ran == WAS_PLAIN else ran

    assert wait_until(killed_while_it_reads, 60, "a worker that reads a script") == (255, b"", LOST)


def test_what_a_command_says_before_it_needs_a_process_of_its_own_is_said_once(served: Installed, caller: Caller) -> None:
    """Its plain form says it."""
    script = b"#BSUB -K\r\necho\r\n"
    for _ in range(5):
        assert served.run("bsub", environ=caller.environ, stdin=script) == WAS_PLAIN


def test_a_worker_that_can_open_no_more_files_has_done_nothing(served: Installed, caller: Caller) -> None:
    """The command does it."""

    def done_by_itself() -> bool:
        for pid in served.workers():
            with suppress(OSError):
                taken = {int(path.name) for path in Path(f"/proc/{pid}/fd").iterdir()}
                most = min(set(range(100)) - taken) + 2  # the connection, and one of the caller's files
                resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, most))
        ran = served.run("bsub", "-V", environ=caller.environ)
        assert ran.status in (0, WAS_PLAIN[0])  # 0: by a worker that has begun meanwhile
        return ran == WAS_PLAIN

    wait_until(done_by_itself, 20, "a worker without room for the caller's files")
    served.end(signal.SIGKILL)


def test_a_server_that_is_killed_meanwhile_keeps_no_answer_back(served: Installed, caller: Caller) -> None:
    def kill(_: Frame) -> list[Frame]:
        for pid in served.servers():
            os.kill(pid, signal.SIGKILL)
        return [SUBMITTED]

    with ScriptedMaster(caller.socket, kill):
        assert served.served("bsub", "true", environ=caller.environ) == (0, b"Job <7> is submitted to queue <q>.\n", b"")
    served.end(signal.SIGKILL)


def test_a_server_that_hangs_is_passed_by(served: Installed, caller: Caller) -> None:
    """The first command waits for it, others do not; once it goes on it is found again."""
    (path,) = sockets(served)
    every = served.processes()
    for pid in every:
        os.kill(pid, signal.SIGSTOP)
    try:
        assert served.run("bsub", "-V", environ=caller.environ) == WAS_PLAIN
        assert not path.exists()
        assert served.run("bsub", "-V", environ=caller.environ) == WAS_PLAIN
        assert served.processes() == every
    finally:
        for pid in every:
            os.kill(pid, signal.SIGCONT)
    served.start(caller.environ)
    assert path.exists()


def test_a_signal_that_comes_with_the_answer_ends_the_command(served: Installed, caller: Caller) -> None:
    """Also where the answer is that the command is to do it by itself."""
    (path,) = sockets(served)
    served.end(signal.SIGKILL)
    left = [path.with_name(path.name + behind) for behind in ("", ".lock", ".silent")]
    for _ in range(10):
        for one in left:
            one.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(path))
            listening.listen()
            listening.settimeout(20)
            with subprocess.Popen([served.native / "bsub", "-V"], env=dict(caller.environ), stderr=subprocess.DEVNULL) as command:
                link, _ = listening.accept()
                asked = b""
                with link, suppress(OSError):
                    link.sendall(b"R")
                    asked = link.recv(1 << 17)
                    command.terminate()
                    link.sendall(b"P")
                assert command.wait(20) == -signal.SIGTERM or not asked, "a command that has waited for two seconds goes on"
    for one in left:
        one.unlink(missing_ok=True)


def test_two_hundred_at_once(served: Installed, caller: Caller) -> None:
    """From no server at all: each is done once, by whomever."""
    served.end()
    plain = served.behind / "bsub"
    kept = plain.read_bytes()
    plain.write_bytes((served.plain / "bsub").read_bytes())
    (caller.folder / "out").mkdir()
    line = f"for i in $(seq 200); do {served.native}/bsub -J j$i true >out/$i 2>&1 & done; wait"
    try:
        with ScriptedMaster(caller.socket, [SUBMITTED]) as master:
            subprocess.run(["/bin/bash", "-c", line], cwd=caller.folder, env=caller.environ, timeout=120, check=True)
            assert sorted(ask["options"]["J"] for ask in master.asks) == sorted(f"j{number}" for number in range(1, 201))
        outputs = {path.read_text() for path in (caller.folder / "out").iterdir()}
        assert outputs == {"Job <7> is submitted to queue <q>.\n"}
        assert len(served.servers()) == 1
    finally:
        plain.write_bytes(kept)


def test_a_worker_that_has_grown_is_not_used_again(served: Installed, caller: Caller) -> None:
    script = b"#" * 15_000_000 + b"\necho"
    with ScriptedMaster(caller.socket, [SUBMITTED]):
        before = set(served.workers())
        assert served.served("bsub", environ=caller.environ, stdin=script).status == 0
    wait_until(lambda: before - set(served.workers()), 30, "the end of the worker")


def test_a_user_has_eight_servers_at_most(served: Installed, caller: Caller) -> None:
    """One for each of the limits that differ; commands with others go on without."""
    for number in range(1, 12):
        words = ["nice", "-n", str(number), str(served.native / "bsub"), "-V"]
        before = len(served.servers())

        def done(words: list[str] = words) -> bool:
            return subprocess.run(words, env=caller.environ, capture_output=True, check=False).returncode == 0

        if before < 8:
            wait_until(done, 20, f"server {number}")
        else:
            assert not done()
    wait_until(lambda: len(served.servers()) == 8, 30, lambda: f"eight: {served.servers()}")
    served.end()


@pytest.fixture
def tree(executable: bytes, tmp_path: Path) -> Iterator[Installed]:
    """Commands of a copy of lava."""
    for package in ("cli", "config", "proto"):
        shutil.copytree(ROOT / package, tmp_path / "tree" / package, ignore=shutil.ignore_patterns("__pycache__"))
    made = Installed(tmp_path, executable, tmp_path / "tree")
    yield made
    made.end()


def test_no_command_is_done_by_an_older_lava(tree: Installed, caller: Caller) -> None:
    tree.start(caller.environ)
    (old,) = tree.servers()
    path = tree.folder / "tree" / "proto" / "version.py"
    path.write_text(path.read_text() + "\nPRODUCT = 'a newer lava'\n")
    assert tree.run("bsub", "-V", environ=caller.environ) == WAS_PLAIN
    wait_until(lambda: old not in tree.servers(), 30, "the end of the older server")
    tree.start(caller.environ)
    assert tree.run("bsub", "-V", environ=caller.environ).err == b"a newer lava\n"


def test_a_command_whose_files_have_changed_is_done_by_its_plain_form(tree: Installed, caller: Caller) -> None:
    """What a worker loads only now may be of another lava than itself."""
    tree.start(caller.environ)
    path = tree.folder / "tree" / "cli" / "submit" / "job_file.py"
    path.write_text(path.read_text().replace("def read_job_file", "def read_job_file_of_another_lava"))
    for _ in range(5):
        assert tree.run("bsub", "-json", "job.json", environ=caller.environ) == WAS_PLAIN


def test_a_server_whose_files_change_while_it_loads_them_serves_nobody(tree: Installed, caller: Caller) -> None:
    """It may have loaded the one half of an older lava and the other of a newer one."""
    path, marks = tree.folder / "tree" / "proto" / "version.py", tree.folder / "marks"
    kept = path.read_text()
    path.write_text(f"{kept}\nimport os\nos.utime(__file__)\nopen({str(marks)!r}, 'a').write('began ')\n")
    for number in range(1, 3):
        assert tree.run("bsub", "-V", environ=caller.environ) == WAS_PLAIN
        wait_until(lambda: marks.exists() and marks.read_text().count("began") == number, 20, "a server")  # noqa: B023
        wait_until(lambda: not tree.servers(), 20, "its end")
    path.write_text(kept)
    tree.start(caller.environ)


OTHER = 60_000 + os.getpid() % 5_000
"""A user without a login, one for each process of the tests."""
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: another user is met")


@pytest.fixture(scope="module")
def everybodys(executable: bytes) -> Iterator[Installed]:
    """Commands that another user can run."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        made = Installed(Path(folder), executable)
        yield made
        made.end()


@pytest.fixture
def others_folder(everybodys: Installed) -> Iterator[Path]:
    """Where a user without a login has the folder of servers."""
    path = Path(f"/tmp/lava-commands-{OTHER}")
    yield path
    everybodys.end()
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)


@needs_root
@pytest.mark.parametrize("trap", ["of another user", "open to others", "a link", "a file"])
def test_a_folder_that_may_be_anothers_is_not_used(
    everybodys: Installed, caller: Caller, tmp_path: Path, others_folder: Path, trap: str
) -> None:
    others = others_folder
    if trap == "a link":
        (tmp_path / "there").mkdir(mode=0o700)
        os.chown(tmp_path / "there", OTHER, OTHER)
        others.symlink_to(tmp_path / "there")
    elif trap == "a file":
        others.touch()
        os.chown(others, OTHER, OTHER)
    else:
        others.mkdir(mode=0o700)
        if trap == "open to others":
            os.chown(others, OTHER, OTHER)
            others.chmod(0o770)
    before = set(everybodys.servers())
    for _ in range(2):
        assert as_other(everybodys, caller) == WAS_PLAIN
    assert set(everybodys.servers()) == before
    assert others.is_file() or not list(others.iterdir())


def as_other(everybodys: Installed, caller: Caller, umask: int = 0o022) -> Ran:
    """``bsub -V`` of the other user, from a folder that is everybody's."""
    who: dict[str, Any] = {"user": OTHER, "group": OTHER, "extra_groups": [], "cwd": "/", "umask": umask}
    return everybodys.run("bsub", "-V", environ=caller.environ, **who)


@needs_root
def test_a_umask_that_takes_the_users_own_rights(everybodys: Installed, caller: Caller, others_folder: Path) -> None:
    """Folder and lock serve later commands all the same."""
    wait_until(lambda: as_other(everybodys, caller, 0o777).status == 0, 30, "a server")
    assert {stat.S_IMODE(path.lstat().st_mode) & 0o600 for path in (others_folder, *others_folder.iterdir())} == {0o600}


@needs_root
def test_a_server_serves_its_user_alone(everybodys: Installed, caller: Caller, others_folder: Path) -> None:
    """Root is another user, too, on either side."""
    before = set(everybodys.servers())
    wait_until(lambda: as_other(everybodys, caller).status == 0, 30, "a server of the other user's")
    (server,) = set(everybodys.servers()) - before
    assert Path(f"/proc/{server}").stat().st_uid == OTHER
    (path,) = [path for path in others_folder.iterdir() if stat.S_ISSOCK(path.lstat().st_mode)]
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        link.connect(str(path))
        assert link.recv(1) == b""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        path.rename(path.with_name("kept"))
        listener.bind(str(path))
        path.chmod(0o777)
        listener.listen()
        assert as_other(everybodys, caller) == WAS_PLAIN
