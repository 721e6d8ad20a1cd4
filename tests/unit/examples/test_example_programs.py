"""The example programs under MPICH's own mpiexec: what they print and calculate does not depend on lava."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.wait import wait_until

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"
BIN = Path(sys.executable).parent
HEAT = [sys.executable, str(EXAMPLES / "heat" / "heat.py")]
PLATE = ["--size", "61", "--steps", "400"]

pytestmark = pytest.mark.skipif(not (BIN / "mpiexec").exists(), reason="the mpich wheel is not installed")


def mpi(ranks: int, *command: str | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    """The output of a program over ``ranks`` ranks, which must succeed."""
    argv = [str(BIN / "mpiexec"), "-n", str(ranks), *map(str, command)]
    done = subprocess.run(argv, cwd=cwd, env={**os.environ, **(env or {})}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def python(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *map(str, command)], cwd=cwd, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    "program",
    ["checkpoint_any/orbit.py", "checkpoint_any/ring.py", "checkpoint_any/words.sh", "elastic/count.py", "matmul/check.py"],
)
def test_one_that_is_given_too_little_says_what_it_needs(program: str, tmp_path: Path) -> None:
    path = EXAMPLES / program
    done = subprocess.run(
        [path] if path.suffix == ".sh" else [sys.executable, path], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert (done.stdout, len(done.stderr.splitlines()), done.stderr[:5]) == ("", 1, "usage")


def test_greeting_in_python(tmp_path: Path) -> None:
    """All ranks greet rank 0."""
    expected = (EXAMPLES / "greeting" / "expected-4.txt").read_text()
    assert mpi(4, sys.executable, EXAMPLES / "greeting" / "greeting.py", cwd=tmp_path) == expected


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler")
def test_greeting_in_c(tmp_path: Path) -> None:
    """The corrected C program compiles and says the same."""
    subprocess.run(
        [BIN / "mpicc", "-Wall", "-Werror", "-o", "greeting", EXAMPLES / "greeting" / "greeting.c"],
        cwd=tmp_path,
        check=True,
        timeout=120,
    )
    assert mpi(4, "./greeting", cwd=tmp_path) == (EXAMPLES / "greeting" / "expected-4.txt").read_text()


@pytest.mark.parametrize(("ranks", "size"), [(1, 64), (3, 64), (4, 61), (5, 3)])
def test_matmul_is_right(tmp_path: Path, ranks: int, size: int) -> None:
    """One shared file, any number of ranks, also when it does not divide the rows."""
    folder = EXAMPLES / "matmul"
    assert python(folder / "generate.py", "A", "B", "--size", str(size), cwd=tmp_path).returncode == 0
    out = mpi(ranks, sys.executable, folder / "matmul.py", "A", "B", "C", cwd=tmp_path)
    assert all(f"rank {rank} of {ranks} on " in out for rank in range(ranks))
    checked = python(folder / "check.py", "A", "B", "C", cwd=tmp_path)
    assert (checked.returncode, checked.stdout.split(":")[0]) == (0, "right")


def test_check_sees_one_wrong_number(tmp_path: Path) -> None:
    folder = EXAMPLES / "matmul"
    python(folder / "generate.py", "A", "B", "--size", "16", cwd=tmp_path)
    mpi(2, sys.executable, folder / "matmul.py", "A", "B", "C", cwd=tmp_path)
    product = bytearray((tmp_path / "C").read_bytes())
    product[7 * 8 + 6] ^= 0x10
    (tmp_path / "C").write_bytes(product)
    checked = python(folder / "check.py", "A", "B", "C", cwd=tmp_path)
    assert (checked.returncode, checked.stdout.split(":")[0]) == (1, "WRONG")


def test_matmul_names_a_bad_input(tmp_path: Path) -> None:
    (tmp_path / "A").write_bytes(b"12345678" * 3)
    argv = [str(BIN / "mpiexec"), "-n", "2", sys.executable, str(EXAMPLES / "matmul" / "matmul.py"), "A", "A", "C"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert done.stderr.strip() == "matmul: A: not a square matrix of float64 (24 bytes)"


def reference(folder: Path) -> bytes:
    assert python(HEAT[1], "reference", "--reference", *PLATE, cwd=folder).returncode == 0
    return (folder / "reference").read_bytes()


@pytest.mark.parametrize("ranks", [1, 3])
def test_heat_equals_the_reference(tmp_path: Path, ranks: int) -> None:
    mpi(ranks, *HEAT, "result", *PLATE, cwd=tmp_path)
    assert (tmp_path / "result").read_bytes() == reference(tmp_path)


def ranks_below(pid: int) -> list[int]:
    """The Python processes among the descendants of an mpiexec."""
    found = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        name = Path(f"/proc/{child}/comm").read_text().strip()
        found += [int(child)] if name.startswith("python") else ranks_below(int(child))
    return found


def catches(pid: int, number: int) -> bool:
    """Has the process installed a handler for the signal?"""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("SigCgt:"):
            return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def test_heat_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    """A coordinated checkpoint, the death of all ranks, a restart with fewer: the exact result."""
    folder = tmp_path / "checkpoints" / "1"
    env = {**os.environ, "LSB_CHKPNT_DIR": str(folder), "LAVA_CKPT_SIGNAL": "USR1"}
    argv = [str(BIN / "mpiexec"), "-n", "3", *HEAT, "result", *PLATE, "--pause", "0.05"]
    with subprocess.Popen(argv, cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True) as first:
        wait_until(
            lambda: len(ranks_below(first.pid)) == 3 and all(catches(pid, 10) for pid in ranks_below(first.pid)),
            60,
            "three ranks that catch the signal",
        )
        assert first.stdout is not None
        assert "steps 0 to 400" in first.stdout.readline()
        ranks = ranks_below(first.pid)
        os.kill(ranks[1], 10)
        wait_until((folder / "gen-1" / "MANIFEST").exists, 60, "the first checkpoint")
        for pid in ranks:
            os.kill(pid, 10)
        wait_until((folder / "gen-2" / "MANIFEST").exists, 60, "the second checkpoint")
        for pid in ranks:
            os.kill(pid, 9)
    assert not (tmp_path / "result").exists()

    (newest,) = sorted((folder / "gen-2").glob("rows-0-*"))
    newest.write_bytes(bytes(newest.stat().st_size))
    out = mpi(2, *HEAT, "result", *PLATE, cwd=tmp_path, env={"LSB_CHKPNT_DIR": str(folder), "LSB_RESTART": "Y"})
    assert "restarted from generation 1 at step" in out
    assert (tmp_path / "result").read_bytes() == reference(tmp_path)


def test_the_programs_to_be_dumped_calculate_the_same_each_time(tmp_path: Path) -> None:
    folder = EXAMPLES / "checkpoint_any"
    commands: tuple[list[str], ...] = ([str(folder / "words.sh")], [sys.executable, str(folder / "orbit.py")], [])
    for name, command in zip(("pipeline", "python", "mpi"), commands, strict=True):
        for run in ("a", "b"):
            words = [str(tmp_path / f"{name}.{run}"), "10"]
            if command:
                subprocess.run([*command, *words], check=True, timeout=120)
            else:
                mpi(2, sys.executable, folder / "ring.py", *words, cwd=tmp_path)
        text = (tmp_path / f"{name}.a").read_text()
        assert text == (tmp_path / f"{name}.b").read_text()
        assert text.count("step ") == 10
        assert text.splitlines()[-1].startswith("sum ")
