"""What becomes of jobs: each end is told once, whatever happens to the connection and the master."""

from __future__ import annotations

import json
import queue
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lava_client import follow
from lava_client.errors import Refused, Unavailable
from lava_client.follow import Follower, Seen, key_of
from lava_client.link import Closed
from lava_client.local import LocalLink
from tests.support.wait import SLOW
from tests.unit.cli.scripted_master import CUT, DROP, Frame, ScriptedMaster

if TYPE_CHECKING:
    from lava_client.link import Link

LONG = 20 * SLOW


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"LAVA_SOCKET": str(tmp_path / "s"), "LSF_ENVDIR": str(tmp_path)}


def changes(after: str, *rows: dict[str, Any], lost: bool = False) -> list[Frame]:
    return [{"ok": {"after": after, "lost": lost, "changes": list(rows)}}]


def listed(*rows: tuple[str, str, str]) -> list[Frame]:
    """What bjobs shows: (job, state, exit code)."""
    records = [
        {
            "JOBID": str(key_of(job)[0]),
            "JOBINDEX": str(key_of(job)[1]),
            "STAT": state,
            "EXIT_CODE": code,
            "EXIT_REASON": "",
            "FIRST_HOST": "h",
        }
        for job, state, code in rows
    ]
    return [{"out": json.dumps({"RECORDS": [*records, {"JOBID": "9", "ERROR": "Job <9> is not found"}]})}, {"exit": 0}]


class Told:
    """A follower, and what it has told of each job."""

    def __init__(self, connect: Callable[[], Link]) -> None:
        self.follower = Follower(connect)
        self._said: dict[str, queue.Queue[Seen]] = {}

    def follow(self, job: str, read: bool = False) -> None:
        said = self._said[job] = queue.Queue()
        self.follower.follow(key_of(job), said.put, read)

    def next(self, job: str) -> Seen:
        return self._said[job].get(timeout=LONG)

    def __enter__(self) -> Told:
        return self

    def __exit__(self, *_: object) -> None:
        self.follower.close()


def answering(**plans: Callable[[Frame], list[Frame]]) -> Callable[[Frame], list[Frame]]:
    return lambda frame: plans[str(frame["ask"])](frame)


def test_starts_and_ends_are_told_of_jobs_elements_and_whole_ranges(environ: dict[str, str]) -> None:
    first = changes("c.1")
    rows = changes(
        "c.2",
        {"job": "1", "state": "RUN", "host": "h"},
        {"job": "1", "state": "EXIT", "status": 9, "host": "h", "why": "w", "reason": "TERM_OWNER", "by": "root"},
        {"job": "2[1-3,7-9:2]", "state": "EXIT", "status": 0, "reason": "TERM_OWNER"},
        {"job": "2", "state": "EXIT"},
        {"job": "77", "state": "DONE", "status": 0},
    )
    end = [{"ok": {"state": "EXIT", "status": 256}}]
    with ScriptedMaster(Path(environ["LAVA_SOCKET"]), first, rows, end, changes("c.2")), Told(lambda: LocalLink(environ)) as told:
        link = LocalLink(environ)
        told.follower.begin(link)
        link.close()
        for job in ("1", "2[2]", "2[9]"):
            told.follow(job)
        assert told.next("1") == Seen("RUN", "h")
        ended = told.next("1")
        assert ended == Seen("EXIT", "h", 137, "w", "TERM_OWNER", "root")
        assert (ended.is_over, ended.was_killed) == (True, True)
        assert told.next("2[2]") == told.next("2[9]") == Seen("EXIT", "", 126, "", "TERM_OWNER")
        # one whose submission was answered after its end is told at once, and so is an array
        told.follow("77")
        assert told.next("77") == Seen("DONE")
        told.follow("2")
        assert told.next("2") == Seen("EXIT", code=1)


def test_what_was_missed_is_read_as_bjobs_shows_it(environ: dict[str, str]) -> None:
    cursors: list[str] = []

    def of_changes(frame: Frame) -> list[Frame]:
        cursors.append(str(frame.get("after", "")))
        return changes("new.1", lost=len(cursors) == 2)

    def bjobs(frame: Frame) -> list[Frame]:
        assert frame["words"] == ["1", "2", "3", "9"]
        return listed(("1", "DONE", ""), ("2[1]", "EXIT", "3"), ("2[2]", "PEND", ""), ("3", "RUN", ""))

    def wait(frame: Frame) -> list[Frame]:
        return [{"ok": {"state": "EXIT", "status": 512, "why": "", "host": "h"}}] if frame["job"] == 9 else [{"refused": "no"}]

    plan = answering(changes=of_changes, query=bjobs, wait=wait)
    with ScriptedMaster(Path(environ["LAVA_SOCKET"]), plan), Told(lambda: LocalLink(environ)) as told:
        link = LocalLink(environ)
        told.follower.begin(link)
        link.close()
        for job in ("1", "2[1]", "3", "9"):
            told.follower._followed[key_of(job)] = told._said.setdefault(job, queue.Queue()).put
        told.follow("2[2]")
        assert told.next("1") == Seen("DONE", "h")
        assert told.next("2[1]") == Seen("EXIT", "h", 3)
        assert told.next("9") == Seen("EXIT", "h", 2)
        assert told._said["3"].empty()
        assert cursors[:2] == ["", "new.1"]


def test_a_job_that_nobody_knows_any_more_is_gone(environ: dict[str, str]) -> None:
    plan = answering(
        changes=lambda _: changes("c.1"), query=lambda _: [{"err": "none"}, {"exit": 255}], wait=lambda _: [{"refused": "no"}]
    )
    with ScriptedMaster(Path(environ["LAVA_SOCKET"]), plan), Told(lambda: LocalLink(environ)) as told:
        told.follow("5", read=True)
        assert told.next("5").state == "GONE"


def test_a_job_is_not_gone_while_nobody_can_say_what_became_of_it(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither changes nor bjobs are answered for a while, as the process that answers queries has ended."""
    monkeypatch.setattr(follow, "PAUSE", 0.01)
    listings: list[list[Frame]] = [[{"refused": "The query was interrupted; try again"}]] * 3 + [listed(("2[1]", "EXIT", "3"))]
    plan = answering(changes=lambda _: [{"refused": "store: away"}], query=lambda _: listings.pop(0))
    with ScriptedMaster(Path(environ["LAVA_SOCKET"]), plan), Told(lambda: LocalLink(environ)) as told:
        told.follow("2[1]", read=True)
        assert told.next("2[1]") == Seen("EXIT", "h", 3)


def test_an_ask_goes_out_again_until_it_is_answered(environ: dict[str, str]) -> None:
    plans = [DROP, [{"later": True}], [{"out": "x"}, CUT], [{"refused": "Too many", "retry": 0.01}], [{"ok": {"job": 7}}]]
    with ScriptedMaster(Path(environ["LAVA_SOCKET"]), *plans) as master:
        link = LocalLink(environ, timeout=LONG)
        assert link.change({"ask": "submit"}) == {"job": 7}
        first, *again, afresh = master.asks
        assert "again" not in first
        assert [frame["uuid"] for frame in again] == [first["uuid"]] * 3
        assert all(frame["again"] for frame in again)
        assert afresh["uuid"] != first["uuid"]
        link.close()
        with pytest.raises(Closed):
            link.ask({"ask": "changes"})


def test_a_master_that_is_away_is_waited_for_as_long_as_was_said(environ: dict[str, str]) -> None:
    with pytest.raises(Unavailable, match="not responding"):
        LocalLink(environ, timeout=0.01).ask({"ask": "changes"})
    with ScriptedMaster(Path(environ["LAVA_SOCKET"]), [{"refused": "nosuch: No such queue", "exit": 255}]):
        link = LocalLink(environ)
        with pytest.raises(Refused, match=r"nosuch: No such queue") as refused:
            link.ask({"ask": "submit"})
        link.close()
    assert (refused.value.jobs, refused.value.retry) == ((), 0)
