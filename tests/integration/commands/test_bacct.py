"""bacct on a real cluster: LSF's block, its filters, and its record of a job."""

from __future__ import annotations

import re

import pytest

from tests.support.live.cluster import Cluster


@pytest.fixture(scope="module", autouse=True)
def ended(cluster: Cluster) -> None:
    """Two jobs and an array are over."""
    for words in ("-J one -P alpha true", "-J two 'exit 3'", "-J 'arr[1-3]' 'sleep 1'"):
        cluster.wait_end(cluster.submit(words))


def count(text: str) -> tuple[int, int]:
    match = re.search(r"Total number of done jobs: +(\d+)      Total number of exited jobs: +(\d+)\n", text)
    assert match, text
    return int(match[1]), int(match[2])


def test_the_sum_of_all(cluster: Cluster) -> None:
    text = cluster.run("bacct").stdout
    assert text.startswith("\nAccounting information about jobs that are: \n  - submitted by users ")
    assert "  - accounted on all projects.\n  - completed normally or exited\n  - executed on all hosts.\n" in text
    assert "-" * 78 + "\n\nSUMMARY:      ( time unit: second ) \n" in text
    assert count(text) == (4, 1)
    assert re.search(r" Total throughput: +[\d.]+ \(jobs/hour\)  during +[\d.]+ hours\n Beginning time: ", text)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("-d", (4, 0)),
        ("-e", (0, 1)),
        ("-P alpha", (1, 0)),
        ("-q normal", (4, 1)),
        ("-m host1", (4, 1)),
        ("3", (3, 0)),
        ("'3[2]'", (1, 0)),
        ("-u nobody", (0, 0)),
        ("-u all", (4, 1)),
        ("-C .-1,.", (4, 1)),
        ("-S 2020/1/1,2020/2/1", (0, 0)),
        ("-J arr", (3, 0)),
        ("-app none", (0, 0)),
    ],
)
def test_filters(cluster: Cluster, words: str, expected: tuple[int, int]) -> None:
    assert count(cluster.run(f"bacct {words}").stdout) == expected


def test_a_record(cluster: Cluster) -> None:
    text = cluster.run("bacct -UF 2").stdout
    assert "  - submitted by all users.\n" in text
    assert re.search(r"\nJob <2>, Job Name <two>, User <\w+>, Project <default>, Status <EXIT>, Queue <normal>", text)
    assert re.search(r": Dispatched to <host1>;\n", text)
    assert re.search(r": Completed <exit>\.\n", text)
    assert "\nAccounting information about this job:\n     CPU_T     WAIT     TURNAROUND   STATUS     HOG_FACTOR" in text
    assert re.search(r" +\d+\.\d\d +\d+ +\d+ +exit +\d\.\d{4} +\S+ +\S+\n", text)
    assert len(cluster.run("bacct -b").stdout.splitlines()) > 20


def test_what_is_wrong(cluster: Cluster) -> None:
    for words, text in (("-q nosuch", "nosuch: No such queue\n"), ("-C x", "x: Bad time specification\n")):
        done = cluster.run(f"bacct {words}", ok=False)
        assert (done.returncode, done.stderr) == (255, text)
