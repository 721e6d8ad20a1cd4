"""Method criu without CRIU: the processes around a job, hosts that are not alike, and what goes wrong before a dump."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from pathlib import Path

import psutil
import pytest

from agent.launch import checkpoints
from agent.launch.checkpointing.asked import Asked, CheckpointError
from agent.launch.checkpointing.criu import apart, command, method
from tests.support.wait import wait_until


@pytest.fixture
def namespaces() -> None:
    try:
        command.check_namespaces()
    except CheckpointError as e:
        pytest.skip(str(e))


def job(folder: Path, *argv: str) -> list[str]:
    return list(checkpoints.words("run", json.dumps({"folder": str(folder), "method": "criu", "criu": "criu"}), *argv))


def run(folder: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(job(folder, *argv), cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.usefixtures("namespaces")
def test_the_job_ends_as_it_would_without(tmp_path: Path) -> None:
    done = run(tmp_path, "sh", "-c", "echo $$ $(id -u) $PWD; cat; exit 7")
    assert (done.returncode, done.stdout) == (7, f"{apart.FIRST} {os.getuid()} {tmp_path}\n")
    assert run(tmp_path, "sh", "-c", "kill -SEGV $$").returncode == -signal.SIGSEGV
    assert run(tmp_path, "sh", "-c", "kill -KILL $$").returncode == -signal.SIGKILL
    missing = run(tmp_path, "no-such-program")
    assert (missing.returncode, missing.stderr) == (127, "no-such-program: command not found\n")


@pytest.mark.usefixtures("namespaces")
def test_output_goes_on_where_its_file_was_and_signals_are_for_the_job(tmp_path: Path) -> None:
    text = "trap 'echo asked; exit 3' TERM; echo begins; echo wrong >&2; while :; do sleep 0.05; done"
    out = tmp_path / "out"
    out.write_text("before\n")
    with out.open("r+b") as file:
        file.seek(0, os.SEEK_END)
        process = subprocess.Popen(job(tmp_path, "sh", "-c", text), stdout=file, stderr=subprocess.STDOUT, start_new_session=True)
    wait_until(lambda: "wrong" in out.read_text(), 30, "the job")
    first, own = method.processes_soon(process.pid)  # the job's own process may write before the first one has its name
    assert os.readlink(f"/proc/{own}/fd/1") == str(out)
    for pid in (process.pid, first, own):
        os.kill(pid, signal.SIGTERM)
    assert process.wait() == 3
    assert out.read_text() == "before\nbegins\nwrong\nasked\n"


@pytest.mark.usefixtures("namespaces")
def test_what_is_left_of_the_job_ends_with_it(tmp_path: Path) -> None:
    name = f"300.{os.getpid()}"
    assert run(tmp_path, "sh", "-c", f"(setsid sleep {name} & sleep 0.1); exit 0").returncode == 0
    assert not [process for process in psutil.process_iter(["cmdline"]) if process.info["cmdline"] == ["sleep", name]]


def test_without_criu_nothing_is_begun(tmp_path: Path) -> None:
    fields: dict[str, object] = {"folder": str(tmp_path), "method": "criu", "criu": str(tmp_path / "criu")}
    for step in (method.restart, method.write):
        with pytest.raises(CheckpointError, match=r"^checkpoint method criu: .*/criu is not on this host$"):
            step(Asked(fields))
    assert os.listdir(tmp_path) == []


def test_a_job_whose_process_does_not_run_yet_is_not_dumped(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="the job has no process yet that criu could dump"):
        method.write(Asked({"folder": str(tmp_path), "method": "criu", "criu": "sh", "group": 0}))


MADE: dict[str, object] = {"kernel": "6.12.4-1-amd64", "cpu": "avx avx2 fpu"}


@pytest.mark.parametrize(
    ("kernel", "flags", "why"),
    [
        ("6.12.4-1-amd64", "avx avx2 fpu", ""),
        ("6.12.1", "fpu avx2 avx", ""),
        ("6.18.44-x", "avx avx2 avx512f fpu", ""),
        ("7.0", "avx avx2 fpu", ""),
        ("6.1.0-30", "avx avx2 fpu", "on kernel 6.12.4-1-amd64, which is newer than 6.1.0-30 here"),
        ("6.12.4", "avx fpu", "on a CPU with avx2, which this one lacks"),
    ],
)
def test_a_host_must_be_like_the_one_of_the_dump(kernel: str, flags: str, why: str) -> None:
    assert method.why_unlike(MADE, kernel, flags) == why
    assert method.why_unlike({}, kernel, flags) == "", "a manifest that does not tell is believed"


def test_shared_memory_is_copied_as_it_is(tmp_path: Path) -> None:
    shm, copy, again = (tmp_path / name for name in ("shm", "copy", "again"))
    (shm / "folder").mkdir(parents=True)
    (shm / "folder" / "file").write_text("1")
    (shm / "link").symlink_to("folder/file")
    (shm / "host").symlink_to("/etc/passwd")
    (shm / "dangling").symlink_to("/nowhere")
    os.mkfifo(shm / "pipe")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(shm / "socket"))
        method.copy_shm(str(shm), str(copy))
    again.mkdir()
    method.copy_shm(str(copy), str(again))
    assert sorted(os.listdir(again)) == ["dangling", "folder", "host", "link"]
    assert [os.readlink(again / name) for name in ("link", "host", "dangling")] == ["folder/file", "/etc/passwd", "/nowhere"]
    assert (again / "link").read_text() == "1"


def test_what_cannot_be_copied_is_named(tmp_path: Path) -> None:
    (tmp_path / "shm").mkdir()
    (tmp_path / "copy").mkdir()
    (tmp_path / "shm" / "x").symlink_to("y")
    (tmp_path / "copy" / "x").touch()
    with pytest.raises(CheckpointError, match=r"^\S*/shm/x: .*File exists"):
        method.copy_shm(str(tmp_path / "shm"), str(tmp_path / "copy"))
