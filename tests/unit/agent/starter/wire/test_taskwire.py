"""Frames of tasks, and what a task's environment and command become; all pure."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.starter.blaunch.taskrun import environment, program
from agent.starter.process.progress import Phase, Progress
from agent.starter.process.spec import Spec, Template
from agent.starter.protocol.codec import ProtocolError
from agent.starter.protocol.commands import Shell, TaskRequest, read_request
from agent.starter.wire import taskwire as wire
from agent.starter.wire.frames import FrameError
from agent.starter.wire.taskwire import Frame, FrameReader


@given(st.binary(max_size=200))
def test_nonsense_is_no_crash(data: bytes) -> None:
    try:
        FrameReader().feed(data)
    except FrameError:
        pass


def test_a_frame_too_large_is_refused() -> None:
    with pytest.raises(FrameError):
        FrameReader().feed((wire.MAX_FRAME + 1).to_bytes(4, "big") + bytes(20))
    with pytest.raises(FrameError):
        FrameReader().feed(bytes(20))


def test_which_way_a_frame_goes() -> None:
    """Input and room for output go to the task, output and room for input to the one who asked."""
    to_task = [
        Frame(wire.START, 1, 0, 1),
        Frame(wire.SIGNAL, 1, 0, 1),
        Frame(wire.ABANDON, 1, 0, 1),
        Frame(wire.DATA, 1, 0, 1, wire.data(wire.IN, b"x")),
        Frame(wire.CREDIT, 1, 0, 1, wire.credit(wire.OUT, 5)),
        Frame(wire.CREDIT, 1, 0, 1, wire.credit(wire.ERR, 5)),
    ]
    back = [
        Frame(wire.STARTED, 0, 0, 1),
        Frame(wire.EXIT, 0, 0, 1),
        Frame(wire.FAIL, 0, 0, 1),
        Frame(wire.DATA, 0, 0, 1, wire.data(wire.OUT, b"x")),
        Frame(wire.DATA, 0, 0, 1, wire.data(wire.ERR, b"")),
        Frame(wire.CREDIT, 0, 0, 1, wire.credit(wire.IN, 5)),
    ]
    assert all(wire.is_for_task(frame) for frame in to_task)
    assert not any(wire.is_for_task(frame) for frame in back)
    with pytest.raises(FrameError):
        wire.read_credit(b"xx")


def test_the_environment_of_a_task() -> None:
    """The caller's over the part's; the host's own and a rank's own stay where they are."""
    part = {"LAVA_HOST": "h2", "PATH": "/bin", "LSB_JOBID": "7", "LAVA_TOKEN": "t", "CUDA_VISIBLE_DEVICES": "G0,G2,G1,G3"}
    own = {"place": 0, "hosts": ["h2"], "gpus": ["G0,G2", "G1,G3"]}
    daemons = [{"folder": f"/m{number}", "gpus": gpus} for number, gpus in enumerate(("G0,G2", "G1,G3"))]
    spec = Spec(Template({"env": part}), {"uid": "u", "serve": own, "mps": daemons})
    given_env = {
        "LAVA_HOST": "h1",
        "PATH": "/mine",
        "PMI_RANK": "1",
        "OMPI_COMM_WORLD_RANK": "1",
        "OMPI_MCA_btl": "tcp",
        "CUDA_VISIBLE_DEVICES": "0",
        "CUDA_VISIBLE_DEVICES1": "0",
        "NVIDIA_VISIBLE_DEVICES": "all",
        "CUDA_MPS_PIPE_DIRECTORY": "/of h1",
        "BAD=NAME": "x",
        "LAVA_TASKS": "of h1",
    }
    asked = TaskRequest("h2", ("x",), given_env, 4)
    env = environment(spec, asked)
    assert env["LAVA_HOST"] == b"LAVA_HOST=h2"
    assert env["PATH"] == b"PATH=/mine"
    assert env["LSF_PM_TASKID"] == b"LSF_PM_TASKID=4"
    assert env["OMPI_MCA_btl"] == b"OMPI_MCA_btl=tcp"
    assert not {"PMI_RANK", "OMPI_COMM_WORLD_RANK", "BAD=NAME", "LAVA_TASKS"} & env.keys()
    assert [name for name in env if "VISIBLE" in name or "MPS" in name] == ["CUDA_VISIBLE_DEVICES"]
    assert env["CUDA_VISIBLE_DEVICES"].endswith(b"=G0,G2,G1,G3")
    for nth, gpus in enumerate((b"G0,G2", b"G1,G3")):
        env = environment(spec, asked._replace(nth=nth, of=2))
        assert env["CUDA_VISIBLE_DEVICES"] == b"CUDA_VISIBLE_DEVICES=" + gpus
        assert env["NVIDIA_VISIBLE_DEVICES"] == b"NVIDIA_VISIBLE_DEVICES=" + gpus
        assert env["CUDA_MPS_PIPE_DIRECTORY"] == b"CUDA_MPS_PIPE_DIRECTORY=/m%d/pipe" % nth
    for wrong in (asked._replace(of=1), asked._replace(nth=2, of=2), asked._replace(nth=-1, of=2)):
        assert environment(spec, wrong)["CUDA_VISIBLE_DEVICES"].endswith(b"=G0,G2,G1,G3")


def test_the_command_of_a_task() -> None:
    """Joined by blanks for a shell, as rsh does."""
    words = ('"/usr/bin/proxy"', "--a", '"b c"')
    assert program(TaskRequest("h", words, {}), {}) == ["/bin/sh", "-c", '"/usr/bin/proxy" --a "b c"']
    assert program(TaskRequest("h", words, {}, shell=Shell.NONE), {}) == list(words)
    login = TaskRequest("h", ("x",), {}, shell=Shell.LOGIN)
    assert program(login, {"SHELL": b"SHELL=/bin/bash"}) == ["/bin/bash", "-l", "-c", "x"]
    assert program(login, {}) == ["/bin/sh", "-l", "-c", "x"]


@pytest.mark.parametrize("words", [[], ["a\0b"], [1], "x", None])
def test_what_is_no_command(words: object) -> None:
    with pytest.raises(ProtocolError):
        read_request(json.dumps({"host": "h", "words": words}).encode())


def test_a_command_as_blaunch_sends_it() -> None:
    asked = {"host": "h", "words": ["a", ""], "shell": "none", "stdin": True, "env": {"A": "1"}, "cwd": "/tmp", "task": 3}
    assert read_request(json.dumps(asked).encode()) == TaskRequest("h", ("a", ""), {"A": "1"}, 3, True, Shell.NONE, "/tmp")


def test_when_a_task_may_start() -> None:
    """Only while the part runs and is not being killed."""
    progress = Progress("7")
    assert progress.why_no_task() == "job 7 has not started there"
    progress.phase = Phase.RUNNING
    assert progress.why_no_task() == ""
    for phase, killing in ((Phase.RUNNING, True), (Phase.ENDED, False), (Phase.POST, False), (Phase.PREPARED, True)):
        progress.phase, progress.killing = phase, killing
        assert progress.why_no_task() == "job 7 is ending there"
