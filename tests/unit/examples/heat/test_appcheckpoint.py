"""The reusable checkpoint module of examples/heat, in one process: what is kept, whole, or passed over."""

from __future__ import annotations

import importlib.util
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

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
