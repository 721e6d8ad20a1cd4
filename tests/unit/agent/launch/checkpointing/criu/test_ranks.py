"""The ranks of an MPI job in one process tree: what each is told, barriers among them, and how the first failure ends all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from agent.launch import checkpoints

BARRIER = """\
import os, socket
pmi = socket.socket(fileno=int(os.environ["PMI_FD"])).makefile("rw")
def ask(line):
    pmi.write(line + "\\n"); pmi.flush()
    return pmi.readline().strip()
rank = os.environ["PMI_RANK"]
ask("cmd=init pmi_version=1 pmi_subversion=1")
ask(f"cmd=put key=at{rank} value=here{rank}")
ask("cmd=barrier_in")
found = ask(f"cmd=get key=at{1 - int(rank)}").rpartition("value=")[2]
os.write(1, f"{rank} {found}\\n".encode())
ask("cmd=finalize")
"""


def run(count: int, *argv: str) -> subprocess.CompletedProcess[str]:
    words = checkpoints.words("ranks", str(count), *argv)
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)


def test_ranks_meet(tmp_path: Path) -> None:
    (tmp_path / "rank.py").write_text(BARRIER)
    done = run(2, sys.executable, str(tmp_path / "rank.py"))
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == ["0 here1", "1 here0"]


def test_what_a_rank_is_told() -> None:
    names = "$PMI_RANK/$PMI_SIZE $MPI_LOCALRANKID/$MPI_LOCALNRANKS $LSF_PM_TASKID $FI_PROVIDER"
    assert sorted(run(3, "sh", "-c", f"echo {names}").stdout.splitlines()) == [
        "0/3 0/3 1 tcp",
        "1/3 1/3 2 tcp",
        "2/3 2/3 3 tcp",
    ]


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("[ $PMI_RANK = 2 ] && exit 7; exec sleep 100", 7, "rank 2 ended with exit code 7\n"),
        ("[ $PMI_RANK = 0 ] && kill -SEGV $$; exec sleep 100", -11, "rank 0 was killed by signal 11\n"),
        (
            '[ $PMI_RANK = 1 ] && echo "cmd=abort exitcode=5" >&$PMI_FD; exec sleep 100',
            5,
            "rank 1 called abort with code 5\n",
        ),
        (
            '[ $PMI_RANK = 1 ] && { echo "cmd=init pmi_version=1" >&$PMI_FD; sleep 0.5; exit 0; }; exec sleep 100',
            1,
            "rank 1 ended without MPI_Finalize\n",
        ),
    ],
)
def test_the_first_rank_that_fails_ends_the_others(text: str, code: int, said: str) -> None:
    done = run(3, "bash", "-c", text)
    assert (done.returncode, done.stderr) == (code, said)


def test_a_program_that_is_not_there() -> None:
    done = run(1, "no-such-program")
    assert (done.returncode, done.stderr) == (127, "no-such-program: command not found\nrank 0 ended with exit code 127\n")
