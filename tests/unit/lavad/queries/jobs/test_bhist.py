"""bhist -t: each element by its name, and the lines of a change as they are."""

from __future__ import annotations

import pytest

from lavad.core import events as ev
from lavad.core.job.job import End, Job
from lavad.core.job.message import Message
from lavad.core.lang.ranges import Ranges
from lavad.core.lang.states import JobState
from tests.support.worlds.query_cluster import QueryCluster, at, element

HOUR = "2026/11/20/11:30,2026/11/20/11:59"


def test_elements_that_were_killed_while_they_waited_are_named() -> None:
    c = QueryCluster()
    c.submit(1, indices="1-4")
    c.feed(ev.ElementsHeld(at=at("11:34:00"), key=1, elements=Ranges.parse("4"), by="alice"))
    c.feed(ev.ElementsKilled(at=at("11:35:00"), key=1, elements=Ranges.parse("2-3"), by="alice"))
    told = [line for line in c.ask("bhist", t=True, T=HOUR)[0].splitlines() if ": Job <" in line][1:]
    assert [line.split("Job <")[1].split(">")[0] for line in told] == ["1[4]", "1[2]", "1[2]", "1[3]", "1[3]"]


def test_it_tells_of_each_job_what_its_own_history_does() -> None:
    c = QueryCluster()
    c.submit(1)
    c.submit(2, indices="1-3")
    for key, clock in ((1, "11:33:55"), (element(2, 1), "11:33:56"), (element(2, 2), "11:33:57")):
        c.start(key, clock)
    c.feed(ev.JobSuspended(at=at("11:34:10"), key=1, state=JobState.USUSP, by="alice"))
    c.feed(ev.JobResumed(at=at("11:34:20"), key=1, by="alice"))
    c.finish(element(2, 1), "11:35:00")
    c.finish(1, "11:36:00")
    everything = c.ask("bhist", t=True, T=HOUR)[0].splitlines()
    for shown in ("1", "2[1]", "2[2]"):
        lead = f" Job <{shown}> "
        told = [line.replace(lead, " ")[:45].lower() for line in everything if lead in line]
        own = [line[:45].lower() for line in c.ask("bhist", shown, b=True)[0].splitlines() if line.startswith("Fri Nov 20 11:")]
        assert len(told) >= 3
        assert told == own[shown != "1" :]  # an array is submitted as a whole


@pytest.mark.parametrize(("lost", "verdict"), [("the starter was restarted", False), ("", True)])
def test_an_attempt_whose_end_is_unknown_has_no_exit_code(lost: str, verdict: bool) -> None:
    c = QueryCluster()
    c.submit(1)
    c.start(1, "11:33:55")
    end = End(at=at("11:34:05"), status=0 if lost else 99 << 8, lost=lost)
    c.feed(ev.JobRequeued(at=at("11:34:05"), key=1, end=end, why=lost or "asked for"))
    told = c.ask("bhist", l=True)[0]
    assert ("Exited with exit code" in told) is verdict
    assert f"Pending: {lost or 'asked for'}: 1 host;" in told


def test_what_was_changed_is_not_wrapped_in_the_middle_of_a_word() -> None:
    c = QueryCluster()
    c.submit(1)
    changes = ("Job command changes to : sleep 1000", "Job name changes to : a-new-name")
    c.feed(ev.JobModified(at=at("11:35:00"), key=1, spec=1, name="n", by="alice", changes=changes))
    told = c.ask("bhist", t=True, T=HOUR)[0]
    for change in changes:
        assert change in told
    assert c.ask("bhist", "1", l=True)[0].count(changes[0]) == 1


def test_what_was_done_to_a_whole_array_is_told_once_of_an_element_with_a_record_of_its_own() -> None:
    c = QueryCluster()
    c.submit(1, indices="1-2")
    c.feed(ev.ElementSplit(at=at("11:34:00"), key=element(1, 2)))
    message = Message(number=0, text="hello", at=at("11:35:00"), by="alice")
    for key in (1, element(1, 2)):
        c.feed(ev.MessagePosted(at=at("11:35:00"), key=key, message=message))
        c.feed(ev.JobSwitched(at=at("11:36:00"), key=key, spec=1, queue="normal", by="alice"))
        c.feed(ev.JobModified(at=at("11:37:00"), key=key, spec=1, name="n", by="alice", changes=("Run limit changes to : 6",)))
    c.feed(ev.MessagePosted(at=at("11:38:00"), key=element(1, 2), message=message))
    for shown, posted in (("1[1]", 1), ("1[2]", 2)):
        told = c.ask("bhist", shown, l=True)[0]
        assert [told.count(text) for text in ("<hello>", "Switched to", "Run limit changes")] == [posted, 1, 1]


def test_without_a_period_it_is_of_the_last_week() -> None:
    c = QueryCluster()
    c.submit(1)
    for clock, days in (("11:33:00", 0), ("11:34:00", 6), ("11:35:00", 8)):
        message = Message(number=0, text=f"{days} days ago", at=at(clock) - days * 86400, by="alice")
        c.feed(ev.MessagePosted(at=at(clock) - days * 86400, key=1, message=message))
    told = c.ask("bhist", t=True)[0]
    assert [f"<{days} days ago>" in told for days in (0, 6, 8)] == [True, True, False]


@pytest.mark.parametrize(("state", "wanted"), [(JobState.PEND, [90, 0]), (JobState.PSUSP, [30, 60])])
def test_a_job_that_is_requeued_and_held_is_held(state: JobState, wanted: list[int]) -> None:
    """brequeue -H of a finished job."""
    c = QueryCluster()
    c.submit(1, clock="11:30:00")
    c.feed(ev.JobFinished(at=at("11:30:30"), key=1, state=JobState.EXIT))
    c.feed(ev.JobRevived(at=at("11:31:00"), key=1, job=Job(key=1, spec=1, name="job", submitted=at("11:30:00"), state=state)))
    c.now = at("11:32:00")
    assert list(map(int, c.ask("bhist", "1")[0].splitlines()[2].split()[-7:-5])) == wanted


def test_an_end_that_the_master_heard_of_late_is_told_as_of_its_time() -> None:
    c = QueryCluster()
    c.submit(1)
    c.start(1, "11:34:00")
    c.feed(
        ev.JobFinished(at=at("11:55:00"), key=1, state=JobState.DONE, ended=at("11:36:00")),
    )
    told = c.ask("bhist", "1", l=True)[0]
    assert "Fri Nov 20 11:36:00: Done successfully" in told
    assert "11:55" not in told
    summary = c.ask("bhist", "1")[0].splitlines()[-2].split()
    assert summary[-5:] == ["120", "0", "0", "0", "130"]


def test_a_host_that_is_lost_and_back_says_nothing_of_a_job_that_was_over_by_then() -> None:
    """It ran on for a minute after its host fell silent, or was over before that was noticed."""
    for ended, lines, unknown in (("11:36:00", ["Unknown;", "Done successfully"], 60), ("11:34:30", ["Done successfully"], 0)):
        c = QueryCluster()
        c.submit(1, clock="11:33:00")
        c.start(1, "11:34:00")
        c.feed(ev.JobLost(at=at("11:35:00"), key=1, host="ol2"))
        c.feed(ev.JobFound(at=at("11:40:00"), key=1, state=JobState.RUN))
        c.feed(ev.JobFinished(at=at("11:40:00"), key=1, state=JobState.DONE, ended=at(ended)))
        told = c.ask("bhist", "1", l=True)[0]
        assert [word for word in ("Unknown;", "Running;", "Done successfully") if f": {word}" in told] == lines
        (row,) = (line for line in c.ask("bhist", "1")[0].splitlines() if line.startswith("1 "))
        *_, unkwn, total = map(int, row.split()[3:])
        assert (unkwn, total) == (unknown, int(at(ended) - at("11:33:00")))


def test_what_was_done_to_a_job_that_was_over_by_then_takes_none_of_its_time() -> None:
    """bstop and bresume, while its host could not report the end."""
    c = QueryCluster()
    c.submit(1, clock="11:33:00")
    c.start(1, "11:34:00")
    c.feed(ev.JobSuspended(at=at("11:36:00"), key=1, by="alice"), ev.JobResumed(at=at("11:37:00"), key=1))
    c.feed(ev.JobSuspended(at=at("11:40:00"), key=1, by="alice"), ev.JobResumed(at=at("11:41:00"), key=1))
    c.feed(ev.JobFinished(at=at("11:50:00"), key=1, state=JobState.DONE, ended=at("11:38:00")))
    (row,) = (line for line in c.ask("bhist", "1")[0].splitlines() if line.startswith("1 "))
    assert list(map(int, row.split()[-7:])) == [60, 0, 180, 60, 0, 0, 300]


def test_elements_that_were_held_with_many_others_and_alone() -> None:
    c = QueryCluster()
    c.submit(1, "11:30:00", indices="1-100")
    c.feed(ev.ElementsHeld(at=at("11:31:00"), key=1, elements=Ranges.parse("1-80"), by="alice"))
    c.feed(ev.ElementsReleased(at=at("11:33:00"), key=1, elements=Ranges.parse("5"), by="alice"))
    c.feed(ev.ElementsHeld(at=at("11:34:00"), key=1, elements=Ranges.parse("5,90"), by="alice"))
    c.feed(ev.ElementsKilled(at=at("11:36:00"), key=1, elements=Ranges.parse("1-100"), by="alice"))
    spent = {row.split()[0]: list(map(int, row.split()[-7:-5])) for row in c.ask("bhist", "1", w=True)[0].splitlines()[2:] if row}
    assert [spent[f"1[{index}]"] for index in (5, 6, 90, 91)] == [[120, 240], [60, 300], [240, 120], [360, 0]]
