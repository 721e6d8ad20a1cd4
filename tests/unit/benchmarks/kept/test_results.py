"""Files of results: written and read again, and which of them is compared with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.kept.check import again
from benchmarks.kept.compare import Compared, Loss
from benchmarks.kept.measure import all_of
from benchmarks.kept.results import Machine, Results, load, machine, newest, save


def of(date: str, cores: int) -> Results:
    where = Machine("p", cores, 1.0, "k", "s", "3.11")
    figures = [{"metric": "a", "value": 1.0, "unit": "ms"}, {"metric": "b", "value": 2.0, "unit": "s"}]
    return Results(date, "abc", where, {"lava": "0.1"}, 0.0, 1.0, "", {"spawn": 0.5}, figures)


def test_what_is_saved_is_read_again(tmp_path: Path) -> None:
    path = save(of("2026-01-02T03:04Z", 2), tmp_path)
    assert load(path) == of("2026-01-02T03:04Z", 2)
    assert len([line for line in path.read_text().splitlines() if '"metric"' in line]) == 2


def test_the_newest_of_a_machine_of_that_size_counts(tmp_path: Path) -> None:
    assert newest(2, tmp_path) is None
    for date, cores in (("2026-01-01T00:00Z", 2), ("2026-01-03T00:00Z", 2), ("2026-01-04T00:00Z", 64)):
        save(of(date, cores), tmp_path)
    assert [found.date[:10] for cores in (2, 64, 8, None) if (found := newest(cores, tmp_path))] == [
        "2026-01-03",
        "2026-01-04",
        "2026-01-04",
        "2026-01-04",
    ]


@pytest.mark.parametrize("text", ["", "{}", '{"machine": {}}'])
def test_another_file_is_refused_by_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "other.json").write_text(text)
    with pytest.raises(ValueError, match=r"other\.json is not a file of results"):
        newest(folder=tmp_path)


def test_this_machine_has_all_its_facts() -> None:
    assert all(vars(machine()).values())


def test_what_was_lost_is_measured_again_by_the_benchmark_that_makes_it() -> None:
    metrics = ("cpu_per_job_all", "store_commit_postgresql_16", "turnaround", "beside_ranks_64_hydra")
    lost = [Loss(*[Compared(metric, "times its floor", 1.0, more=False)] * 2) for metric in metrics]
    assert again(lost) == ({"cpu_per_job", "store_commit", "turnaround"}, {"ranks_64"})


def test_a_benchmark_that_fails_is_named_and_what_it_measured_before_is_kept() -> None:
    def figures() -> Iterator[dict[str, str]]:
        yield {"metric": "start_1000"}
        raise SystemExit("waited 240 s for all to end")

    failed: list[str] = []
    assert list(all_of("kills", figures(), failed)) == [{"metric": "start_1000"}]
    assert failed == ["kills: SystemExit: waited 240 s for all to end"]
