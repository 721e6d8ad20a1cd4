"""Parts of one process by native code: what a task gets and what is told of it is as by Python, which takes over the rest."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.starter.part import native_parts
from agent.starter.process import ends
from agent.starter.system import shm
from agent.starter.wire.frames import pack
from cli.install_commands import make_library
from cli.native.build import LIBRARY, is_current
from tests.support.daemons.both_ways import CHANGES, ENV, LIMITS, WORDS
from tests.support.daemons.shepherds import SHOW, Shepherd, are_below, below, has_below, start_time
from tests.support.daemons.starters import boottime
from tests.support.examples import examples
from tests.support.processes import is_alive, state_of
from tests.support.wait import wait_until

ROOT = Path(__file__).resolve().parents[5]


def _shown(end: dict[str, Any], one: Shepherd) -> tuple[Any, ...]:
    """What does not change from one run to the next of what the task saw, and of its end."""
    own = end["end"]
    kinds = [(name, type(value)) for name, value in own.items() if name not in ("at", "started")]
    tasks = [{**task, "pid": 0, "at": 0, "utime": 0, "stime": 0, "maxrss_kb": 0} for task in own["tasks"]]
    return re.sub(CHANGES, b"", one.out.read_bytes(), flags=re.M), own["status"], own["cwd"], tasks, kinds, end.get("gone")


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    template=ENV,
    own=ENV,
    words=st.lists(WORDS.filter(bool), max_size=2),
    limits=LIMITS,
    umask=st.integers(0, 0o777),
    nice=st.integers(0, 3),
)
def test_a_task_has_the_same_by_native_code_and_by_python(
    both: tuple[Shepherd, Shepherd],
    template: dict[str, str],
    own: dict[str, str],
    words: list[str],
    limits: Any,
    umask: int,
    nice: int,
) -> None:
    fields = {
        "env": {"PATH": "/usr/bin:/bin", **template},
        "argv": [*SHOW, *words],
        "rlimits": limits,
        "umask": umask,
        "nice": nice,
    }
    seen = [_shown(one.run(one.template(**fields), one.part(env=own)), one) for one in both]
    assert seen[0] == seen[1]


def test_a_part_that_ends_well_never_meets_python(native: Shepherd) -> None:
    for _ in range(3):
        end = native.run(native.template(), native.part())
        assert (end["end"]["status"], end["gone"]) == (0, True)
        assert end["end"]["cwd"] == "/tmp"
        told = ends.find_told(native.said)
        assert told is not None, "the starter reads it, and writes it again for agent and journal"
        assert (told.uid, told.encoded.report(gone=True)) == (f"u{native.parts}", native.said)
    assert native.noted() == []
    assert set(ends.read_ends(str(native.folder / "1.end"))) == {"u1", "u2", "u3"}


def test_files_are_opened_as_by_python(native: Shepherd, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("input\n")
    out, err = {"path": str(tmp_path / "o"), "append": True}, {"path": str(tmp_path / "e")}
    command = ["sh", "-c", "cat; echo wrong >&2; pwd"]
    template = native.template(argv=command, stdin=str(tmp_path / "in"), stdout=out, cwd=str(tmp_path), umask=0o077)
    native.run(template, native.part(stderr=err))
    native.run(native.part())
    assert (tmp_path / "o").read_text() == f"input\n{tmp_path}\ninput\nwrong\n{tmp_path}\n"
    assert (tmp_path / "e").read_text() == "wrong\n"
    assert (tmp_path / "o").stat().st_mode & 0o777 == 0o600
    assert native.noted() == []


def test_a_fifo_is_opened_once_also_where_the_part_goes_to_python(native: Shepherd, tmp_path: Path) -> None:
    fifo, out = tmp_path / "fifo", tmp_path / "new" / "out"
    os.mkfifo(fifo)
    with subprocess.Popen(["sh", "-c", 'echo input > "$0"', fifo]) as writer:
        native.run(native.template(argv=["cat"]), native.part(stdin=str(fifo), stdout={"path": str(out), "mkdir": True}))
    assert (writer.returncode, out.read_text()) == (0, "input\n")
    assert native.noted() == ["begin u1"]
    native.run(native.part(stdin="/dev/null"))
    assert native.noted() == ["begin u1"]


def test_a_job_file_is_written_and_goes_with_the_part(native: Shepherd, tmp_path: Path) -> None:
    path = str(tmp_path / "job")
    script = "#!/bin/sh\necho \u00e9 $0\n"
    native.run(native.template(script=script), native.part(argv=[path], jobfile={"path": path, "remove": True}))
    assert native.out.read_text() == f"\u00e9 {path}\n"
    assert not os.path.exists(path)
    native.run(native.part(argv=[path], jobfile={"path": path, "mode": 0o500}))
    assert os.stat(path).st_mode & 0o777 == 0o500
    assert native.noted() == []


@pytest.mark.parametrize(
    "own",
    [
        {"argv": ["/is/not/there"]},
        {"argv": ["isnotthere"]},
        {"argv": ["/etc/passwd"]},
        {"cwd": "/is/not/there", "cwd_else": ["/"]},
        {"stdout": {"path": "/is/not/there/out"}},
        {"stdout": {"path": "/dev/null", "mkdir": True}},
        {"stdin": "/is/not/there"},
        {"env": {"": "x", "a=b": "c", "nul": "\0"}},
        {"argv": []},
        {"rlimits": {"NOFILE": [None, 100], "what": [1, 1]}},
        {"deadline": -1.0},
        {"tasks": []},
        {"tasks": [{"rank": 0, "env": {}}, {"rank": 1, "env": {}}]},
        {"pre_exec": "true"},
        {"notes": True},
        {"input": "aGFsbG8K"},
        {"bind": {"cpus": [0], "nodes": []}},
        {"a_field": "of a newer agent"},
    ],
    ids=lambda own: next(iter(own)),
)
def test_what_native_code_does_not_do_python_does_as_ever(both: tuple[Shepherd, Shepherd], own: dict[str, Any]) -> None:
    told = []
    assert native_parts.knows(own) or own.keys() & {"tasks", "pre_exec", "notes", "input", "bind", "a_field"}
    for one in both:
        one.send(one.template(), one.part(**own))
        uid = f"u{one.parts}"
        if "tasks" in own and not own["tasks"]:
            one.report("started")
            one.send(pack({"do": "kill", "uids": [uid]}))
        told.append(one.outcome())
        assert f"begin {uid}" in one.noted()
    assert told[0] == told[1]


def test_a_task_that_left_shared_memory_behind_is_taken_over(native: Shepherd) -> None:
    failed = native.run(native.template(argv=["/bin/sh", "-c", "exit 3"]), native.part())
    assert (os.waitstatus_to_exitcode(failed["end"]["status"]), failed["gone"]) == (3, True)
    killed = native.run(native.template(argv=["/bin/sh", "-c", "kill -9 $$"]), native.part())
    assert killed["end"]["status"] == signal.SIGKILL
    assert native.noted() == []
    for name in shm.NAMES:
        file = f"/dev/shm/{name}{os.getpid()}"
        shared = native.run(native.template(argv=["/bin/sh", "-c", f"echo > {file}; exit 4"]), native.part())
        assert (os.waitstatus_to_exitcode(shared["end"]["status"]), os.path.exists(file)) == (4, False)
    assert native.noted() == [f"take_over u{number + 3}" for number in range(len(shm.NAMES))]
    assert native.run(native.template(), native.part())["gone"]
    assert len(native.noted()) == len(shm.NAMES)


TREE = "sleep 1000 & (sleep 1000 & setsid sleep 1000 & wait) & setsid sh -c 'trap \"\" TERM; sleep 1000; :' & echo ready; wait"


def test_one_that_has_ended_is_not_told_of_as_started(both: tuple[Shepherd, Shepherd]) -> None:
    """Its number may be another process's by then; what it has left behind is still there when its start would be told."""
    for one in both:
        one.send(one.template(argv=["/bin/sh", "-c", "sleep 0.03 & exit 0"]), one.part())
        told = [one.next()]
        while told[-1]["is"] != "gone" and not told[-1].get("gone"):
            told.append(one.next())
        assert [report["is"] for report in told if report["is"] != "gone"] in (["ended"], ["started", "ended"])
        for report in told:
            assert all(task["starttime"] for task in report.get("tasks", ()) if report["is"] == "started")


@pytest.mark.parametrize(("program", "count"), [("exec sleep 1000", 1), (TREE, 7)], ids=["one", "tree"])
def test_a_kill_ends_all_of_a_part(both: tuple[Shepherd, Shepherd], program: str, count: int) -> None:
    for one in both:
        noted = len(one.noted())
        one.send(one.template(argv=["/bin/sh", "-c", program]), one.part())
        uid = one.report("started")["uid"]
        root = one.process.pid
        wait_until(partial(has_below, root, count), 20, "its processes")
        pids = below(root)
        one.send(pack({"do": "kill", "uids": ["another"]}), pack({"do": "kill", "uids": [uid], "posts": True}))
        assert one.next() == {"is": "killing", "uid": uid}
        assert one.outcome() == (signal.SIGKILL, None)
        assert not any(map(is_alive, pids))
        assert one.run(one.template(), one.part())["gone"]
        assert len(one.noted()) > noted or one is both[0]


def test_a_kill_of_more_than_native_code_takes_is_python_s(native: Shepherd) -> None:
    many = "for i in $(seq 70); do sleep 1000 & done; wait"
    native.send(native.template(argv=["/bin/sh", "-c", many]), native.part())
    wait_until(lambda: len(below(native.process.pid)) == 71, 20, "its processes")
    pids = below(native.process.pid)
    native.send(pack({"do": "kill", "uids": ["u1"]}))
    assert native.report("killing")["uid"] == "u1"
    assert native.outcome() == (signal.SIGKILL, None)
    assert not any(map(is_alive, pids))
    assert native.run(native.part(argv=["true"]))["gone"]
    assert native.noted() == ["take_over u1"]


TRAPS = "trap 'echo got; kill $! 2>/dev/null; wait; exit 0' USR1; sleep 1000 & echo ready; wait"


@pytest.mark.parametrize("scope", ["tasks", "groups", "catching"])
def test_a_signal_to_a_running_task(native: Shepherd, scope: str) -> None:
    """Python has to do with it only where it is to be waited for that the task has a handler."""
    native.send(native.template(argv=["/bin/sh", "-c", TRAPS]), native.part())
    started = native.report("started")
    assert started["tasks"][0]["starttime"] == start_time(started["tasks"][0]["pid"])
    assert started["shepherd"] == native.process.pid
    wait_until(lambda: native.out.read_text() == "ready\n", 20, "the handler")
    native.send(pack({"do": "signal", "uids": ["u1"], "sig": signal.SIGUSR1, "scope": scope}))
    assert native.report("ended")["end"]["status"] == 0
    assert native.noted() == (["take_over u1"] if scope == "catching" else [])
    assert native.out.read_text() == "ready\ngot\n"


def test_all_groups_of_a_part_are_signalled_stopped_and_resumed(both: tuple[Shepherd, Shepherd]) -> None:
    program = "setsid sh -c 'sleep 1000; :' & exec sleep 1000"
    for one in both:
        noted = len(one.noted())
        one.send(one.template(argv=["/bin/sh", "-c", program]), one.part())
        uid, root = one.report("started")["uid"], one.process.pid
        wait_until(partial(are_below, root, ["sh", "sleep", "sleep"]), 20, "its processes")
        for sig, state in ((signal.SIGSTOP, "T"), (signal.SIGCONT, "S")):
            one.send(pack({"do": "signal", "uids": [uid], "sig": sig}))
            wait_until(lambda root=root, state=state: {state_of(pid) for pid in below(root)} == {state}, 20, state)  # type: ignore[misc]
        one.send(pack({"do": "signal", "uids": [uid], "sig": signal.SIGTERM}))
        assert one.outcome() == (signal.SIGTERM, None)
        one.send(pack({"do": "signal", "uids": [uid], "sig": signal.SIGTERM}))
        assert one.run(one.template(), one.part())["gone"]
        assert len(one.noted()) > noted or one is both[0]


def test_a_lease_is_renewed_and_ends_the_part_when_it_passes(both: tuple[Shepherd, Shepherd]) -> None:
    for one in both:
        noted = len(one.noted())
        one.send(one.template(argv=["sleep", "1000"]), one.part(deadline=boottime() + 30))
        uid = one.report("started")["uid"]
        one.send(pack({"do": "renew", "uids": [uid], "deadline": boottime() + 1000}))
        one.send(pack({"do": "signal", "uids": [uid], "sig": signal.SIGTERM}))
        end = one.report("ended")
        assert (end["end"]["status"], end["end"]["lease"], end["gone"]) == (signal.SIGTERM, False, True)
        assert len(one.noted()) > noted or one is both[0]
        one.send(one.part(deadline=boottime() + 1000))
        uid = one.report("started")["uid"]
        one.send(pack({"do": "renew", "uids": [uid], "deadline": boottime() + 0.05}))
        end = one.report("ended")
        assert (end["end"]["status"], end["end"]["lease"]) == (signal.SIGKILL, True)
        if not end.get("gone"):
            one.report("gone")
        one.send(one.part(deadline=boottime() - 1))
        assert one.outcome() == ("stale", f"the lease of {one.parts} had passed before it started")


def test_python_goes_on_with_the_lease_as_it_was_renewed(native: Shepherd) -> None:
    native.send(native.template(argv=["sleep", "1000"]), native.part(deadline=boottime() + 1000))
    native.report("started")
    native.send(pack({"do": "renew", "uids": ["u1"], "deadline": boottime() + 0.2}))
    native.send(pack({"do": "signal", "uids": ["u1"], "sig": signal.SIGUSR1, "scope": "catching", "within": 1000.0}))
    assert native.report("ended")["end"]["lease"]
    assert native.noted() == ["take_over u1"]


def test_the_end_of_the_starter_ends_the_task_without_an_end(library: Path, tmp_path: Path) -> None:
    one = Shepherd(tmp_path, library)
    one.send(one.template(argv=["sleep", "1000"]), one.part())
    pid = one.report("started")["tasks"][0]["pid"]
    assert one.close() == 0
    assert not os.path.exists(f"/proc/{pid}")
    assert ends.read_ends(str(tmp_path / "1.end")) == {}


def test_frames_come_in_any_pieces_and_sizes(native: Shepherd) -> None:
    for byte in native.template(env={"A": '\U0001f600\udcff"\\/\n'}) + native.part():
        native.send(bytes([byte]))
    assert native.report("ended")["gone"]
    assert native.out.read_bytes().startswith(b'A=\xf0\x9f\x98\x80\xff"\\/\n\0LAVA_ATTEMPT=u1\0')
    assert native.noted() == []
    large = native.run(native.template(env={f"V{n}": "x" * 1000 for n in range(1500)}), native.part())
    assert large["end"]["status"] == 0
    assert native.noted() == ["begin u2"], "the frame of the template is larger than native code takes"
    assert native.run(native.template(), native.part())["gone"]
    assert len(native.noted()) == 1


def test_templates_of_either_side_are_there_for_both_until_they_are_dropped(native: Shepherd) -> None:
    native.run(native.template(), native.part())
    assert native.run(native.part(pre_exec="true"))["end"]["status"] == 0, "a template that native code has, for Python"
    native.run(native.template(drop=(1,)), native.part())
    native.send(native.part(template=1))
    assert native.report("refused")["code"] == "bad"
    native.report("gone")
    assert native.noted() == ["begin u2"]


def test_a_broken_frame_ends_the_connection_as_by_python(library: Path, tmp_path: Path) -> None:
    for frame in (b"\0\0\0\2{]", pack([1]), b"\xff\xff\xff\xff", b"\0\0\0\x10" + b'{"do":"part"]   '):
        one = Shepherd(tmp_path, library)
        one.send(frame)
        assert one.wait() == 0, frame
        one.socket.close()


@pytest.fixture
def root(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the sources and the library made from them; what is loaded in the test is forgotten after it."""
    monkeypatch.setattr(native_parts._Loaded, "library", None)
    monkeypatch.delenv("LAVA_NATIVE", raising=False)
    shutil.copytree(os.path.dirname(native_parts.LIBRARY), tmp_path / os.path.dirname(LIBRARY))
    shutil.copy(library, tmp_path / LIBRARY)
    return tmp_path


def test_the_library_is_loaded_from_memory(root: Path) -> None:
    assert native_parts.load(str(root / LIBRARY)) == ""
    assert native_parts.program().startswith(b"\x7fELF"), "the program behind it"
    maps = Path("/proc/self/maps").read_text()
    assert "memfd:parts" in maps
    assert str(root) not in maps


def test_a_library_made_from_other_sources_is_not_loaded_but_made_again_or_removed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = root / LIBRARY
    header = path.with_name("native.h")
    text = header.read_text()
    assert is_current(str(root))
    header.write_text(text + "/* changed */\n")
    os.utime(header, ns=(0, 0))
    assert not is_current(str(root))
    assert native_parts.load(str(path)).endswith("made from other sources than those beside it")
    make_library(str(root))
    assert is_current(str(root))
    assert native_parts.load(str(path)) == ""
    header.write_text(text)
    monkeypatch.setenv("CC", "false")
    make_library(str(root))
    assert not path.exists()
    assert native_parts.load(str(path)).endswith("No such file or directory")


def test_plain_removes_the_library(root: Path) -> None:
    make_library(str(root), plain=True)
    assert not (root / LIBRARY).exists()
    make_library(str(root), plain=True)
