"""Generations of a job on several hosts: whole or not there, parts of one attempt only, and all hosts go on from the same one."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.launch.checkpointing import copies, parts
from agent.launch.checkpointing.asked import Asked, CheckpointError, WrongHosts
from agent.launch.checkpointing.parts import fetch, stage
from agent.launch.checkpointing.staging import fetch as fetch_alone
from agent.starter.part import generations
from tests.support.wait import SLOW

SECOND = 1_000_000_000
WHOLE = ["MANIFEST", "part-0", "part-1"]


class Job:
    """A job on two hosts, each with a folder of its own, which share ``stage``."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.stage, self.attempt, self.slots = folder, folder / "stage", "a1", [2, 2]
        self.stage.mkdir()

    def asked(self, place: int, generation: int = 0, most: int = -1, host: str = "", stamp: str = "s") -> Asked:
        own = self.folder / (host or f"h{place}") / f"part-{place}"
        own.mkdir(parents=True, exist_ok=True)
        fields: dict[str, object] = {"folder": str(own), "method": "", "stage": str(self.stage), "stamp": stamp, "kept": 2}
        return Asked(
            fields | {"generation": generation, "most": most, "place": place, "slots": self.slots, "attempt": self.attempt}
        )

    def make(self, number: int, place: int, text: str = "", at: int = 0) -> Path:
        """A host's part of a generation, made ``at`` seconds."""
        path = self.folder / f"h{place}" / f"part-{place}" / f"gen-{number}"
        path.mkdir(parents=True)
        data = (text or f"{number} of {place}").encode() * 100
        (path / "state").write_bytes(data)
        files = {"state": {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}}
        (path / "MANIFEST").write_text(json.dumps({"generation": number, "files": files}))
        made = (1_000_000 + (at or number)) * SECOND + place
        os.utime(path / "MANIFEST", ns=(made, made))
        return path

    def stages(self, number: int, places: tuple[int, ...] = (1, 0)) -> None:
        for place in places:
            self.make(number, place)
            stage(self.asked(place, number))

    def staged(self) -> dict[str, list[str]]:
        return {path.name: sorted(os.listdir(path)) for path in self.stage.iterdir() if path.is_dir() and path.name[0] != "."}

    def has(self, host: str, place: int) -> list[str]:
        return sorted(os.listdir(self.folder / host / f"part-{place}"))

    def state(self, number: int, host: str, place: int) -> str:
        return (self.folder / host / f"part-{place}" / f"gen-{number}" / "state").read_text()[:6]

    def archive(self, number: int, place: int) -> Path:
        return self.stage / f"gen-{number}" / f"part-{place}" / copies.ARCHIVE


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


@pytest.fixture
def given_up(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Callable[[], None]]]:
    """What happens while the first host waits, one a look; it is given up after the last."""
    then: list[Callable[[], None]] = []

    def pause(_: float) -> None:
        if not then:
            raise SystemExit(1)
        then.pop(0)()

    monkeypatch.setattr(time, "sleep", pause)
    yield then
    assert not then


def stages(asked: Asked) -> None:
    stage(asked)


def test_it_is_there_when_the_last_part_is(job: Job, given_up: list[Callable[[], None]]) -> None:
    job.make(3, 1)
    assert stage(job.asked(1, 3))[0] == 3
    assert job.staged() == {"gen-3.a1.parts": ["part-1"]}
    job.make(3, 0)
    number, size = stage(job.asked(0, 3))
    assert job.staged() == {"gen-3": WHOLE}
    assert (number, generations.check(str(job.stage / "gen-3"))) == (3, (size, ""))
    for place in (0, 1):
        assert stage(job.asked(place, 3)) == (3, size), "what is there is found to be"
    facts = copies.facts_of(str(job.stage / "gen-3"))
    assert (facts["slots"], facts["copy"]) == ([2, 2], 1)


def test_the_first_host_waits_for_the_others(job: Job, given_up: list[Callable[[], None]]) -> None:
    job.make(3, 0)
    job.make(3, 1)
    given_up += [lambda: None, lambda: stages(job.asked(1, 3))]
    stage(job.asked(0, 3))
    assert job.staged() == {"gen-3": WHOLE}


def test_without_one_part_there_is_none(job: Job, given_up: list[Callable[[], None]]) -> None:
    job.stages(2)
    job.make(3, 0)
    with pytest.raises(SystemExit):
        stage(job.asked(0, 3))
    assert job.staged() == {"gen-2": WHOLE}, "what is given up is removed"


def test_parts_of_two_attempts_are_never_mixed(job: Job, given_up: list[Callable[[], None]]) -> None:
    job.make(3, 1)
    stage(job.asked(1, 3))
    (job.stage / "gen-9.tmp").mkdir()
    job.attempt = "a2"
    job.make(3, 0)
    given_up.append(lambda: None)
    with pytest.raises(SystemExit):
        stage(job.asked(0, 3))
    assert job.staged() == {}, "that of an attempt that was lost is of no use"


def test_why_a_part_is_not_there_is_told_by_the_first_host(
    job: Job, given_up: list[Callable[[], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAVA_HOST", "h1")
    (job.make(3, 1) / "state").write_text("damaged")
    with pytest.raises(CheckpointError, match="generation 3 is damaged"):
        stage(job.asked(1, 3))
    job.make(3, 0)
    with pytest.raises(CheckpointError, match=r"^part-1 on host h1: generation 3 is damaged: file state has 7 bytes"):
        stage(job.asked(0, 3))
    shutil.rmtree(job.folder / "h1")
    job.make(3, 1)
    stage(job.asked(1, 3))
    stage(job.asked(0, 3))
    assert job.staged() == {"gen-3": WHOLE}, "a part that is there is not copied again"


def test_one_that_was_removed_and_one_too_large(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CheckpointError, match="generation 3 was removed before it was copied"):
        stage(job.asked(1, 3))
    job.make(3, 1)
    monkeypatch.setattr(parts, "check_space", lambda folder, size, what: copies.check_space(folder, 1 << 62, what))
    with pytest.raises(CheckpointError, match=r"MB free, and the copy of generation 3 needs"):
        stage(job.asked(1, 3))
    assert job.staged() == {"gen-3.a1.parts": ["part-1.failed"]}


def test_older_ones_go(job: Job) -> None:
    for number in (1, 2, 3):
        job.stages(number)
    assert job.staged() == {"gen-2": WHOLE, "gen-3": WHOLE}


def test_each_place_has_its_part_on_whatever_hosts(job: Job) -> None:
    job.stages(1)
    job.stages(2)
    job.attempt = "a2"
    fetch(job.asked(0, host="h1"))
    fetch(job.asked(1, host="h2"))
    assert job.has("h1", 0) == ["gen-2"]
    assert (job.state(2, "h1", 0), job.state(2, "h2", 1)) == ("2 of 0", "2 of 1")
    assert job.has("h1", 1) == ["gen-1", "gen-2"], "what it had at another place stays apart"


def test_what_is_on_some_hosts_alone_is_set_aside(job: Job) -> None:
    job.stages(2)
    before = (job.folder / "h0" / "part-0" / "gen-2").stat().st_ino
    job.make(3, 0)
    job.attempt = "a2"
    fetch(job.asked(0))
    fetch(job.asked(1))
    assert job.has("h0", 0) == ["gen-2", "gen-3.damaged"]
    assert (job.folder / "h0" / "part-0" / "gen-2").stat().st_ino == before, "what is there is not brought again"
    assert job.has("h1", 1) == ["gen-2"]


def test_with_no_copy_all_begin_anew(job: Job) -> None:
    job.make(1, 0)
    job.make(1, 1)
    for place in (0, 1):
        fetch(job.asked(place))
        assert job.has(f"h{place}", place) == ["gen-1.damaged"]


def test_all_hosts_take_the_one_that_the_first_has_named(job: Job) -> None:
    job.stages(1)
    job.attempt = "a2"
    fetch(job.asked(1, host="h3"))
    shutil.copytree(job.stage / "gen-1", job.stage / "gen-2")
    fetch(job.asked(0, host="h4"))
    assert (job.has("h3", 1), job.has("h4", 0)) == (["gen-1"], ["gen-1"])
    assert os.readlink(job.stage / ".restart-a2") == "1"
    job.make(2, 0, at=50)
    job.make(2, 1, at=50)
    stage(job.asked(1, 2))
    stage(job.asked(0, 2))
    assert sorted(os.listdir(job.stage)) == ["gen-1", "gen-2"], "the name is not kept"


def test_a_damaged_part_ends_the_start_and_the_next_takes_the_one_before(job: Job) -> None:
    job.stages(1)
    job.stages(2)
    data = bytearray(job.archive(2, 1).read_bytes())
    data[len(data) // 2] ^= 1
    job.archive(2, 1).write_bytes(data)
    job.attempt = "a2"
    fetch(job.asked(0, host="h3"))
    with pytest.raises(CheckpointError, match=r"^generation 2: part-1 is damaged: "):
        fetch(job.asked(1, host="h4"))
    with pytest.raises(CheckpointError, match=r"^generation 2 is no longer in "):
        fetch(job.asked(0, host="h3"))
    job.attempt = "a3"
    for place, host in ((0, "h3"), (1, "h4")):
        fetch(job.asked(place, host=host))
        assert job.state(1, host, place) == f"1 of {place}"
    assert job.has("h3", 0) == ["gen-1", "gen-2.damaged"]


@pytest.mark.parametrize("how", ["cut", "gone", "manifest"])
def test_one_that_has_not_all_of_its_parts_is_none(job: Job, how: str) -> None:
    job.stages(1)
    job.stages(2)
    archive = job.archive(2, 1)
    if how == "cut":
        os.truncate(archive, 10)
    elif how == "gone":
        shutil.rmtree(archive.parent)
    else:
        (job.stage / "gen-2" / "MANIFEST").write_text('{"made": 1, "of": "s", "copy": 9, "files": {"a": 1}}')
    job.attempt = "a2"
    fetch(job.asked(0, host="h3"))
    assert job.has("h3", 0) == ["gen-1"]
    assert sorted(job.staged()) == ["gen-1", "gen-2.damaged"]


def test_a_job_that_goes_back(job: Job) -> None:
    job.stages(1)
    job.stages(2)
    job.attempt = "a2"
    for place in (0, 1):
        fetch(job.asked(place, most=1))
        assert job.has(f"h{place}", place) == ["gen-1", "gen-2.damaged"]


def test_other_hosts_or_slots_are_refused(job: Job) -> None:
    job.stages(1)
    job.attempt, job.slots = "a2", [4]
    alone = Asked({"folder": str(job.folder / "h0"), "method": "", "stage": str(job.stage), "stamp": "s"})
    told = "^generation 1 is of 2 hosts with 2 2 slots, and the job has {}: a restart needs the same$"
    with pytest.raises(WrongHosts, match=told.format("one host")):
        fetch_alone(alone)
    job.slots = [3, 1]
    with pytest.raises(WrongHosts, match=told.format("2 hosts with 3 1 slots")):
        fetch(job.asked(0))
    assert job.staged() == {"gen-1": WHOLE}


def test_hosts_that_look_at_the_same_time(job: Job) -> None:
    job.stages(1)
    job.stages(2)
    job.attempt = "a2"
    asked = [job.asked(place, host="new") for place in (0, 1)]
    threads = [threading.Thread(target=fetch, args=(one,)) for one in asked]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30 * SLOW)
    assert [job.has("new", place) for place in (0, 1)] == [["gen-2"], ["gen-2"]]
