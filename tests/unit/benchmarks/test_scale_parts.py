"""What a site does between two moments: rates, percentiles and spreads of what came between, and the table."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest

from benchmarks.scale_parts import Mark, Page, Part, Spread, parse_page, table
from lavad.committed import Committed
from lavad.core.plan.plan import Plan
from lavad.services.metrics import Metrics, _Page
from tests.support.worlds.world import World


def page(metrics: Metrics) -> Page:
    registry = CollectorRegistry()
    registry.register(_Page(metrics))
    return parse_page(generate_latest(registry).decode())


def mark(clock: float, page: Page, cpu: float, asked: tuple[int, int]) -> Mark:
    return Mark(clock, page, {"lavad": cpu}, {"lavad": 50_000_000}, 2_000_000, 1_000_000, (clock, 2 * clock), asked)


def test_a_part_is_what_came_between_two_marks() -> None:
    world = World()
    world.hosts("h1", slots=1)
    metrics = Metrics(world.cluster)
    job = world.submit()
    world.step()
    finished = [world.cluster.jobs.rows[job]]
    metrics.planned(Plan(version=1, took=2.0))
    first = page(metrics)
    metrics.committed(Committed(1, (), (), finished, took=0.002))
    metrics.committed(Committed(2, (), (), (), took=0.02))
    metrics.planned(Plan(version=2, took=0.0005))
    part = Part(mark(10.0, first, 1.0, (0, 0)), mark(20.0, page(metrics), 6.0, (3, 1)), [1.0, 2.0, 90.0], [4.0])
    assert (part.ended, part.cores("lavad"), part.cpu("lavad"), part.busy()) == (1, 0.5, 5000, 0.5)
    assert (round(part.commits().mean()), part.commits().most(0.5), part.commits().most()) == (11, 3, 30)
    assert (part.cycles().count, part.cycles().most()) == (1, 1)
    rows = {line[:30].strip(): line.split()[-1] for line in table([part], part).splitlines()}
    assert rows["submit, p99, ms"] == "90"
    assert rows["cores: lavad"] == "0.5"


def test_nothing_between_two_marks_is_zero() -> None:
    nothing = Page(0.0, Spread(), Spread())
    part = Part(mark(0.0, nothing, 0.0, (0, 0)), mark(1.0, nothing, 0.0, (0, 0)), [], [])
    assert "query, p99, ms" in table([part], part)
    assert (part.cpu("lavad"), part.commits().mean(), part.commits().most()) == (0, 0, 0)
