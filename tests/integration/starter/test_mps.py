"""MPS daemons of a part: they are there before its tasks, and never outlive it. Real starter, real processes.

NVIDIA's nvidia-cuda-mps-control comes with its driver and cannot be had without a GPU. A script of that name stands in for it,
which behaves as NVIDIA documents: with -d it goes into the background and fails where one runs already, else it reads commands.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.daemons.starters import SHELL_PATH, Rig
from tests.support.processes import is_alive, parent_of
from tests.support.wait import wait_until

STAND_IN = """#!/bin/sh
control=$CUDA_MPS_PIPE_DIRECTORY/control
if [ "$1" != -d ]; then
    read line; echo "$line" >"$control"; exit
fi
[ "$CUDA_VISIBLE_DEVICES" != GPU-bad ] || { echo "Cannot find MPS control daemon process" >&2; exit 1; }
mkfifo "$control" || { echo "An instance of this daemon is already running" >&2; exit 1; }
setsid sh -c '
    trap "" TERM
    echo $CUDA_VISIBLE_DEVICES >"$CUDA_MPS_LOG_DIRECTORY/control.log"
    echo $$ >"$CUDA_MPS_PIPE_DIRECTORY/pid"
    read line <"$CUDA_MPS_PIPE_DIRECTORY/control"
    echo "$line" >>"$HEARD"
' </dev/null >/dev/null 2>&1 &
until [ -s "$CUDA_MPS_PIPE_DIRECTORY/pid" ]; do sleep 0.01; done
"""
READ = "cat $CUDA_MPS_PIPE_DIRECTORY/pid $CUDA_MPS_LOG_DIRECTORY/control.log"
Part = Callable[..., dict[str, Any]]


@pytest.fixture
def part(rig: Rig) -> Part:
    program = rig.folder / "bin" / "nvidia-cuda-mps-control"
    program.parent.mkdir()
    program.write_text(STAND_IN)
    program.chmod(0o755)

    def make(uid: str, command: str, *gpus: str, path: str = f"{program.parent}:{SHELL_PATH}") -> dict[str, Any]:
        folders = [f"{rig.folder}/m{number}" for number in range(len(gpus))]
        own = {"CUDA_MPS_PIPE_DIRECTORY": f"{folders[0]}/pipe", "CUDA_MPS_LOG_DIRECTORY": f"{folders[0]}/log"}
        env = {"PATH": path, "HEARD": f"{rig.folder}/heard", "CUDA_VISIBLE_DEVICES": "GPU-0", **own}
        daemons = [{"folder": folder, "gpus": one} for folder, one in zip(folders, gpus, strict=True)]
        return rig.part(uid, command, env=env, mps=daemons)

    return make


def daemon_of(rig: Rig) -> int:
    path = rig.folder / "m0" / "pipe" / "pid"
    wait_until(lambda: path.exists() and path.read_text().endswith("\n"), 20, "the daemon")
    return int(path.read_text())


def test_a_daemon_is_there_before_the_tasks_and_quits_after_them(rig: Rig, part: Part) -> None:
    rig.order(part("a", f"{READ}; cat {rig.folder}/m1/log/control.log", "GPU-0,GPU-1", "GPU-2"))
    assert rig.end("a")["status"] == 0
    rig.gone("a")
    pid, first, second = rig.text("a").split()
    assert (first, second) == ("GPU-0,GPU-1", "GPU-2")
    assert not is_alive(int(pid))
    assert (rig.folder / "heard").read_text() == "quit\nquit\n"
    assert not [path for path in rig.folder.iterdir() if path.name in ("m0", "m1")]


@pytest.mark.parametrize("who", ["part", "shepherd", "starter"])
def test_a_daemon_ends_with_its_part_whatever_ends_that(rig: Rig, part: Part, who: str) -> None:
    """It ignores SIGTERM, and was in the background already when the task began."""
    rig.order(part("a", "exec sleep 1000", "GPU-0"))
    task, daemon = rig.pid_of("a"), daemon_of(rig)
    if who == "part":
        rig.send({"do": "kill", "uids": ["a"]})
        rig.gone("a")
        assert not (rig.folder / "m0").exists()
    elif who == "shepherd":
        os.kill(parent_of(task), signal.SIGKILL)
        rig.report("a", "lost")
    else:
        rig.kill()
    wait_until(lambda: not is_alive(daemon) and not is_alive(task), 20, "the daemon's end")
    if who == "starter":
        rig.disconnect()
        rig.start()


def test_a_part_without_its_daemon_is_refused(rig: Rig, part: Part) -> None:
    (rig.folder / "empty").mkdir()  # a host with a driver has the real one elsewhere in the path
    rig.order(part("none", "true", "GPU-0", path=f"{rig.folder}/empty"))
    missing = rig.report("none", "refused")
    wait_until(lambda: not (rig.folder / "m0").exists(), 20, "the end of its folder")
    rig.order(part("bad", "true", "GPU-bad"))
    bad = rig.report("bad", "refused")
    assert (missing["code"], bad["code"]) == ("gpu", "gpu")
    assert missing["reason"] == "host hostA cannot run nvidia-cuda-mps-control, which mps= needs: No such file or directory"
    assert bad["reason"] == "host hostA: nvidia-cuda-mps-control ended with 1: Cannot find MPS control daemon process"
    wait_until(lambda: not (rig.folder / "m0").exists(), 20, "the end of its folder")
