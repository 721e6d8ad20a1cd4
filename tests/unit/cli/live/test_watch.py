"""lava watch: what it says of jobs and arrays."""

from __future__ import annotations

import pytest

from cli.client.context import Fail
from cli.live.screen import plain
from cli.live.watch import Array, Pace, _options, array_line, job_lines, read_array

ROW = {
    **{"JOBID": "7", "JOBINDEX": "0", "STAT": "RUN", "USER": "ann", "QUEUE": "normal", "SLOTS": "4", "EXEC_HOST": "h1:h1:h2:h2"},
    **{
        "RUN_TIME": "120 second(s)",
        "CPU_USED": "240.0 second(s)",
        "MEM": "2 Gbytes",
        "MAX_MEM": "3 Gbytes",
        "TIME_LEFT": "0:8 L",
    },
    **{"PEND_REASON": "", "EXIT_CODE": "", "JOB_NAME": "solve"},
}


def test_a_job_that_runs_has_a_bar_up_to_its_run_limit() -> None:
    assert plain(job_lines(ROW)).splitlines() == [
        "Job 7 RUN   solve   queue normal, ann",
        "4 slots on h1, h2   CPU 00:04:00   memory 2 Gbytes, peak 3 Gbytes",
        "[########                                ]  00:02:00 of 00:10:00",
    ]
    assert plain(job_lines({**ROW, "TIME_LEFT": ""})).splitlines()[-1] == "ran 00:02:00"


def test_a_job_that_waits_or_has_ended_says_why() -> None:
    waits = {**ROW, "STAT": "PEND", "PEND_REASON": "Not enough job slot(s);", "JOBINDEX": "3"}
    assert plain(job_lines(waits)).splitlines() == ["Job 7[3] PEND   solve   queue normal, ann", "waits: Not enough job slot(s)"]
    assert plain(job_lines({**ROW, "STAT": "EXIT", "EXIT_CODE": "3"})).startswith("Job 7 EXIT with exit code 3 ")


def test_a_job_without_a_host_is_shown_without_slots_and_use() -> None:
    held = {**ROW, "STAT": "PSUSP", "EXEC_HOST": "", "PEND_REASON": "The job was suspended by the user while pending;"}
    assert plain(job_lines(held)).splitlines()[1:] == ["waits: The job was suspended by the user while pending"]
    killed = {**ROW, "STAT": "EXIT", "EXEC_HOST": "", "EXIT_CODE": "130"}
    assert plain(job_lines(killed)).splitlines() == ["Job 7 EXIT with exit code 130   solve   queue normal, ann"]


@pytest.mark.parametrize(
    ("word", "ok"), [("5", True), ("5[3]", True), ("5[1-3]", False), ("5[1,2]", False), ("5x", False), ("5[]", False)]
)
def test_one_job_element_or_array_is_watched(word: str, ok: bool) -> None:
    if ok:
        assert _options([word]) == (1.0, word)
    else:
        with pytest.raises(Fail, match="Usage: lava watch"):
            _options([word])


def test_an_array_is_counted() -> None:
    head = "JOBID    ARRAY_SPEC  OWNER   NJOBS PEND DONE  RUN EXIT SSUSP USUSP PSUSP\n"
    array = read_array(f"{head}12   aa[1-6]%     root   6    3    1    1    1     0     0     0\n")
    assert array == Array(6, 3, 1, 1, 1, 0)
    assert read_array("No matching job found\n") is None
    pace = Pace()
    assert pace.left(Array(6, 6, 0, 0, 0, 0), 100.0) is None
    left = pace.left(Array(6, 3, 1, 1, 1, 0), 110.0)
    assert left == pytest.approx(20.0)
    assert plain([array_line(Array(6, 3, 1, 1, 1, 0), left)]) == (
        f"[{'#' * 13}{' ' * 27}]  2/6  1 run, 3 wait, 1 done, 1 failed  about 00:00:20 left\n"
    )
