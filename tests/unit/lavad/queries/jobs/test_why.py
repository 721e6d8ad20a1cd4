"""lava why: what it says of jobs that are in no line."""

from __future__ import annotations

from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.job.depend import BLOCKED
from lavad.core.lang.ranges import Ranges
from tests.support.worlds.query_cluster import QueryCluster, at, element


def test_a_job_that_waits_for_others_has_no_place() -> None:
    c = QueryCluster()
    c.submit(1, name="first")
    c.submit(2, name="second", dependency="done(1)", parents=(1,))
    c.submit(3, indices="1-3", dependency="done(1)", parents=(1,))
    for word, name in (("2", "2"), ("3", "3[1]"), ("3[2]", "3[2]")):
        out, err, code = c.ask("why", word)
        assert (err, code) == ("", 0)
        assert out.startswith(f"Job <{name}>, User <alice>, Queue <normal>: 1 slot, waiting since")
        assert "Position: not in line, as it waits for other jobs\n" in out
        assert "\nWhy it waits\n Job dependency condition not satisfied;\n   Its condition: done(1)\n" in out
        assert "   Job <1> (first): PEND\n" in out
        assert f"\nWhat to do\n  bjdepinfo {name} shows which;" in out
    assert c.cluster.jobs.rows[2].blocked == BLOCKED


def test_an_element_that_has_ended_is_not_held() -> None:
    c = QueryCluster()
    c.submit(3, indices="1-3")
    c.start(element(3, 1))
    c.finish(element(3, 1))
    c.feed(ev.ElementsHeld(at=at("11:34:00"), key=3, elements=Ranges.span(2, 2)))
    assert c.ask("why", "3[1]")[0].startswith(
        "Job <3[1]>, User <alice>, Queue <normal>: DONE since Fri Nov 20 11:33:56, after 1 s"
    )
    assert c.ask("why", "3[2]")[0] == "Job <3[2]>, User <alice>, Queue <normal>: it is held (bresume releases it)\n"
    assert c.ask("why", "3[4]")[2] == 255


def test_an_array_stands_for_the_first_of_its_elements_that_waits() -> None:
    """Also for one that has run before; without one, for the first that is held or runs."""
    c = QueryCluster()
    c.submit(3, indices="1-4")
    c.start(element(3, 1))
    c.start(element(3, 2))
    assert c.ask("why", "3")[0].startswith("Job <3[3]>, User <alice>, Queue <normal>: 1 slot, waiting since")
    c.feed(ev.JobRequeued(at=at("11:34:00"), key=element(3, 2)))
    assert c.ask("why", "3")[0].startswith("Job <3[2]>, User <alice>, Queue <normal>: 1 slot, waiting since")
    c.start(element(3, 2))
    c.feed(ev.ElementsHeld(at=at("11:34:00"), key=3, elements=Ranges.span(3, 4)))
    assert c.ask("why", "3") == ("Job <3[1]>, User <alice>, Queue <normal>: it runs\n", "", 0)
    for index in (1, 2):
        c.finish(element(3, index))
    assert c.ask("why", "3") == ("Job <3[3]>, User <alice>, Queue <normal>: it is held (bresume releases it)\n", "", 0)


def test_a_job_of_a_silent_host_starts_elsewhere_only_where_it_has_a_lease() -> None:
    c = QueryCluster()
    for key, lease in ((1, 0.0), (2, 600.0)):
        c.submit(key)
        c.start(key)
        row = c.cluster.jobs.rows[key]
        assert row.run is not None
        c.cluster.jobs.rows[key] = replace(row, run=replace(row.run, lease=lease))
        c.feed(ev.JobLost(at=at("11:38:00"), key=key, host="ol2"))
    assert "starts on no other host (bhosts); bkill -r ends it\n" in c.ask("why", "1")[0]
    assert "until its lease has passed, and starts again on another then" in c.ask("why", "2")[0]
