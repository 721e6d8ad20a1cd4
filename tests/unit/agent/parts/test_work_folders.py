"""Working folders that were made for jobs: they stay until the job is over, for the master too, and JOB_CWD_TTL has passed."""

from __future__ import annotations

from pathlib import Path

import msgspec

from agent.core.part import Part
from agent.launch.build import Compiled
from agent.launch.outputs import OutputPaths
from agent.launch.site import Site, User
from agent.parts.entry import Entry
from agent.parts.table import PartTable
from agent.parts.work_folders import GONE, HOUR, MOST_LINES, Kept, WorkFolders
from agent.starter.protocol.part import PartSpec
from agent.starter.protocol.reports import End
from agent.starter_client.outgoing import Outgoing
from proto import agent_pb2 as pb

ALICE = User("alice", 1000, 1000, (1000,), "/home/alice", "/bin/sh")
SITE = Site("h", "/run", "/spool", "/conf", {})


class Line(Outgoing):
    """What the starter would get."""

    def __init__(self) -> None:
        super().__init__()
        self.removed: list[str] = []

    def start(self, sequence: int, template: PartSpec, part: PartSpec) -> None:
        assert part.argv is not None
        assert part.user == ALICE.account
        assert part.argv[:3] == ("rm", "-rf", "--")
        self.removed.append(part.argv[3])


class Host:
    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.folder, self.table, self.line = folder, PartTable(), Line()
        self.folders = WorkFolders(str(folder), self.table, self.line)
        self.poked = 0

    def entry(self, key: int, folder: str, *, hours: int | None = 0, made: bool = True, pattern: str = "") -> Entry:
        text = pb.JobText(user="alice", cwd=pattern or folder, cwd_hours=hours)
        order = pb.Order(key=key, attempt=1, uid=f"u{key}", start=pb.Start(hosts=[pb.HostSlots(host="h", slots=1)]))
        entry = Entry(Part(f"u{key}", key, 1), order, Compiled(text, ALICE, SITE), OutputPaths(cwd=folder), 1.0)
        entry.end = End(0, 1.0, 1.0, 0.0, 0.0, 0, (), None, False, made_cwd=made)
        return entry

    def asked(self, now: float) -> list[int]:
        asked = self.folders.take(now)
        return list(asked.jobs) if asked is not None else []

    def look(self, now: float, *over: int) -> list[str]:
        """A look at this time, at which the master says that these are over: what is removed."""
        self.folders._ask()
        self.asked(now)
        self.folders.answered(over, now)
        removed, self.line.removed = self.line.removed, []
        return removed


def test_a_folder_goes_when_the_master_says_that_the_job_is_over(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.folders.keep(host.entry(7, "/s/run.7"))
    assert host.asked(10.0) == [7]
    assert host.asked(10.0) == [], "it is asked once a look"
    host.folders.answered([], 10.0)
    assert host.line.removed == [], "it waits to run again"
    assert host.look(70.0, 7) == ["/s/run.7"]
    assert host.look(130.0, 7) == []


def test_it_stays_for_as_many_hours_as_the_site_says(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.folders.keep(host.entry(7, "/s/run.7", hours=2))
    assert host.look(100.0, 7) == []
    assert host.look(100.0 + 2 * HOUR - 1, 7) == []
    assert host.look(100.0 + 2 * HOUR, 7) == ["/s/run.7"]


def test_the_time_begins_again_where_the_job_ran_again(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.folders.keep(host.entry(7, "/s/run.7", hours=2))
    assert host.look(100.0, 7) == []
    assert host.look(100.0 + 2 * HOUR) == [], "it was requeued meanwhile"
    assert host.look(200.0 + 2 * HOUR, 7) == []
    assert host.look(200.0 + 4 * HOUR, 7) == ["/s/run.7"]


def test_what_was_there_before_or_has_no_time_stays(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.folders.keep(host.entry(7, "/s/run.7", made=False))
    host.folders.keep(host.entry(8, "/s/run.8", hours=None))
    assert host.look(100.0, 7, 8) == []


def test_a_folder_in_which_another_job_works_stays_meanwhile(tmp_path: Path) -> None:
    host = Host(tmp_path)
    other, beside = host.entry(8, "/s/p/sub"), host.entry(9, "/s/p2")
    host.table.add(other)
    host.table.add(beside)
    host.folders.keep(host.entry(7, "/s/p"))
    assert host.look(100.0, 7) == []
    host.table.remove(other)
    assert host.look(160.0, 7) == ["/s/p"]


def test_a_folder_that_all_elements_share_stays_until_all_are_over(tmp_path: Path) -> None:
    host = Host(tmp_path)
    element = 2 << 32 | 7
    host.folders.keep(host.entry(element, "/s/run.7", pattern="/s/run.%J"))
    assert host.asked(10.0) == [7]
    other = Host(tmp_path / "other")
    other.folders.keep(other.entry(element, "/s/run.7_2", pattern="/s/run.%J_%I"))
    assert other.asked(10.0) == [element]


def test_the_list_outlives_the_agent(tmp_path: Path) -> None:
    host = Host(tmp_path)
    for key in (7, 8, 9):
        host.folders.keep(host.entry(key, f"/s/run.{key}", hours=key - 7))
    assert host.look(100.0, 7, 8, 9) == ["/s/run.7"]
    with (tmp_path / "work_folders").open("ab") as file:
        file.write(b'{"uid": "cut off')
    after = Host(tmp_path)
    assert after.look(100.0 + HOUR, 7, 8, 9) == ["/s/run.8"]
    assert (tmp_path / "work_folders").stat().st_mode & 0o777 == 0o600


def test_the_file_does_not_grow_with_jobs_that_are_over(tmp_path: Path) -> None:
    host = Host(tmp_path)
    for key in range(MOST_LINES):
        host.folders.keep(host.entry(key, f"/s/{key}"))
        assert host.look(100.0, key) == [f"/s/{key}"]
    lines = (tmp_path / "work_folders").read_bytes().splitlines()
    assert len(lines) <= MOST_LINES
    assert msgspec.json.decode(lines[-1], type=Kept).hours == GONE
