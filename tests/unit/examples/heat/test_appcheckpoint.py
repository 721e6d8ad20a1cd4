"""The reusable checkpoint module of examples/heat, in one process: what is kept, whole, or passed over."""

from __future__ import annotations

import importlib.util
import json
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.support.wait import SLOW

SOURCE = Path(__file__).parents[4] / "examples" / "heat" / "appcheckpoint.py"


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The module, freshly imported as at the start of a restarted job; its signal handler is taken back."""
    monkeypatch.setenv("LAVA_CKPT_SIGNAL", "USR1")
    monkeypatch.setenv("LSB_RESTART", "Y")
    before = signal.getsignal(signal.SIGUSR1)
    spec = importlib.util.spec_from_file_location("appcheckpoint", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(__import__("sys").modules, "appcheckpoint", loaded)
    spec.loader.exec_module(loaded)
    yield loaded
    signal.signal(signal.SIGUSR1, before)


def generations(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_signal_is_one_wish(module: ModuleType, tmp_path: Path) -> None:
    checkpoint = module.AppCheckpoint(folder=str(tmp_path))
    assert not checkpoint.wanted()
    signal.raise_signal(signal.SIGUSR1)
    assert checkpoint.wanted()
    assert checkpoint.save("part", b"1", {"iteration": 7})
    assert not checkpoint.wanted()


def test_the_two_newest_stay(module: ModuleType, tmp_path: Path) -> None:
    """Generations are kept and pruned."""
    folder = tmp_path / "not" / "yet"
    checkpoint = module.AppCheckpoint(folder=str(folder))
    for number in range(4):
        assert checkpoint.save("part", b"%d" % number, {"iteration": number})
    assert generations(folder) == ["gen-3", "gen-4"]
    found = module.AppCheckpoint(folder=str(folder)).newest()
    assert (found.number, found.facts, found.names) == (4, {"iteration": 3}, ("part",))


@pytest.mark.parametrize("harm", ["file", "longer", "manifest", "lost", "empty"])
def test_a_damaged_generation_is_passed_over(module: ModuleType, tmp_path: Path, harm: str) -> None:
    """Corrupt the newest, and the previous one is used; it stays when the next is written."""
    checkpoint = module.AppCheckpoint(folder=str(tmp_path))
    for number in range(2):
        checkpoint.save("part", b"%d" % number, {"iteration": number})
    newest = tmp_path / "gen-2"
    if harm == "file":
        (newest / "part").write_bytes(b"x")
    elif harm == "longer":
        (newest / "part").write_bytes(b"1 and more")
    elif harm == "manifest":
        (newest / "MANIFEST").write_bytes((newest / "MANIFEST").read_bytes()[:20])
    elif harm == "lost":
        (newest / "part").unlink()
    else:
        (newest / "MANIFEST").write_text(json.dumps([]))
    again = module.AppCheckpoint(folder=str(tmp_path))
    assert again.newest().number == 1
    assert again.save("part", b"3", {"iteration": 9})
    assert generations(tmp_path) == ["gen-1", "gen-3"]


def test_a_half_written_generation_is_none(module: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "gen-1.tmp").mkdir()
    (tmp_path / "gen-1.tmp" / "part").write_bytes(b"half")
    checkpoint = module.AppCheckpoint(folder=str(tmp_path))
    assert checkpoint.newest() is None
    assert checkpoint.save("part", b"whole", {})
    assert generations(tmp_path) == ["gen-1"]


def test_a_first_start_loads_nothing(module: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module.AppCheckpoint(folder=str(tmp_path)).save("part", b"old", {})
    monkeypatch.delenv("LSB_RESTART")
    assert module.AppCheckpoint(folder=str(tmp_path)).newest() is None


def test_a_refused_write_keeps_the_old(module: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkpoint = module.AppCheckpoint(folder=str(tmp_path))
    assert checkpoint.save("part", b"1", {})
    assert not checkpoint.save("no/such/folder", b"2", {})
    assert generations(tmp_path) == ["gen-1"]
    assert "checkpoint: no checkpoint: rank 0" in capsys.readouterr().err


def test_without_a_folder_nothing_happens(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LSB_CHKPNT_DIR", raising=False)
    checkpoint = module.AppCheckpoint()
    signal.raise_signal(signal.SIGUSR1)
    assert not checkpoint.wanted()
    assert checkpoint.newest() is None


class Ranks:
    """A communicator of threads, as much of one as the module needs."""

    def __init__(self, size: int) -> None:
        self._barrier = threading.Barrier(size)
        self._items: list[Any] = [None] * size

    def of(self, rank: int) -> Any:
        return SimpleNamespace(rank=rank, size=len(self._items), allgather=lambda item: self._all(rank, item))

    def _all(self, rank: int, item: Any) -> list[Any]:
        self._items[rank] = item
        self._barrier.wait(60 * SLOW)
        found = list(self._items)
        self._barrier.wait(60 * SLOW)
        return found


def on_two_hosts(module: ModuleType, folder: Path, do: Callable[[Any, int], Any]) -> list[Any]:
    """What each of four ranks says that does so, two on each of two hosts that have a folder of their own."""
    ranks, found = Ranks(4), [None] * 4

    def run(rank: int) -> None:
        part = rank // 2
        found[rank] = do(module.AppCheckpoint(ranks.of(rank), str(folder / f"h{part}"), part), rank)

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120 * SLOW)
    return found


def saved(checkpoint: Any, rank: int) -> bool:
    return bool(checkpoint.save(f"rank-{rank}", b"%d" % rank, {"iteration": 5}))


def test_each_host_has_the_files_of_its_ranks(module: ModuleType, tmp_path: Path) -> None:
    assert (
        on_two_hosts(module, tmp_path, lambda checkpoint, rank: [saved(checkpoint, rank) for _ in range(3)]) == [[True] * 3] * 4
    )
    assert [generations(tmp_path / host) for host in ("h0", "h1")] == [["gen-2", "gen-3"]] * 2
    listed = json.loads((tmp_path / "h1" / "gen-3" / "MANIFEST").read_bytes())
    assert (sorted(listed["files"]), listed["iteration"]) == (["rank-2", "rank-3"], 5)
    found = on_two_hosts(module, tmp_path, lambda checkpoint, rank: checkpoint.newest())
    assert [one.number for one in found] == [3] * 4
    assert [one.names for one in found] == [("rank-0", "rank-1")] * 2 + [("rank-2", "rank-3")] * 2
    assert on_two_hosts(module, tmp_path, lambda checkpoint, rank: checkpoint.leads) == [True, False, True, False]


@pytest.mark.parametrize("how", ["lost", "damaged"])
def test_what_is_not_whole_on_each_host_is_passed_over(module: ModuleType, tmp_path: Path, how: str) -> None:
    on_two_hosts(module, tmp_path, lambda checkpoint, rank: [saved(checkpoint, rank) for _ in range(2)])
    if how == "lost":
        shutil.rmtree(tmp_path / "h0" / "gen-2")
    else:
        (tmp_path / "h1" / "gen-2" / "rank-3").write_bytes(b"x")

    def goes_on(checkpoint: Any, rank: int) -> tuple[int, bool]:
        return checkpoint.newest().number, saved(checkpoint, rank)

    assert on_two_hosts(module, tmp_path, goes_on) == [(1, True)] * 4
    assert [generations(tmp_path / host) for host in ("h0", "h1")] == [["gen-1", "gen-3"]] * 2, "no number is used twice"


def test_where_one_host_cannot_write_no_host_has_it(module: ModuleType, tmp_path: Path) -> None:
    on_two_hosts(module, tmp_path, saved)

    def cannot(checkpoint: Any, rank: int) -> bool:
        return bool(checkpoint.save("no/such/folder" if rank == 3 else f"rank-{rank}", b"", {}))

    assert on_two_hosts(module, tmp_path, cannot) == [False] * 4
    assert [generations(tmp_path / host) for host in ("h0", "h1")] == [["gen-1"]] * 2
    (tmp_path / "h1" / "gen-2" / "in the way").mkdir(parents=True)
    (tmp_path / "h0" / "gen-3.tmp").write_text("no folder")
    assert on_two_hosts(module, tmp_path, saved) == [False] * 4
