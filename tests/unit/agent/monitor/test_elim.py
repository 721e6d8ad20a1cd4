"""Elim programs: their protocol, their death, their end for good, and what they may not hold up."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.monitor.elim import Asked, Elims, parse, programs
from config.model.cluster import ElimRules
from tests.support.wait import wait_until

PLAIN = ElimRules()


def program(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return path


def run(folder: Path, until: Callable[[Elims], bool], rules: ElimRules = PLAIN) -> dict[str, float]:
    """Keep the programs of a folder until a condition holds; what they say then."""

    async def keep() -> dict[str, float]:
        elims = Elims(str(folder), lambda: Asked(["scratch", "nio"], rules), os.geteuid() == 0, (0.05,))
        task = asyncio.create_task(elims.run())
        try:
            await asyncio.to_thread(wait_until, lambda: until(elims), 30, "the programs")
            return elims.values()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    return asyncio.run(keep())


def test_what_programs_say_is_known_at_once(tmp_path: Path) -> None:
    program(tmp_path, "elim", "echo 2 scratch 17.5 color red; sleep 100\n")
    program(tmp_path, "elim.nio", 'echo "1 nio $(echo $LSF_RESOURCES | wc -w)"; exec sleep 100\n')
    program(tmp_path, "other", "echo 1 wrong 1; sleep 100\n")
    assert run(tmp_path, lambda elims: len(elims.values()) == 2) == {"scratch": 17.5, "nio": 2.0}


def test_one_that_dies_or_talks_nonsense_is_started_again(tmp_path: Path) -> None:
    count = tmp_path / "count"
    program(tmp_path, "elim", f"echo x >> {count}; n=$(wc -l < {count}); echo 1 lives $n; test $n -lt 3 || exec sleep 100\n")
    assert run(tmp_path, lambda elims: elims.values().get("lives") == 3.0) == {"lives": 3.0}
    program(tmp_path, "elim", f"echo y >> {count}; echo what is this; exec sleep 100\n")
    run(tmp_path, lambda _: count.read_text().count("y") >= 2)


def test_one_that_is_not_wanted_here_is_not_started_again(tmp_path: Path) -> None:
    count = tmp_path / "count"
    program(tmp_path, "elim", f"echo x >> {count}; exit $ELIM_ABORT_VALUE\n")
    again = tmp_path / "again"
    program(tmp_path, "elim.other", f"echo x >> {again}\n")
    run(tmp_path, lambda _: again.exists() and again.read_text().count("x") >= 4)
    assert count.read_text() == "x\n"


def test_one_that_ends_again_and_again_is_given_up(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    count = tmp_path / "count"
    program(tmp_path, "elim", f"echo x >> {count}; exit 3\n")
    run(tmp_path, lambda _: "LSF_ELIM_RESTARTS" in caplog.text, ElimRules(restarts=2))
    assert count.read_text() == "x\n" * 3
    assert f"elim {tmp_path}/elim: ended with 3; it was started again 2 times, as often as LSF_ELIM_RESTARTS says" in caplog.text


def test_one_that_stops_within_a_line_is_started_again(tmp_path: Path) -> None:
    count = tmp_path / "count"
    program(tmp_path, "elim", f"echo x >> {count}; echo 1 nio $(wc -l < {count}); printf '1 ni'; exec sleep 1000\n")
    assert run(tmp_path, lambda elims: elims.values().get("nio") == 2.0, ElimRules(block_time=1)) == {"nio": 2.0}


def test_one_that_says_nothing_between_its_lines_is_left_alone(tmp_path: Path) -> None:
    count, go = tmp_path / "count", tmp_path / "go"
    program(
        tmp_path,
        "elim",
        f"echo x >> {count}; echo 1 nio 1; while [ ! -e {go} ]; do sleep .1; done; echo 1 nio 2; exec sleep 1000\n",
    )
    other = "echo 1 scratch 1; printf 1; sleep 1.5; touch " + str(go) + "; exec sleep 1000\n"
    program(tmp_path, "elim.other", other)
    run(tmp_path, lambda elims: elims.values().get("nio") == 2.0, ElimRules(block_time=3))
    assert count.read_text() == "x\n"


def test_its_arguments_and_what_it_says_for_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    program(tmp_path, "elim", 'echo "1 nio $#"; exec sleep 1000\n')
    assert run(tmp_path, lambda elims: bool(elims.values()), ElimRules(args=("-a", "b"), debug=True)) == {"nio": 2.0}
    assert f"elim {tmp_path}/elim: 1 nio 2" in caplog.text


def test_what_others_may_write_is_not_run_by_root(tmp_path: Path) -> None:
    program(tmp_path, "elim", "true\n").chmod(0o757)
    assert programs(str(tmp_path), True) == []
    assert programs(str(tmp_path), False) == [str(tmp_path / "elim")]
    assert programs(str(tmp_path / "none"), True) == programs("", True) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's own programs could be run by root")
def test_what_others_may_replace_is_not_run_by_root(tmp_path: Path) -> None:
    program(tmp_path, "elim", "true\n")
    assert programs(str(tmp_path), True) == [str(tmp_path / "elim")]
    tmp_path.chmod(0o777)
    assert programs(str(tmp_path), True) == []
    assert programs(str(tmp_path), False) == [str(tmp_path / "elim")]


@pytest.mark.parametrize("line", ["", "x", "2 a 1", "1 a", "1 a-b 1", "-1", "1 a 1 b", "1 'a 1"])
def test_lines_that_are_not_of_the_protocol(line: str) -> None:
    with pytest.raises(ValueError):
        parse(line)


@given(st.text(max_size=60))
def test_no_line_does_anything_else(line: str) -> None:
    try:
        values = parse(line)
    except ValueError:
        return
    assert all(isinstance(value, float) for value in values.values())
