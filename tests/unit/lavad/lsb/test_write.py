"""The lines of a job that ends, to the letter: tools that read LSF's files count fields."""

from __future__ import annotations

import tracemalloc

from msgspec.structs import replace

from config.model.values import Limits
from lavad.core.job.depend import Depend
from lavad.core.job.job import Attempt, End, Job, Outcome, Part
from lavad.core.job.spec import JobText, Spec
from lavad.core.lang.ids import key_of
from lavad.core.lang.states import JobState, TermReason
from lavad.lsb.write import OfClass, job_finish, job_status

SPEC = Spec(
    user="ann", queue="night", slots=2, max_slots=3, resreq="rusage[mem=1]", from_host="login", hosts=("h1+2", "h2!"), begin=5.0,
    deadline=9.5, project="p q", exclusive=True, app="a", group="/g", requeue="3", reservation="r", resize_command="rc",
    limits=Limits(run=60),
)  # fmt: skip
TEXT = JobText(
    command='echo "a b"', cwd="/tmp", input="in", output="out", error="err", pre_exec="pre", post_exec="post", mail_user="m",
    login_shell="/bin/sh", warn_action="URG", warn_before=30, description="two\nlines", output_dir="/o",
)  # fmt: skip
ENDS = (End(utime=1.5, stime=0.25, max_mem=100, max_swap=7, avg_mem=50), End(utime=2.0, max_mem=80, max_swap=9))
PARTS = (Part(host="h1", slots=2, end=ENDS[0]), Part(host="h2", slots=1, end=ENDS[1]))
RUN = Attempt(number=1, uid="u", dispatched=1000.5, parts=PARTS, started=1001.0, spent=(0.0, 0.0, 3.0))
ENDED = Job(key=key_of(7, 3), spec=1, name="a[3]", submitted=900.9, state=JobState.EXIT, since=1100.0, run=RUN,
            outcome=Outcome(at=1100.0, status=256, reason=TermReason.TERM_RUNLIMIT), depend=Depend(text="done(1)"))  # fmt: skip
NEVER = Job(key=8, spec=1, name="", submitted=900.0, state=JobState.EXIT, since=1100.0)

EXPECTED = (
    (
        '"JOB_FINISH" "10.1" 1100 7 1001 295035 2 900 5 9 1000 "ann" "night" "rusage[mem=1]" "done(1)" "pre" "login" '
        '"/tmp" "in" "out" "err" "900.7" 2 "h1" "h2" 3 "h1" "h1" "h2" 32 1.000000 "a[3]" "echo ""a b""" 6.500000 '
        '0.250000 100 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 "m" "p q" 256 3 "/bin/sh" "" 3 180 16 "" "" "r" '
        '"" 0 "" 5 "URG" 30 "" "" "a" "post" -1 "/g" "3" 0 "rc" 1000 "" "two;lines" 0 2 "h1" 100 7 1 0 "h2" 80 9 2 0 0 '
        '60 50 "rusage[mem=1]" "" -1 "" -1 0 "" 0 0 "/o" 100 "/tmp" 0 "" 0.000000 0.000000 0.000000 0.000000 0.000000 '
        '3 "h1" "h1" "h2" -1 0 0 0 0 0\n'
    ),
    (
        '"JOB_FINISH" "10.1" 1100 8 1001 262266 2 900 5 9 0 "ann" "night" "rusage[mem=1]" "" "pre" "login" "/tmp" "in" '
        '"out" "err" "900.8" 2 "h1" "h2" 0 32 1.000000 "" "echo ""a b""" -1.000000 -1.000000 -1 -1 -1 -1 -1 -1 -1 -1 '
        '-1 -1 -1 -1 -1 -1 -1 -1 -1 "m" "p q" 0 3 "/bin/sh" "" 0 0 0 "" "" "r" "" 0 "" 0 "URG" 30 "" "" "a" "post" -1 '
        '"/g" "3" 0 "rc" 0 "" "two;lines" 0 0 0 60 0 "rusage[mem=1]" "" -1 "" -1 0 "" 0 0 "/o" 0 "/tmp" 0 "" 0.000000 '
        "0.000000 0.000000 0.000000 0.000000 0 -1 0 0 0 0 0\n"
    ),
    (
        '"JOB_FINISH" "10.1" 1100 8 -1 2 1 900 0 0 0 "bob" "q" "" "" "" "" "" "" "" "" "900.8" 0 0 32 1.000000 "" "x" '
        '-1.000000 -1.000000 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 "" "default" 0 1 "" "" 0 0 0 "" "" "" '
        '"" 0 "" 0 "" -1 "" "" "" "" -1 "" "" 0 "" 0 "" "" 0 0 0 0 0 "" "" -1 "" -1 0 "" 0 0 "" 0 "" 0 "" 0.000000 '
        "0.000000 0.000000 0.000000 0.000000 0 -1 0 0 0 0 0\n"
    ),
    (
        '"JOB_STATUS" "10.1" 1100 7 32 0 0 1.750000 1100 1 1.500000 0.250000 100 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 '
        "-1 -1 -1 -1 0 256 3 5 0\n"
    ),
    ('"JOB_STATUS" "10.1" 1100 8 1 1203 0 0.000000 0 0 0 0 0 0 0\n'),
)


def test_long_texts_of_users_are_not_kept() -> None:
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for number in range(100):
        OfClass(SPEC, replace(TEXT, command=f"{number}" + "x" * (1 << 20)), 1001)
    assert tracemalloc.get_traced_memory()[0] < before + (10 << 20)
    tracemalloc.stop()


def test_job_finish() -> None:
    alike = OfClass(SPEC, TEXT, 1001)
    assert job_finish(ENDED, alike) == EXPECTED[0]
    assert job_finish(NEVER, alike) == EXPECTED[1]
    assert job_finish(NEVER, OfClass(Spec(user="bob", queue="q"), JobText(command="x"), -1)) == EXPECTED[2]


def test_job_status() -> None:
    assert job_status(key_of(7, 3), 1100.7, int(JobState.EXIT), end=ENDS[0], status=256, why=5) == EXPECTED[3]
    assert job_status(8, 1100.7, int(JobState.PEND), 1203) == EXPECTED[4]


def test_a_text_has_a_bounded_number_of_characters() -> None:
    """All elements of an array have the same command, which may have a megabyte, each in a line of its own."""
    line = job_finish(NEVER, OfClass(SPEC, replace(TEXT, command="c" * 10**6, pre_exec="p" * 5000), 1001))
    assert (line.count("c" * 4094), line.count("p" * 4094)) == (1, 1)
    assert len(line) < 10_000
