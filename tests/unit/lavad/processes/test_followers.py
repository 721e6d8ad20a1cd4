"""Followers of events: what they see, together and not too often."""

from __future__ import annotations

from typing import Any

import msgspec

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.lang.asks import Query
from lavad.core.lang.states import JobState
from lavad.processes.followers import MOST, UNREAD, Followers
from lavad.replica import protocol as feed
from proto.records import News
from tests.support.worlds.query_cluster import ADMIN, ALICE, BOB, QueryCluster

FRAMES = msgspec.json.Decoder(News)


class Desk:
    """Followers of a cluster, with a clock that the test moves."""

    def __init__(self, **params: Any) -> None:
        self.world = QueryCluster(**params)
        self.now = 0.0
        self.followers = Followers(lambda: self.now)
        self.sent: list[feed.Answer] = []

    def follow(self, number: int, caller: Any) -> None:
        self.followers.follow(feed.Ask(number=number, query=Query(command="api", words=["events"]), caller=caller, now=0.0))

    def fold(self, *events: ev.Event) -> None:
        cluster: Cluster = self.world.cluster
        for event in events:
            feed.fold(cluster, self.world.soft, [event], self.followers.happened)

    def news(self, number: int) -> list[str]:
        """``id kind state`` of what is sent to a follower now."""
        self.now += 1.0
        self.sent.clear()
        self.followers.send(self.world.cluster.version, self.sent.append)
        texts = [text for answer in self.sent if answer.number == number for _, text in answer.pieces]
        return [f"{one.id} {one.kind} {one.state}" for text in texts for one in FRAMES.decode(text).events]


def test_a_follower_hears_what_happens_after_it_came() -> None:
    desk = Desk()
    desk.world.submit(1)
    desk.follow(7, ALICE)
    assert desk.followers.due() == 0.0
    assert desk.news(7) == []
    assert desk.sent[0].number == 7
    desk.fold(ev.JobFinished(at=1.0, key=1, state=JobState.EXIT, status=1))
    desk.fold(ev.HostSwitched(at=1.0, host="ol1", closed=True, by="openlava"))
    assert desk.news(7) == ["1 JobFinished EXIT", " HostSwitched "]
    assert desk.followers.due() is None
    desk.followers.drop(7)
    desk.fold(ev.HostSwitched(at=2.0, host="ol1", closed=False, by="openlava"))
    assert desk.followers.due() is None


def test_jobs_that_one_may_not_see_are_not_told_of() -> None:
    desk = Desk(secure_job_info_level=4)
    desk.world.submit(1, user="bob")
    for number, caller in ((1, ALICE), (2, BOB), (3, ADMIN)):
        desk.follow(number, caller)
    desk.news(1)
    desk.fold(ev.JobFinished(at=1.0, key=1, state=JobState.EXIT, status=1))
    assert desk.news(1) == []
    told = {answer.number for answer in desk.sent}
    assert told == {2, 3}


def test_many_events_at_once_are_counted_and_a_slow_reader_gets_no_more() -> None:
    desk = Desk()
    desk.follow(1, ALICE)
    desk.news(1)
    for _ in range(MOST + 5):
        desk.fold(ev.HostSwitched(at=1.0, host="ol1", closed=True, by="openlava"))
    desk.news(1)
    news = FRAMES.decode(desk.sent[0].pieces[0][1])
    assert (len(news.events), news.more) == (MOST, 5)
    for _ in range(UNREAD):
        desk.fold(ev.HostSwitched(at=1.0, host="ol1", closed=True, by="openlava"))
        desk.news(1)
    assert desk.followers.due() is None
    desk.followers.taken(1, UNREAD)
    assert desk.followers.due() is not None
