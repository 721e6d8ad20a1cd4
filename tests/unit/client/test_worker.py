"""One call in a process of its own: what it writes, and what is read of it; with each Python that is at hand."""

from __future__ import annotations

import base64
import os
import pickle
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import lava_client
from lava_client import folder, pickling, worker
from lava_client.errors import InitializerFailed, RemoteError
from tests.support import calls
from tests.support.pythons import VERSIONS, python
from tests.support.wait import SLOW

SOURCE = Path(lava_client.__file__).parent
IN_A_FOLDER = """
import io, os, pickle, subprocess, sys
sys.path.insert(0, sys.argv[1])
import lava_client
from lava_client import folder, pickling, worker
place = folder.Folder(os.getcwd())
asked = [pickling.call(divmod, (7, 2), {}), pickling.chunk(pow, [(2, 3), (3, 2)]), pickling.call(divmod, (7, 0), {})]
batch = place.write(pickling.setting([], None, None, False), asked)
codes = [subprocess.run([sys.executable, worker.__file__, batch, str(number)]).returncode for number in (1, 2, 3)]
values = [pickling.read_result(folder.read(batch, number, 0)[0]) for number in (1, 2, 3)]
assert codes == [0, 0, 1], codes
assert [value.value for value in values] == [(3, 1), [8, 9], None], values
assert type(values[2].error) is ZeroDivisionError and "divmod" not in str(values[2].error)
executor = lava_client.Executor.__mro__[1].__module__
print("whole", executor)
"""


@pytest.mark.parametrize("version", VERSIONS)
def test_each_python_at_hand_carries_calls_out(version: str, tmp_path: Path) -> None:
    words = [python(version), "-W", "error", "-c", IN_A_FOLDER, str(SOURCE.parent)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60 * SLOW, cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "whole concurrent.futures._base\n", "")


def carried_out(*blobs: bytes, initializer: bytes | None = None) -> list[pickling.Result]:
    setting = {"path": [], "argv": ["x"], "main": None, "initializer": initializer, "ranks": False}
    kept = (list(sys.path), list(sys.argv))
    try:
        setting["path"] = kept[0]
        return [pickling.read_result(worker.carried_out(setting, blob)) for blob in blobs]
    finally:
        sys.path[:], sys.argv[:] = kept


def test_what_cannot_be_brought_back_is_told_in_words() -> None:
    cases = (calls.raise_unpicklable, calls.raise_stubborn, calls.give_a_lock, calls.raise_runtime_error)
    unpicklable, stubborn, lock, plain = (carried_out(pickling.call(case, (), {}))[0].error for case in cases)
    assert isinstance(unpicklable, RemoteError)
    assert "Unpicklable: held" in str(unpicklable)
    assert isinstance(stubborn, RemoteError)
    assert isinstance(lock, TypeError)
    assert isinstance(plain, RuntimeError)
    assert "in raise_runtime_error" in str(plain.__cause__)
    assert plain.__traceback__ is None
    bad = pickling.dumps((calls.initialize, ("bad",)))
    error = carried_out(pickling.call(pow, (1, 1), {}), initializer=bad)[0].error
    assert isinstance(error, InitializerFailed)
    assert isinstance(carried_out(b"no pickle")[0].error, pickle.UnpicklingError)
    result = pickling.read_result(worker.RESULT + b"no pickle")
    assert isinstance(result.error, RemoteError)


def test_what_ends_whoever_reads_it_ends_nobody() -> None:
    """One thread reads the results of all calls."""
    raised, given = (carried_out(pickling.call(case, (), {}))[0].error for case in (calls.raise_final, calls.give_final))
    assert isinstance(raised, RemoteError)
    assert "FinalError: of all" in str(raised)
    assert isinstance(given, RemoteError)
    assert "cannot be read here: SystemExit: 5" in str(given)
    of_another = pickling.read_result(worker.RAISED + pickle.dumps((pickle.dumps(calls.Final()), "words", "lines")))
    assert str(of_another.error) == "words"


@pytest.mark.parametrize("through_lava", [False, True])
def test_a_call_that_closes_the_standard_output_has_a_result(tmp_path: Path, through_lava: bool) -> None:
    shared = pickling.setting([], None, None, False)
    batch = tmp_path / "1"
    with batch.open("wb") as file:
        worker.write_batch(file, shared, [pickling.call(calls.close_output, (), {})])
    words = [sys.executable, worker.__file__, worker.THROUGH_LAVA if through_lava else str(batch), "1"]
    with batch.open("rb") as file:
        done = subprocess.run(words, stdin=file, capture_output=True, timeout=60 * SLOW, check=True)
    data = folder.from_output(done.stdout.decode()) if through_lava else folder.read(str(batch), 1, 0)[0]  # type: ignore[index]
    assert data is not None
    assert pickling.read_result(data).value == "value"
    assert (done.stdout if through_lava else Path(worker.log_name(str(batch), 1)).read_bytes()).startswith(b"printed\n")


def test_the_end_of_a_log_of_any_size_is_shown(tmp_path: Path) -> None:
    batch = str(tmp_path / "1")
    assert (folder.last_lines(batch, 1, 3), folder.end_of_log(batch, 1)) == ("", "")
    lines = [f"{number} {'x' * 1000}\n" for number in range(100)]
    Path(worker.log_name(batch, 1)).write_text("".join(lines))
    assert folder.last_lines(batch, 1, 3) == "".join(lines[-3:])
    assert folder.last_lines(batch, 1, 1000) == "".join(lines)
    assert folder.end_of_log(batch, 1) == "".join(lines)[-folder.SHOWN :].strip()


def test_a_host_that_does_not_see_the_folder_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert worker.main(["worker.py", str(tmp_path / "none" / "1"), "1"]) == worker.NO_FOLDER
    assert f"does not see {tmp_path}/none/1: No such file or directory" in capsys.readouterr().err


def test_a_result_is_found_at_the_end_of_the_output_or_not_at_all() -> None:
    data = worker.RESULT + pickle.dumps(["value"])
    text = base64.b64encode(data).decode()
    whole = f"printed\n{worker.MARK.format(3)}\nabc\n{worker.MARK.format(len(text))}\n{text}\n<< output from stdout >>\n"
    assert folder.from_output(whole) == data
    assert folder.from_output(whole[:-40]) is None
    assert folder.from_output("printed\n") is None


def test_ranks_give_all_their_results_or_the_first_failure(tmp_path: Path) -> None:
    batch = str(tmp_path / "1")
    for rank, kind in ((0, b"R0"), (2, b"R2")):
        Path(worker.result_name(batch, 4, str(rank))).write_bytes(kind)
    assert folder.read(batch, 4, 3) is None
    Path(worker.result_name(batch, 4, "1")).write_bytes(b"R1")
    assert folder.read(batch, 4, 3) == [b"R0", b"R1", b"R2"]
    Path(worker.result_name(batch, 4, "1")).write_bytes(b"E1")
    Path(worker.result_name(batch, 4, "2")).unlink()
    assert folder.read(batch, 4, 3) == [b"E1"]
    folder.forget(batch, 4, 3)
    assert list(tmp_path.iterdir()) == []


def test_folders_of_processes_that_were_killed_are_removed_in_time(tmp_path: Path) -> None:
    mine, old, new, foreign = (folder.Folder(str(tmp_path)) for _ in range(4))
    gone = f"{socket.gethostname()}-4999999-"
    for place, name in ((old, gone + "old"), (new, gone + "new"), (foreign, "other-host-4999999-old")):
        Path(place.path).rename(tmp_path / name)
    for name in (gone + "old", "other-host-4999999-old", Path(mine.path).name):
        os.utime(tmp_path / name, (0, 0))
    folder.Folder(str(tmp_path)).remove()
    assert {path.name for path in tmp_path.iterdir()} == {Path(mine.path).name, gone + "new", "other-host-4999999-old"}
