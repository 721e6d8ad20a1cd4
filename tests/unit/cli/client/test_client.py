"""The way to the master: what happens when it is away, changes, or breaks off."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.client import client as client_module
from cli.client import frames
from cli.client.client import STILL_TRYING, Client
from cli.client.context import Context, Fail
from tests.support.full_socket import Connecting, FullSocket
from tests.support.wait import wait_until
from tests.unit.cli.caller import Caller
from tests.unit.cli.scripted_master import CUT, DROP, ScriptedMaster

DONE = [{"ok": {"results": [{"id": "1", "ok": True}]}}]
SUBMITTED = [{"ok": {"job": 12, "queue": "normal", "default": True}}]


def test_a_lost_answer_is_asked_for_again_with_the_same_uuid(caller: Caller):
    with ScriptedMaster(caller.socket, DROP, SUBMITTED) as master:
        ran = caller.run("bsub", "true")
    assert ran == (0, "Job <12> is submitted to default queue <normal>.\n", "")
    first, second = master.asks
    assert first["uuid"] == second["uuid"]
    assert len(first["uuid"]) == 32
    assert first["again"] is False
    assert {**first, "again": True} == second


def test_lavads_folder_of_its_own_beside_the_run_folder_is_looked_into(caller: Caller):
    """Where lavad runs under an account of its own, root's daemons have the run folder to themselves."""
    (caller.folder / "lsf.conf").write_text(f"LAVA_RUNDIR={caller.folder}/lava\n")
    own = caller.folder / "lava-master"
    own.mkdir()
    with ScriptedMaster(own / "lavad.sock", SUBMITTED):
        assert caller.run("bsub", "true").out == "Job <12> is submitted to default queue <normal>.\n"


@pytest.mark.parametrize(
    "words",
    [
        ("bjobs", "-J", "a\udcffb"),
        ("bkill", "-J", "a\udcffb", "0"),
        ("bhist", "-q", "a\udcffb"),
        ("bacct", "-f", "/dev/null", "a\udcffb"),
    ],
)
def test_a_word_that_is_no_text_is_refused_here(caller: Caller, words: tuple[str, ...]):
    with ScriptedMaster(caller.socket) as master:
        assert caller.run(*words) == (255, "", "a\\xffb: This holds bytes that are not UTF-8\n")
    assert not master.asks


def test_a_rare_character_is_sent(caller: Caller):
    with ScriptedMaster(caller.socket, [{"exit": 0}]) as master:
        caller.run("bjobs", "-J", "\U0001f400")
    assert master.asks[0]["options"]["J"] == "\U0001f400"


def test_an_answer_cut_in_the_middle_counts_for_nothing(caller: Caller):
    with ScriptedMaster(caller.socket, [{"out": "half"}, CUT], [{"out": "whole\n"}, {"exit": 0}]):
        assert caller.run("bjobs") == (0, "whole\n", "")


def test_a_standby_sends_on_to_the_next_socket(caller: Caller):
    with ScriptedMaster(caller.socket, [{"standby": True}]), ScriptedMaster(caller.folder / "lavad-2.sock", DONE) as second:
        ran = caller.run("bkill", "1")
    assert ran == (0, "Job <1> is being terminated\n", "")
    assert len(second.asks) == 1


def test_the_agent_is_asked_where_no_lavad_is(caller: Caller):
    with ScriptedMaster(caller.folder / "agent.sock", DONE):
        assert caller.run("bkill", "1").status == 0


def test_a_job_asks_the_socket_that_it_was_given(caller: Caller):
    with ScriptedMaster(caller.folder / "host.sock", DONE):
        ran = caller.run("bkill", "1", LSF_ENVDIR="/nosuch", LAVA_SOCKET=str(caller.folder / "host.sock"))
    assert ran.status == 0


def test_later_means_wait(caller: Caller):
    with ScriptedMaster(caller.socket, [{"later": True}], [{"later": True}], DONE) as master:
        ran = caller.run("bkill", "1")
    assert ran == (0, "Job <1> is being terminated\n", STILL_TRYING)
    assert len({ask["uuid"] for ask in master.asks}) == 1
    assert len(master.asks) == 3


def test_a_master_that_is_silent_is_told_of(caller: Caller, monkeypatch: pytest.MonkeyPatch):
    told, tell = threading.Event(), Client._tell

    def tells(client: Client) -> None:
        tell(client)
        told.set()

    monkeypatch.setattr(Client, "_tell", tells)
    monkeypatch.setattr(client_module, "TELL_EVERY", 0.2)
    with ScriptedMaster(caller.socket, lambda _: DONE if told.wait(30) else []) as master:
        ran = caller.run("bkill", "1")
    assert ran.status == 0
    assert ran.out == "Job <1> is being terminated\n"
    assert set(ran.err.splitlines(keepends=True)) == {STILL_TRYING}
    assert len(master.asks) == 1, "it is not asked again meanwhile"


def test_a_master_that_stays_silent_is_left(caller: Caller, monkeypatch: pytest.MonkeyPatch):
    """After one silence: a master that has stopped holds its socket for as long as one likes."""
    over = threading.Event()
    monkeypatch.setattr(client_module, "TELL_EVERY", 0.05)
    said: list[str] = []
    monkeypatch.setattr(Client, "_tell", lambda _: said.append("told"))
    context = Context([], str(caller.folder), {**caller.environ, "LSB_NTRIES": "1"}, 0, 1, 2)
    with ScriptedMaster(caller.socket, lambda _: DONE if over.wait(30) else [], at_once=True) as master:
        with pytest.raises(Fail, match=r"^batch system daemon not responding$"):
            Client(context, {"LAVA_RUNDIR": str(caller.folder)}).ask({"ask": "kill"}, patience=0.1)
        over.set()
    assert said == ["told"]
    assert len(master.asks) == 1


def test_a_place_in_the_queue_of_a_socket_is_waited_for(caller: Caller, monkeypatch: pytest.MonkeyPatch):
    """Others in front, however many, are no master that does not answer."""
    connecting = Connecting()
    monkeypatch.setattr(client_module, "Socket", connecting.kind)
    with ThreadPoolExecutor(1) as pool, FullSocket(caller.socket) as full:
        ran = pool.submit(caller.run, "bkill", "1", LSB_NTRIES="2")
        connecting.waits()
        with full.next() as link:
            link.recv(1 << 16)
            link.sendall(frames.pack(DONE[0]))
        assert ran.result(30) == (0, "Job <1> is being terminated\n", "")


def test_a_command_waits_for_a_master_that_is_not_there_yet(caller: Caller):
    """The message of LSF, and then the answer of the master that came."""
    masters: list[ScriptedMaster] = []
    started = threading.Event()

    def come() -> None:
        started.wait(30)
        masters.append(ScriptedMaster(caller.socket, DONE))

    coming = threading.Thread(target=come)
    coming.start()
    reading, writing = os.pipe()
    command = [sys.executable, "-c", "import sys; from cli.bkill import main; sys.exit(main(['1']))"]
    process = subprocess.Popen(command, env={**caller.environ}, stderr=writing, stdout=subprocess.PIPE, text=True)
    os.close(writing)
    assert os.read(reading, 100).decode() == STILL_TRYING
    started.set()
    out, _ = process.communicate(timeout=30)
    os.close(reading)
    coming.join()
    masters[0].__exit__()
    assert (process.returncode, out) == (0, "Job <1> is being terminated\n")


def test_pieces_keep_their_order(caller: Caller):
    with ScriptedMaster(caller.socket, [{"out": "a\n"}, {"err": "b\n"}, {"out": "c\n"}, {"exit": 7}]):
        assert caller.run_joined("bjobs") == (7, "a\nb\nc\n", "")


def test_a_stream_that_breaks_goes_on_where_it_was(caller: Caller):
    first: list[Any] = [{"err": "<< output >>\n"}, {"out": "one "}, {"out": "two "}, CUT]
    second: list[Any] = [{"err": "<< output >>\n"}, {"out": "one two thr"}, {"out": "ee\n"}, {"exit": 0}]
    with ScriptedMaster(caller.socket, first, second):
        assert caller.run("bpeek", "-f", "1") == (0, "one two three\n", "<< output >>\n")


@pytest.mark.parametrize("answer", [[{"nonsense": 1}], [{"ok": 3}], [{"ok": {"results": [{"no": "id"}]}}]])
def test_a_strange_answer_is_one_line(caller: Caller, answer):
    with ScriptedMaster(caller.socket, answer):
        ran = caller.run("bkill", "1")
    assert ran.status == 255
    assert ran.err.count("\n") == 1
    assert "Traceback" not in ran.err


def test_bytes_that_are_no_frame_are_one_line(caller: Caller):

    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(caller.socket))
    listener.listen(1)

    def talk() -> None:
        link, _ = listener.accept()
        link.recv(100)
        link.sendall(b"\xff\xff\xff\xffgarbage")
        link.close()

    talking = threading.Thread(target=talk)
    talking.start()
    ran = caller.run("bkill", "1")
    talking.join()
    listener.close()
    assert (ran.status, ran.err) == (255, "lavad sent an answer that this command does not understand\n")


def test_a_refusal_keeps_its_status(caller: Caller):
    with ScriptedMaster(caller.socket, [{"refused": "lsload: Unknown resource name", "exit": 246}]):
        assert caller.run("lsload", "-R", "x") == (246, "", "lsload: Unknown resource name\n")


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("bjobs", "lsb_init: Failed in an LSF library call: Unable to open file lsf.conf\n"),
        ("lsid", "ls_initdebug: Unable to open file lsf.conf\n"),
        ("bsub", "lsb_init: Failed in an LSF library call: Unable to open file lsf.conf\n"),
    ],
)
def test_without_a_configuration_lsf_names_the_file(caller: Caller, command, text):
    assert caller.run(command, LSF_ENVDIR="/nosuch") == (255, "", text)


def test_a_socket_with_a_long_path_is_reached(tmp_path: Path):
    folder = tmp_path / ("x" * 80) / ("y" * 80)
    folder.mkdir(parents=True)
    caller = Caller(folder)
    here = os.open(folder, os.O_PATH)
    with ScriptedMaster(Path(f"/proc/self/fd/{here}/lavad.sock"), DONE):
        assert caller.run("bkill", "1").status == 0
    os.close(here)


def test_a_closed_stdout_is_quiet(caller: Caller):
    reading, writing = os.pipe()
    os.close(reading)
    with ScriptedMaster(caller.socket, [{"out": "x" * 100000}, {"exit": 0}]):
        command = [sys.executable, "-c", "import sys; from cli.listing import main; sys.exit(main([], 'bjobs'))"]
        done = subprocess.run(command, env=caller.environ, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


def test_control_c_ends_without_a_traceback(caller: Caller):
    import signal

    with ScriptedMaster(caller.socket, [{"later": True}]):
        command = ["env", "--default-signal=INT", sys.executable, "-c"]  # tests that run in the background ignore it
        command += ["import sys; from cli.listing import main; sys.exit(main([], 'bjobs'))"]
        process = subprocess.Popen(command, env=caller.environ, stderr=subprocess.PIPE)
        assert process.stderr is not None
        said = process.stderr
        wait_until(lambda: said.readline() == STILL_TRYING.encode(), 20, "the message")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (130, b"")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_frames_carry_any_value(value: object):
    import json

    assert json.loads(frames.encode(value)) == value
    assert frames.decode(json.dumps(value)) == value


@given(st.text(max_size=20))
def test_no_json_is_a_value_error(text: str):
    import json

    try:
        want = json.loads(text.strip())
    except ValueError:
        with pytest.raises(ValueError):
            frames.decode(text)
    else:
        assert repr(frames.decode(text)) == repr(want)
