"""The page of performance: what it says of kept results, and that it is the one of the last of them."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.kept.page import page
from benchmarks.kept.readme import BEGIN, END, with_table
from benchmarks.kept.report import files
from benchmarks.kept.results import Machine, Results
from benchmarks.kept.targets import TARGETS, met

MACHINE = Machine("a processor", 2, 16.0, "6.1", "Debian 12", "3.11.2")
FLOORS = {"spawn": 0.5, "python": 8.0, "sync": 0.2}


def figure(metric: str, unit: str, value: float, **more: Any) -> dict[str, Any]:
    return {"metric": metric, "unit": unit, "value": value, "n": 3, "note": "", **more}


def results(*figures: dict[str, Any]) -> Results:
    versions = {"lava": "0.1", "slurm": "slurm-wlm 22.05"}
    return Results("2026-01-02T03:04Z", "abc", MACHINE, versions, 0.1, 9.0, "alone", FLOORS, list(figures))


def beside(contender: str, value: float, **more: float) -> dict[str, Any]:
    about = {"row": "submit_command", "contender": contender, "how": f"by {contender}", "version": "1"}
    return figure(f"beside_submit_command_{contender}", "ms", value, **about, **more)


def test_a_target_that_is_missed_is_called_so() -> None:
    text, _ = page(results(figure("turnaround", "ms", 5.0), figure("start_1000", "s", 8.0)))
    assert "| submit to end of one job, idle | at most 6 ms | 5 ms | yes |" in text
    assert "| 1,000 sleeps started on one host | at most 1 s | 8 s | **no** |" in text
    assert "1 of 2 are met" in text


def test_the_limit_itself_is_good_enough() -> None:
    assert all(met(target, target.limit) for target in TARGETS)
    assert not any(met(target, target.limit * (0.99 if target.more else 1.01)) for target in TARGETS)


def test_a_row_beside_peers_has_lavas_lead_in_brackets() -> None:
    text, plots = page(results(beside("lava", 4.0), beside("slurm", 6.0, ratio=1.5)))
    assert "| 4 | 6 (1.5) |" in text
    assert "* submit_command: lava (by lava); slurm (by slurm)" in text
    assert {"lead.svg", "latency.svg"} <= plots.keys()


def test_the_machine_and_what_else_it_did_are_named() -> None:
    text, _ = page(results(figure("turnaround", "ms", 5.0)))
    for said in ("2026-01-02T03:04Z", "a processor", "lava 0.1 (commit abc)", "slurm-wlm 22.05", "0.1; alone", "0.2 ms"):
        assert said in text


def test_what_was_not_measured_has_no_part() -> None:
    text, plots = page(results(figure("turnaround", "ms", 5.0)))
    assert plots == {}
    for title in ("Beside other systems", "What each step", "Many jobs", "Many hosts", "The store", "After many jobs"):
        assert f"## {title}" not in text


def test_many_hosts_name_what_is_used_up() -> None:
    sizes = [figure(f"scale_starts{end}", "jobs/s", 900.0) for end in ("", "_hosts_100")]
    sizes.append(figure("scale_submit_p50", "ms", 4.0))
    full = [
        figure("scale_cores_lavad", "cores", 0.97),
        figure("scale_cores_sched", "cores", 0.4),
        figure("scale_cores_busy", "cores", 2.0),
    ]
    text, _ = page(results(*sizes, *full))
    assert "the limit is lavad, which is one thread: it has 0.97 of a core" in text
    assert "| cores that lavad has |  | 0.97 |" in text
    text, _ = page(results(*sizes, figure("scale_cores_sched", "cores", 0.4), figure("scale_cores_busy", "cores", 1.9)))
    assert "its scheduler is busiest of lava, with 0.4 of a core" in text


def test_the_readme_has_rows_of_what_was_measured() -> None:
    found = results(beside("lava", 4.0), beside("slurm", 6.0, ratio=1.5), figure("turnaround", "ms", 5.0))
    text = with_table(f"before\n{BEGIN}\nold\n{END}\nafter\n", found)
    assert text.startswith(f"before\n{BEGIN}\n\nOne machine of 2 cores, ")
    assert "| | lava | Slurm 22.05 |\n|-|-|-|\n| one submit by its command | 4 ms | 6 ms |\n" in text
    assert "| one job on an idle host, to its end | | |\n" in text
    assert text.endswith(f"{END}\nafter\n")
    assert "old" not in text


def test_the_readme_stays_where_no_other_system_was_measured() -> None:
    text = f"{BEGIN}\nold\n{END}\n"
    assert with_table(text, results(beside("lava", 4.0))) == text
    with pytest.raises(ValueError, match="has no"):
        with_table("no table", results())


def test_page_and_readme_are_those_of_the_last_results() -> None:
    made = files()
    if not made:
        pytest.skip("no results are kept")
    assert {path.name: path.read_text() for path in made} == {path.name: text for path, text in made.items()}, "make bench-report"
