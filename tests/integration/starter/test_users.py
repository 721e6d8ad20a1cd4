"""A starter of root: parts become their user, and nothing that users do gets out of it."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.daemons.starters import ENTRY, NOBODY, Rig
from tests.support.processes import is_alive
from tests.support.wait import wait_until

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture
def open_rig(rig: Rig) -> Rig:
    """A rig in a folder that everybody reaches."""
    rig.folder.chmod(0o755)
    (rig.folder / "work").mkdir()
    os.chown(rig.folder / "work", 65534, 65534)
    return rig


@root_only
def test_a_part_is_its_user_before_it_touches_anything(open_rig: Rig) -> None:
    rig, work = open_rig, str(open_rig.folder / "work")
    user = {**NOBODY, "groups": [65534, 4242]}
    rig.run("who", "id -u; id -g; id -G; touch made", user=user, cwd=work, stdout={"path": f"{work}/o"})
    uid, gid, groups = (open_rig.folder / "work" / "o").read_text().splitlines()
    assert (uid, gid, sorted(groups.split())) == ("65534", "65534", ["4242", "65534"])
    for name in ("o", "made"):
        found = os.stat(f"{work}/{name}")
        assert (found.st_uid, found.st_gid) == (65534, 65534)
    rig.order(rig.part("root-file", "true", user=user, cwd=work, stdout={"path": str(rig.folder / "not-mine")}))
    assert rig.report("root-file", "refused")["code"] == "output"
    (rig.folder / "secret").write_text("x")
    (rig.folder / "secret").chmod(0o600)
    rig.send({"do": "read", "id": 1, "user": user, "path": str(rig.folder / "secret"), "offset": 0, "limit": 9})
    assert "Permission denied" in rig.frame("data")["error"]
    forkers = rig.forkers()
    rig.order(rig.part("nobody", "true", user={**NOBODY, "groups": [65534, 2**32]}))
    assert rig.report("nobody", "refused")["code"] == "no_user"
    assert rig.forkers() == forkers


@root_only
def test_a_user_cannot_look_into_or_out_of_the_shepherd(open_rig: Rig) -> None:
    rig, work = open_rig, str(open_rig.folder / "work")
    command = "ls /proc/$PPID/fd; cat /proc/$PPID/environ; ls /proc/self/fd; kill -KILL $PPID"
    rig.order(rig.part("peek", command, user=NOBODY, cwd=work, stdout={"path": f"{work}/o"}))
    assert "signal 9" in rig.report("peek", "lost")["reason"]
    text = (open_rig.folder / "work" / "o").read_text()
    assert text.count("Permission denied") == 2
    assert [line for line in text.splitlines() if line.isdigit()] == ["0", "1", "2", "3"]


@root_only
def test_a_starter_of_an_ordinary_user_serves_that_user_only(tmp_path: Path) -> None:
    if not os.access(ENTRY, os.R_OK) or "/root" in sys.executable:
        pytest.skip("the interpreter cannot be reached by others")
    os.chown(tmp_path, 65534, 65534)
    rig = Rig(tmp_path).start(user=65534)
    assert rig.run("mine", "id -u", user=NOBODY)["status"] == 0
    assert rig.text("mine") == "65534\n"
    rig.order(rig.part("root", "id -u"))
    assert rig.report("root", "refused")["code"] == "no_user"
    assert rig.stop() == 0


@root_only
def test_a_folder_of_path_that_the_user_cannot_search_has_no_program(open_rig: Rig) -> None:
    """127 as a shell has it, not 126."""
    hidden = open_rig.folder / "hidden"
    hidden.mkdir(mode=0o700)
    end = open_rig.run("none", ["no-such-command"], user=NOBODY, env={"PATH": f"{hidden}:/bin"}, stdout=None, cwd="/")
    assert os.waitstatus_to_exitcode(end["status"]) == 127


@root_only
def test_a_fork_bomb_is_ended(open_rig: Rig) -> None:
    rig = open_rig
    # a shell would end by itself where it cannot fork
    bomb = "exec perl -e 'while (1) { fork; select(undef, undef, undef, 0.01) }'"
    user = {"name": "bomber", "uid": 61234, "gid": 61234, "groups": [61234]}
    rig.order(rig.part("bomb", bomb, user=user, cwd="/tmp", stdout=None, rlimits={"NPROC": [60, 60]}))
    shepherd = int(Path(f"/proc/{rig.pid_of('bomb')}/stat").read_text().split()[3])
    wait_until(lambda: len(users_processes(61234)) > 30, 20, "the bomb")
    rig.send({"do": "kill", "uids": ["bomb"]})
    rig.gone("bomb", 30)
    assert users_processes(61234) in ([], [shepherd])


def users_processes(uid: int) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == uid and is_alive(int(name)):
                found.append(int(name))
    return found


@root_only
def test_a_process_that_became_another_user_is_ended_too(open_rig: Rig) -> None:
    """Only root can signal it: the shepherd, who is the user, asks the starter."""
    rig = open_rig
    program = rig.folder / "work" / "sleeper"
    shutil.copy("/bin/sleep", program)
    os.chown(program, 0, 0)
    program.chmod(0o4755)
    rig.order(rig.part("setuid", [str(program), "100"], user=NOBODY, cwd="/", stdout=None))
    pid = rig.pid_of("setuid")
    if os.stat(f"/proc/{pid}").st_uid != 0:
        pytest.skip("set-user-id programs are not honoured on this file system")
    rig.send({"do": "kill", "uids": ["setuid"]})
    rig.gone("setuid")
    assert not is_alive(pid)


def test_root_of_a_name_space_that_has_no_other_user_runs_its_own(tmp_path: Path) -> None:
    """As in a container without subordinate users: the kernel lets nobody there choose groups."""
    if subprocess.run(["unshare", "-r", "true"], check=False, capture_output=True).returncode:
        pytest.skip("this kernel lets nobody make name spaces of users")
    rig = Rig(tmp_path)
    rig.under = ["unshare", "-r"]
    rig.start()
    root = {"name": "root", "uid": 0, "gid": 0, "groups": [0]}
    assert rig.run("a", "id -u", user=root)["status"] == 0
    assert rig.text("a") == "0\n"
    # one for which its shepherd becomes Python
    assert rig.run("b", "(trap '' TERM; sleep 1000) & exit 3", user=root, grace=0.1)["status"] == 3 << 8
    rig.gone("b")
    assert rig.run("c", "exit 4", user=root, pre_exec="true")["status"] == 4 << 8
    assert rig.stop() == 0
