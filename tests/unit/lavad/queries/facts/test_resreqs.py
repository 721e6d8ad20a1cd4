"""bjobs -l: the requirement that a job was placed by, of those it would have taken."""

from __future__ import annotations

from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.job.job import Placed
from tests.support.worlds.query_cluster import QueryCluster, at


def details(c: QueryCluster, job: int) -> list[str]:
    text = c.ask("bjobs", str(job), UF=True)[0].partition("RESOURCE REQUIREMENT DETAILS:\n")[2]
    return [" ".join(part.split()) for part in text.split(" Effective:")]


def placed(resreq: str, way: int, slots: int = 1) -> list[str]:
    c = QueryCluster()
    c.submit(1, resreq=resreq, slots=slots, max_slots=slots)
    parts = (Placed(host="ol1", slots=slots),)
    c.feed(ev.JobDispatched(at=at("11:34:00"), key=1, attempt=1, uid="u", parts=parts, way=way))
    return details(c, 1)


def test_the_alternative_that_was_taken_is_the_effective_one() -> None:
    combined, effective = placed("{select[cs] rusage[mem=100]} || {rusage[mem=50 || mem=20]}@5", way=2)
    assert combined == "Combined: {select[cs] rusage[mem=100.00]} || {rusage[mem=50.00||mem=20.00]}@5"
    assert effective == "select[type == local] order[r15s:pg] rusage[mem=20.00]"


def test_a_compound_requirement_is_shown_part_by_part() -> None:
    combined, effective = placed("2*{select[cs]}+1*{rusage[mem=5]}", way=0, slots=3)
    assert combined == "Combined: 2*{select[cs] order[r15s:pg]}+1*{select[type == local] order[r15s:pg] rusage[mem=5.00]}"
    assert effective == combined.removeprefix("Combined: ")


def test_that_of_the_queue_it_was_placed_in_is_effective_after_bswitch() -> None:
    c = QueryCluster()
    conf = c.cluster.conf
    queues = tuple(replace(queue, res_req="rusage[mem=40]" if queue.name == "night" else "") for queue in conf.queues)
    c.feed(ev.Configured(at=at("11:33:00"), conf=replace(conf, queues=queues)))
    c.submit(1, resreq="select[cs]")
    c.feed(ev.JobDispatched(at=at("11:34:00"), key=1, attempt=1, uid="u", parts=(Placed(host="ol1", slots=1),)))
    number = c.cluster.next_spec
    c.feed(ev.SpecAdded(at=at("11:35:00"), spec=number, value=replace(c.cluster.spec_of(1), queue="night")))
    c.feed(ev.JobSwitched(at=at("11:35:00"), key=1, spec=number, queue="night", by="alice"))
    combined, effective = details(c, 1)
    assert combined == "Combined: select[cs] order[r15s:pg] rusage[mem=40.00]"
    assert effective == "select[cs] order[r15s:pg]"


def test_a_way_that_is_no_longer_configured_shows_all() -> None:
    combined, effective = placed("rusage[mem=50 || mem=20]", way=9)
    assert combined.removeprefix("Combined: ") == effective
