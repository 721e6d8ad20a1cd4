"""Which hosts see a file that a command has written: who is asked, what follows from the answers, and how long it counts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence

import pytest
from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.lang.asks import Submit
from lavad.core.lang.bulk_asks import BulkJob
from lavad.core.rules.checkpoint_folder import pair_of
from lavad.core.site.host import Mount
from lavad.hosts.folder_probes import AGE, MOST_KNOWN, FolderProbes
from lavad.hosts.peek_requests import PeekRequests
from lavad.hosts.sessions import Session, Sessions
from lavad.wire.records import PeekData
from proto import agent_pb2 as pb
from tests.support.worlds.bench import Bench

FILE = Submit(command="x", checkpoint_folder="/ck", checkpoint_probe="/ck/.lava.1.tmp", checkpoint_mount="/")
ROOT, NAS = "/ -", "/ck nas:/ck"
MISSING = "/ck/.lava.1.tmp: No such file or directory"


class World:
    """Hosts that answer ``says`` (an error, "" where they see the file, None: nothing) when they are asked."""

    def __init__(self, bench: Bench, says: dict[str, str | None], mounts: dict[str, tuple[Mount, ...]]) -> None:
        self.now = 100.0
        self.loop = asyncio.new_event_loop()
        self.says = says
        self.asked: list[str] = []
        self.paths: list[str] = []
        self.sessions, self.peeks = Sessions(), PeekRequests()
        for host in says:
            facts = bench.cluster.hosts.rows[host].facts
            facts = replace(facts, mounts=mounts.get(host, (Mount("/"),)), boot_id=host)
            bench.apply(ev.HostJoined(at=bench.now, host=host, facts=facts))
            self.sessions.open(Session(host, 0))
        self.probes = FolderProbes(bench.cluster, self.sessions, self.peeks, lambda: self.now)

    def looks(self, asks: Sequence[Submit | BulkJob] = (FILE,), host: str = "h1", many: int = 1) -> None:
        self.loop.run_until_complete(self._looks(asks, host, many))

    async def _looks(self, asks: Sequence[Submit | BulkJob], host: str, many: int) -> None:
        answering = [asyncio.create_task(self._answer(session)) for session in self.sessions.rows.values()]
        await asyncio.gather(*(self.probes.look_for(asks, "alice", host) for _ in range(many)))
        for task in answering:
            task.cancel()

    async def _answer(self, session: Session) -> None:
        while (sent := await session.outgoing.get()) is not None:
            question = pb.ToAgent.FromString(sent.message).peek
            assert question.user == "alice"
            self.paths.append(question.path)
            self.asked.append(session.host)
            says = self.says[session.host]
            if says is not None:
                self.peeks.answered(session, PeekData(question.id, b"", 0, says))


Make = Callable[..., World]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    monkeypatch.setattr("lavad.hosts.folder_probes.AGAIN", (0.0, 0.0))
    made: list[World] = []

    def make(says: dict[str, str | None], **mounts: tuple[Mount, ...]) -> World:
        monkeypatch.setattr("lavad.hosts.folder_probes.ANSWER", 0.1 if None in says.values() else 60.0)
        made.append(World(Bench(), says, mounts))
        return made[-1]

    yield make
    for one in made:
        one.loop.close()


def test_hosts_that_see_it(world: Make) -> None:
    found = world({"h1": "", "h2": "", "h3": ""})
    found.looks(many=5)
    assert found.probes.seen("alice") == {pair_of("/", ROOT, ROOT): True}
    assert sorted(found.asked) == ["h1", "h1", "h2"], "two of a kind are asked once, and the caller's in the end again"
    found.looks()
    assert len(found.asked) == 3, "it is known"
    found.now += AGE[True] + 1
    assert found.probes.seen("alice") == {}
    found.looks()
    assert len(found.asked) == 6


def test_what_one_user_shows_says_nothing_of_the_jobs_of_others(world: Make) -> None:
    """Alice may have written the file on both hosts."""
    found = world({"h1": "", "h2": ""})
    found.looks()
    assert found.probes.seen("bob") == {}


def test_a_host_that_does_not(world: Make) -> None:
    found = world({"h1": "", "h2": MISSING})
    found.looks()
    assert found.probes.seen("alice") == {pair_of("/", ROOT, ROOT): False}
    assert found.asked.count("h2") == 3, "a network file system may be late"
    found.now += AGE[False] + 1
    found.says["h2"] = ""
    found.looks()
    assert found.probes.seen("alice") == {pair_of("/", ROOT, ROOT): True}


def test_one_of_each_kind(world: Make) -> None:
    nas = (Mount("/"), Mount("/ck", True, "nas:/ck"))
    found = world({"h1": MISSING, "h2": "", "h3": ""}, h2=nas, h3=nas)
    found.looks(host="h2")
    assert found.probes.seen("alice") == {pair_of("/", NAS, NAS): True, pair_of("/", ROOT, NAS): False}


@pytest.mark.parametrize(
    ("says", "host"),
    [
        ({"h1": MISSING, "h2": MISSING}, "h1"),
        ({"h1": MISSING, "h2": ""}, "h1"),
        ({"h1": "", "h2": "/ck/.lava.1.tmp: Permission denied"}, "h1"),
        ({"h1": "", "h2": "user alice is not known here"}, "h1"),
        ({"h1": "", "h2": None}, "h1"),
        ({"h1": None, "h2": MISSING}, "h1"),
        ({"h1": MISSING, "h2": MISSING}, "client"),
    ],
)
def test_answers_from_which_nothing_follows(world: Make, says: dict[str, str | None], host: str) -> None:
    """Also where the caller's own host does not see what the caller says to have written."""
    found = world(says)
    found.looks(host=host)
    assert found.probes.seen("alice") == {}
    asked = len(found.asked)
    found.looks(host=host)
    assert len(found.asked) == asked, "commands do not wait for it again at once"


def test_a_caller_that_is_no_host(world: Make) -> None:
    found = world({"h1": MISSING, "h2": ""})
    found.looks(host="client")
    assert found.probes.seen("alice") == {pair_of("/", ROOT, ROOT): False}


@pytest.mark.parametrize(
    ("probe", "mount"),
    [
        ("", "/"),
        ("ck/.lava.1.tmp", "/"),
        ("/ck/../etc/.lava.1.tmp", "/"),
        ("/ck/.lava.1.tmp", "/other"),
        ("/ck/.lava.1.tmp", ""),
        ("//ck/.lava.1.tmp", "/"),
        ("/ck/.lava.g.tmp", "/"),
    ],
)
def test_what_callers_send_else(world: Make, probe: str, mount: str) -> None:
    found = world({"h1": "", "h2": ""})
    found.looks([replace(FILE, checkpoint_probe=probe, checkpoint_mount=mount)])
    assert found.asked == []


def test_of_many_submissions_each_file_is_looked_for_once(world: Make) -> None:
    nas = (Mount("/"), Mount("/ck/nas", True, "nas:/ck"))
    found = world({"h1": "", "h2": ""}, h2=nas)
    other = BulkJob(command="x", checkpoint_probe="/ck/nas/.lava.2.tmp", checkpoint_mount="/")
    found.looks([FILE, other, FILE, Submit(command="x")])
    assert found.probes.seen("alice") == {pair_of("/", ROOT, ROOT): True, pair_of("/", ROOT, "/ck/nas nas:/ck"): True}
    assert found.paths.count(FILE.checkpoint_probe) == found.paths.count(other.checkpoint_probe) == 3
    many = [replace(other, checkpoint_mount="/ck", checkpoint_probe=f"/ck/{number}/.lava.2.tmp") for number in range(99)]
    found.says = dict.fromkeys(found.says, "Permission denied")
    found.looks(many)
    assert {*found.paths[6:]} == {"/ck/0/.lava.2.tmp"}, "that hosts do not tell is kept for the file system, too"


def test_hosts_of_too_many_kinds(world: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that does not tell of its mounts is of a kind of its own."""
    monkeypatch.setattr("lavad.hosts.folder_probes.MOST", 2)
    names = [f"h{number}" for number in range(1, 4)]
    found = world(dict.fromkeys(names, ""), **dict.fromkeys(names, ()))
    found.looks()
    assert {*found.asked} == {"h1", "h2"}
    asked = len(found.asked)
    found.looks()
    assert len(found.asked) == asked, "it is known"


def test_one_host_alone_is_not_asked(world: Make) -> None:
    found = world({"h1": ""})
    found.looks()
    assert found.asked == []


def test_what_is_kept_is_bounded(world: Make) -> None:
    found = world({"h1": "", "h2": ""})
    for number in range(MOST_KNOWN + 100):
        found.probes._keep("alice", pair_of(f"/{number}", ROOT, ROOT), True)
    assert len(found.probes.seen("alice")) == MOST_KNOWN
    found.now += AGE[True] + 1
    found.looks()
    assert found.probes.seen("alice") == {pair_of("/", ROOT, ROOT): True}
