"""Copies of generations: whole or not there, the latest made counts, a damaged one is passed over, space is looked at before."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from agent.launch import checkpoints
from agent.launch.checkpointing import copies, staging
from agent.launch.checkpointing.asked import Asked, CheckpointError
from agent.starter.part import generations
from tests.support.wait import SLOW, wait_until

SECOND = 1_000_000_000


class Job:
    """A job on two hosts, each with a folder of its own, which share ``stage``."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.stage = folder, folder / "stage"
        for name in ("stage", "h1", "h2"):
            (folder / name).mkdir()

    def asked(self, host: str = "h1", generation: int = 0, most: int = -1, stamp: str = "a", kept: int = 2) -> Asked:
        fields: dict[str, object] = {"folder": str(self.folder / host), "method": "", "stage": str(self.stage)}
        return Asked(fields | {"generation": generation, "most": most, "stamp": stamp, "kept": kept})

    def make(self, number: int, text: str = "state", host: str = "h1", at: int = 0) -> Path:
        """A generation with a file, a folder, a link and a second name of the file; made ``at`` seconds."""
        path = self.folder / host / f"gen-{number}"
        (path / "deep" / "empty").mkdir(parents=True)
        (path / "deep" / "a").write_text(text * 1000)
        (path / "deep" / "a").chmod(0o755)
        os.link(path / "deep" / "a", path / "b")
        (path / "link").symlink_to("deep/a")
        digest = hashlib.sha256((text * 1000).encode()).hexdigest()
        files = {name: {"size": len(text) * 1000, "sha256": digest} for name in ("deep/a", "b")}
        (path / "MANIFEST").write_text(json.dumps({"generation": number, "files": files}))
        made = (1_000_000 + (at or number)) * SECOND + 123
        os.utime(path / "MANIFEST", ns=(made, made))
        return path

    def staged(self) -> list[str]:
        return sorted(path.name for path in self.stage.iterdir())

    def has(self, host: str) -> list[str]:
        return sorted(path.name for path in (self.folder / host).iterdir())

    def state(self, number: int, host: str = "h2") -> str:
        return (self.folder / host / f"gen-{number}" / "b").read_text()[:5]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def test_a_generation_comes_back_as_it_was(job: Job) -> None:
    source = job.make(3)
    number, size = staging.stage(job.asked(generation=3))
    assert number == 3
    assert 0 < size < 5000, "it is compressed"
    assert generations.check(str(job.stage / "gen-3")) == (size, "")
    staging.fetch(job.asked("h2"))
    path = job.folder / "h2" / "gen-3"
    assert generations.check(str(path)) == (10_000, "")
    assert (path / "deep" / "empty").is_dir()
    assert os.readlink(path / "link") == "deep/a"
    assert os.access(path / "deep" / "a", os.X_OK)
    assert (path / "MANIFEST").stat().st_mtime_ns == (source / "MANIFEST").stat().st_mtime_ns
    assert (job.has("h1"), job.has("h2")) == (["gen-3"], ["gen-3"]), "nothing else is left"


def test_what_is_there_is_not_copied_again_and_older_ones_go(job: Job) -> None:
    for number in (1, 2, 3):
        job.make(number)
        staging.stage(job.asked(generation=number))
    assert job.staged() == ["gen-2", "gen-3"]
    before = (job.stage / "gen-3").stat().st_ino
    assert staging.stage(job.asked(generation=3)) == (3, generations.listed_size(str(job.stage / "gen-3")))
    assert (job.stage / "gen-3").stat().st_ino == before
    (job.stage / "gen-9.tmp").mkdir()
    job.make(4)
    staging.stage(job.asked(generation=4, kept=1))
    assert job.staged() == ["gen-4"], "what another host began is gone, too"


def test_copies_of_another_job_of_this_number(job: Job) -> None:
    job.make(9, "older")
    staging.stage(job.asked(generation=9, stamp="before"))
    staging.fetch(job.asked("h2"))
    assert job.has("h2") == []
    job.make(1, at=20)
    staging.stage(job.asked(generation=1, kept=1))
    assert job.staged() == ["gen-1", "gen-9"]
    staging.fetch(job.asked("h2"))
    assert job.has("h2") == ["gen-1"]
    staging.fetch(job.asked("h2", stamp=""))
    assert job.has("h2") == ["gen-1"], "a job that goes on with another's takes the latest of all"


def test_a_damaged_copy_is_set_aside_for_the_one_before(job: Job) -> None:
    for number in (1, 2):
        job.make(number, f"gen-{number}")
        staging.stage(job.asked(generation=number))
    archive = job.stage / "gen-2" / copies.ARCHIVE
    data = bytearray(archive.read_bytes())
    data[len(data) // 2] ^= 1
    archive.write_bytes(data)
    staging.fetch(job.asked("h2"))
    assert job.has("h2") == ["gen-1"]
    assert job.state(1) == "gen-1"
    assert job.staged() == ["gen-1", "gen-2.damaged"]


@pytest.mark.parametrize("how", ["gone", "short", "empty", "other", "list", "times"])
def test_each_damage_leaves_nothing_behind(job: Job, how: str) -> None:
    job.make(2)
    staging.stage(job.asked(generation=2))
    archive, manifest = job.stage / "gen-2" / copies.ARCHIVE, job.stage / "gen-2" / "MANIFEST"
    if how == "gone":
        archive.unlink()
    elif how in ("short", "empty"):
        archive.write_bytes(archive.read_bytes()[: 30 if how == "short" else 0])
    elif how == "times":
        archive.write_bytes(b"")
        manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"made": 1 << 70, "bytes": 10**400}))
    else:
        told = json.loads(manifest.read_text())
        told["files"] = [] if how == "list" else {copies.ARCHIVE: {"size": 1, "sha256": "0" * 64}}
        manifest.write_text(json.dumps(told))
    staging.fetch(job.asked("h2"))
    assert job.has("h2") == []
    assert job.staged() == ["gen-2.damaged"]


def test_the_latest_made_counts_whatever_its_number(job: Job) -> None:
    """The host lost three generations that were not staged; another went on from the one before, and is lost now."""
    job.make(1)
    staging.stage(job.asked(generation=1))
    for number in (2, 3, 4):
        job.make(number, "first", at=number)
    job.make(2, "other", "h2", at=50)
    staging.stage(job.asked("h2", generation=2))
    staging.fetch(job.asked("h1"))
    assert [name for name in job.has("h1") if "." not in name] == ["gen-1", "gen-2"]
    assert job.state(2, "h1") == "other"
    job.make(3, "third", at=60)
    staging.fetch(job.asked("h1"))
    assert job.state(3, "h1") == "third", "its own are later than the copy"


def test_the_last_copy_counts_where_clocks_differ(job: Job) -> None:
    """The clock of the host that was lost was ahead of the other's."""
    job.make(3, "ahead", at=900)
    staging.stage(job.asked(generation=3))
    staging.fetch(job.asked("h2"))
    for number in (4, 5):
        job.make(number, f"gen-{number}", "h2", at=100 + number)
        staging.stage(job.asked("h2", generation=number))
    assert job.staged() == ["gen-4", "gen-5"]
    staging.fetch(job.asked("h1"))
    assert job.state(5, "h1") == "gen-5"


def test_a_job_that_goes_back_does_not_find_the_newer_copy(job: Job) -> None:
    for number in (1, 2):
        job.make(number)
        staging.stage(job.asked(generation=number))
    staging.fetch(job.asked("h2", most=1))
    assert job.has("h2") == ["gen-1"]
    assert job.staged() == ["gen-1", "gen-2.damaged"]


def test_a_copy_of_this_number_is_replaced(job: Job) -> None:
    job.make(2, "older")
    staging.stage(job.asked(generation=2))
    job.make(2, "newer", "h2", at=30)
    staging.stage(job.asked("h2", generation=2))
    (job.folder / "h1" / "gen-2").rename(job.folder / "gone")
    staging.fetch(job.asked("h1"))
    assert job.state(2, "h1") == "newer"
    assert job.staged() == ["gen-2"]


def test_a_generation_that_is_not_what_its_manifest_says_is_not_copied(job: Job) -> None:
    (job.make(1) / "b").write_text("other")
    with pytest.raises(
        CheckpointError, match=r"^generation 1 is damaged: file (deep/a|b) has 5 bytes, and 5000 in the manifest$"
    ):
        staging.stage(job.asked(generation=1))
    with pytest.raises(CheckpointError, match=r"^generation 2 was removed before it was copied$"):
        staging.stage(job.asked(generation=2))
    assert (job.staged(), job.has("h1")) == ([], ["gen-1"])


def test_space_is_looked_at_before(job: Job) -> None:
    path = job.make(1)
    told = json.loads((path / "MANIFEST").read_text())
    told["files"]["b"]["size"] = 1 << 60
    (path / "MANIFEST").write_text(json.dumps(told))
    with pytest.raises(CheckpointError, match=r"MB free, and the copy of generation 1 needs 1319\d+ MB$"):
        staging.stage(job.asked(generation=1))
    job.make(2)
    staging.stage(job.asked(generation=2))
    copy = job.stage / "gen-2" / "MANIFEST"
    copy.write_text(json.dumps(json.loads(copy.read_text()) | {"bytes": 1 << 60}))
    with pytest.raises(CheckpointError, match=rf"^{job.folder}/h2 has \d+ MB free, and generation 2 of {job.stage} needs "):
        staging.fetch(job.asked("h2"))
    assert job.has("h2") == []


def packed(job: Job, members: list[tarfile.TarInfo]) -> None:
    """The copy of generation 1 is another archive, under the checksum that its manifest has."""
    job.make(1)
    staging.stage(job.asked(generation=1))
    archive = job.stage / "gen-1" / copies.ARCHIVE
    with tarfile.open(archive, "w:gz") as made:
        for member in members:
            made.addfile(member)
    digest, manifest = hashlib.sha256(archive.read_bytes()).hexdigest(), job.stage / "gen-1" / "MANIFEST"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"files": {copies.ARCHIVE: {"size": 1, "sha256": digest}}}))


def link(name: str, to: str) -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.type, found.linkname = tarfile.SYMTYPE, to
    return found


def folder(name: str) -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.type = tarfile.DIRTYPE
    return found


@pytest.mark.parametrize("name", ["../out", "/out", "a/../../out"])
def test_an_archive_that_names_files_elsewhere(job: Job, name: str) -> None:
    packed(job, [tarfile.TarInfo(name)])
    staging.fetch(job.asked("h2"))
    assert job.has("h2") == []
    assert not (job.folder / "out").exists()


def test_an_archive_whose_links_lead_elsewhere(job: Job) -> None:
    """A link below another one would be made where that one leads."""
    (home := job.folder / "home").mkdir()
    packed(job, [link("a", str(home)), link("a/.profile", "/tmp/of-somebody")])
    staging.fetch(job.asked("h2"))
    assert list(home.iterdir()) == []
    assert (job.has("h2"), job.staged()) == ([], ["gen-1.damaged"])


@pytest.mark.parametrize(
    "members",
    [
        [tarfile.TarInfo("a"), tarfile.TarInfo("a")],
        [tarfile.TarInfo("a"), folder("a/b")],
        [tarfile.TarInfo("a"), tarfile.TarInfo("a/b")],
        [folder("a"), tarfile.TarInfo("a")],
        [folder("a"), link("a", "b")],
    ],
)
def test_an_archive_that_cannot_be_unpacked_is_damaged(job: Job, members: list[tarfile.TarInfo]) -> None:
    packed(job, members)
    staging.fetch(job.asked("h2"))
    assert (job.has("h2"), job.staged()) == ([], ["gen-1.damaged"])


def test_an_archive_that_is_much_larger_than_it_says(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is unpacked ends with what the disk was found to have room for."""
    monkeypatch.setattr(staging, "HEADERS", 1 << 20)
    zeros = tarfile.TarInfo("zeros")
    zeros.size = 1 << 26
    job.make(1)
    staging.stage(job.asked(generation=1))
    archive = job.stage / "gen-1" / copies.ARCHIVE
    with tarfile.open(archive, "w:gz") as made, open("/dev/zero", "rb") as source:
        made.addfile(zeros, source)
    sizes: list[int] = []
    remove = shutil.rmtree

    def removed(path: str, ignore_errors: bool = False) -> None:
        sizes.extend(one.stat().st_size for one in Path(path).glob("*") if one.is_file())
        remove(path, ignore_errors)

    monkeypatch.setattr(shutil, "rmtree", removed)
    staging.fetch(job.asked("h2"))
    assert max(sizes) <= 2 << 20
    assert (job.has("h2"), job.staged()) == ([], ["gen-1.damaged"])


def test_what_its_manifest_does_not_list_is_room_that_a_copy_needs(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "HEADERS", 1 << 20)
    path = job.make(1)
    (path / "unlisted").write_bytes(bytes(16 << 20))
    staging.stage(job.asked(generation=1))
    assert json.loads((job.stage / "gen-1" / "MANIFEST").read_text())["bytes"] > 16 << 20
    staging.fetch(job.asked("h2"))
    assert (job.folder / "h2" / "gen-1" / "unlisted").stat().st_size == 16 << 20


def test_a_program_may_remove_its_generation_meanwhile(job: Job) -> None:
    path = job.make(1)
    with staging.held(str(path.parent), 1) as held:
        shutil.rmtree(path)
        assert generations.check(held) == (10_000, "")
    assert job.has("h1") == []


def test_a_copy_that_is_ended_leaves_nothing(job: Job) -> None:
    path = job.make(1)
    size = 500 << 20
    os.truncate(path / "b", size)
    (path / "MANIFEST").write_text(json.dumps({"files": {"b": {"size": size}}}))
    fields = {"folder": str(job.folder / "h1"), "method": "", "stage": str(job.stage), "stamp": "a", "generation": 1}
    copying = subprocess.Popen(checkpoints.words("stage", json.dumps(fields)), start_new_session=True)
    wait_until(lambda: (job.stage / "gen-1.tmp" / copies.ARCHIVE).exists(), 30, "the copy to begin")
    if (autogroup := Path(f"/proc/{copying.pid}/autogroup")).exists():
        assert autogroup.read_text().split()[-1] == "19", "jobs go before it"
    copying.terminate()
    assert copying.wait(30 * SLOW) == 1
    assert (job.staged(), job.has("h1")) == ([], ["gen-1"])


def test_a_write_that_fails_names_the_folder_of_the_copies(job: Job) -> None:
    """As on a full disk: the error of a write has no name of a file."""
    data = os.urandom(2 << 20)
    (job.make(1) / "b").write_bytes(data)
    (job.folder / "h1" / "gen-1" / "MANIFEST").write_text(json.dumps({"files": {"b": {"size": len(data)}}}))
    fields = {"folder": str(job.folder / "h1"), "method": "", "stage": str(job.stage), "stamp": "a", "generation": 1}
    words = ["sh", "-c", 'ulimit -f 1000; exec "$@"', "sh", *checkpoints.words("stage", json.dumps(fields))]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, f"{job.stage}: File too large\n")
    assert (job.staged(), job.has("h1")) == ([], ["gen-1"])
