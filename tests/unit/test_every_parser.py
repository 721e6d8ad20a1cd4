"""Generated text for every parser: it is accepted, or refused in words for the user, in bounded time; nothing else is raised."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cli.client.context import Fail
from cli.client.options import Table, read_command_options, read_letters
from cli.submit.directives import read_directives, words_of
from cli.submit.submit_options import bsub_table
from config.lsfconf import parse_lsf_conf
from config.read.load import load
from lavad.core.decide.modify.modify import modify
from lavad.core.decide.submit.readers import READERS
from lavad.core.decide.submit.submit import Given, submit
from lavad.core.job.spec import JobText
from lavad.core.lang import gpureq, job_names
from lavad.core.lang.asks import Modify, Refused, Submit
from lavad.core.lang.dependency import DependencyError
from lavad.core.lang.dependency import parse as parse_dependency
from lavad.core.lang.job_names import ArrayError, parse_job_id, parse_job_name
from lavad.core.lang.resreq import text as resreq
from lavad.core.lang.when import WhenError, parse_interval, parse_limit, parse_point
from lavad.core.lang.windows import WindowError, parse_windows
from lavad.queries.render import RENDERERS
from tests.support.examples import examples
from tests.support.worlds.bench import ALICE, LOCAL, Bench
from tests.support.worlds.query_cluster import QueryCluster

E = TypeVar("E", bound=Exception)
NOW = datetime(2026, 11, 20, 12, 0)
PIECES = (
    "select[",
    "order[",
    "rusage[",
    "span[",
    "same[",
    "cu[",
    "affinity[",
    "]",
    "[",
    "(",
    ")",
    "{",
    "}",
    "||",
    "&&",
    "!",
    "==",
    ">=",
    "mem",
    "ut",
    "hosts=",
    "ptile=",
    "1",
    "0",
    "-1",
    "99999999999999999999",
    "1.5",
    ":",
    ",",
    "-",
    "%",
    "*",
    "+",
    "@",
    "/",
    "'",
    '"',
    "done(",
    "exit(",
    "numdone(",
    "external(",
    "job",
    "a[1-3]",
    "num=2",
    "mode=shared",
    "gmem=1G",
    "j_exclusive=yes",
    "core(2)",
    "\\",
    "1:30",
    "23:59",
    ".",
    ".-1",
    "2026/11/20",
    "2:00-3:00",
    "4:8:00-1:2:00",
    "all",
    "default",
    "é",
    "\u202e",
    "\0",
    "\n",
    "\t",
    " ",
    "$(x)",
)
TEXT = st.one_of(st.text(max_size=60), st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
EXAMPLES = settings(max_examples=examples(150), suppress_health_check=list(HealthCheck))

PARSERS: dict[str, tuple[Callable[[str], object], tuple[type[Exception], ...]]] = {
    "resreq": (resreq.parse, (resreq.ResReqError,)),
    "gpu": (gpureq.parse, (gpureq.GpuReqError,)),
    "dependency": (parse_dependency, (DependencyError,)),
    "limit": (parse_limit, (WhenError,)),
    "point": (lambda text: parse_point(text, NOW), (WhenError,)),
    "interval": (lambda text: parse_interval(text, NOW.astimezone()), (WhenError,)),
    "windows": (parse_windows, (WindowError,)),
    "job name": (parse_job_name, (ArrayError,)),
    "job id": (parse_job_id, (ArrayError,)),
    "name pattern": (job_names.pattern, ()),
    "lsf.conf": (parse_lsf_conf, ()),
    "words of a directive": (words_of, (ValueError,)),
}


def refusal(call: Callable[[], object], *kinds: type[E]) -> E | None:
    """How a call refuses, None if it does not; anything else is raised."""
    try:
        call()
    except kinds as refused:
        return refused
    return None


@pytest.mark.parametrize("name", PARSERS)
@given(text=TEXT)
@EXAMPLES
def test_a_text(name: str, text: str) -> None:
    parse, refusals = PARSERS[name]
    refusal(lambda: parse(text), *refusals)


@pytest.mark.parametrize("option", sorted(READERS))
@given(value=st.one_of(TEXT, st.just(True), st.lists(TEXT, max_size=3)))
@settings(EXAMPLES, max_examples=examples(25))
def test_a_value_of_an_option_of_bsub_and_bmod(option: str, value: str | bool | list[str]) -> None:
    bench = Bench()
    job = bench.bsub(J="x")["job"]
    for decide in (
        lambda: submit(bench.cluster, Given(Submit(command="true", options={option: value}), ALICE, bench.now, LOCAL)),
        lambda: modify(bench.cluster, Modify(job=str(job), options={option: value}), JobText("true"), ALICE, bench.now, LOCAL),
    ):
        refused = refusal(decide, Refused)
        assert refused is None or (refused.text and refused.exit_code)


FLAGS = st.sampled_from(["-J", "-n", "-R", "-I", "-o", "--", "-aJ", "-n4"])
WORDS = st.lists(st.one_of(TEXT, TEXT.map(lambda text: "-" + text), FLAGS), max_size=6)


@given(words=WORDS)
@EXAMPLES
def test_words_of_a_command_line(words: list[str]) -> None:
    for read in (
        lambda: read_command_options(bsub_table(), words),
        lambda: read_letters(Table("bjobs", "a d l w", "J q u o", "[job_ID] ..."), words),
        lambda: read_directives("#BSUB " + " ".join(words) + "\ntrue\n", bsub_table()),
    ):
        fail = refusal(read, Fail)
        assert fail is None or (fail.text and fail.status)


@pytest.mark.parametrize("command", sorted(set(RENDERERS) - {"bacct", "why"}))
@given(words=st.lists(TEXT, max_size=3), value=TEXT, letter=st.sampled_from("JqumPgoNTCSDnIRi"))
@settings(EXAMPLES, max_examples=examples(15))
def test_a_query(command: str, words: list[str], value: str, letter: str) -> None:
    option: dict[str, Any] = {letter: value}
    out, err, status = QueryCluster().ask(command, *words, **option)
    assert status in (0, 246, 255)
    assert out or err or status == 0 or "\0" in value


FILES = (
    "lsf.conf",
    "lsf.shared",
    "lsf.cluster.lava",
    "lsb.queues",
    "lsb.hosts",
    "lsb.users",
    "lsb.params",
    "lsb.resources",
    "lsb.applications",
)
LINES = st.one_of(
    st.sampled_from(
        (
            "Begin Queue",
            "End Queue",
            "Begin Host",
            "End Host",
            "Begin Parameters",
            "End Parameters",
            "Begin Limit",
            "End Limit",
            "Begin User",
            "End User",
            "Begin UserGroup",
            "End UserGroup",
            "Begin Application",
            "End Application",
            "Begin Cluster",
            "HOST_NAME MXJ r1m",
            "GROUP_NAME GROUP_MEMBER",
            "QUEUE_NAME = q",
            "NAME = a",
            "#if time(1:00-2:00)",
            "#endif",
            "\\",
        )
    ),
    st.tuples(
        st.sampled_from(
            (
                "PRIORITY",
                "RUNLIMIT",
                "FAIRSHARE",
                "JOB_CONTROLS",
                "RES_REQ",
                "CHKPNT",
                "r1m",
                "MEMLIMIT",
                "PREEMPTION",
                "REQUEUE_EXIT_VALUES",
                "RUN_WINDOW",
                "LSF_UNIT_FOR_LIMITS",
                "APS_PRIORITY",
            )
        ),
        TEXT,
    ).map(" = ".join),
    TEXT,
)


@pytest.mark.parametrize("file", FILES)
@given(lines=st.lists(LINES, max_size=10))
@settings(EXAMPLES, max_examples=examples(40))
def test_a_configuration_file(file: str, lines: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / file).write_text("\n".join(lines), encoding="utf-8", errors="replace")
        loaded = load(folder)
        assert all(problem.file and problem.text for problem in loaded.problems)
