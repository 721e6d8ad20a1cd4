"""Which ranks are named: the few that differ from all others for the whole time, and never ranks that are alike."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lavad.core.plan.volatile import PartUsage, TaskUsage
from lavad.core.rules import hang

PERIOD = 10.0


class World:
    """Ranks 0 … n-1, two a host, sampled together."""

    def __init__(self, size: int) -> None:
        self.ranks: hang.Ranks = {}
        self.cpu = [0.0] * size
        self.now = 1000.0

    def sample(
        self,
        rates: list[float],
        states: str = "",
        waits: dict[int, str] | None = None,
        asleep: bool = True,
        set_back: float = 0.0,
    ) -> None:
        """A period in which each rank used so much of a core. ``set_back``: by so many seconds the hosts' clocks differ."""
        self.now += PERIOD
        tasks: dict[str, list[TaskUsage]] = {}
        for rank, rate in enumerate(rates):
            self.cpu[rank] += rate * PERIOD
            wait = (waits or {}).get(rank, "poll" if asleep and rate == 0 else "")
            state = states[rank] if states else "R"
            task = TaskUsage(
                rank=rank, pid=100 + rank, cpu=self.cpu[rank], state=state, waits=wait, wait_pid=500 + rank if wait else 0
            )
            tasks.setdefault(f"h{rank // 2}", []).append(task)
        for host, rows in tasks.items():
            hang.take(self.ranks, host, PartUsage(key=1, attempt=1, at=self.now - set_back, tasks=tuple(rows)), self.now)

    def named(self, seconds: float = 60.0) -> list[tuple[int, str, str]]:
        return [(s.rank, s.host, s.how) for s in hang.judge(self.ranks, self.now, seconds)]


def sampled(times: int, rates: list[float], **how: object) -> World:
    world = World(len(rates))
    for _ in range(times):
        world.sample(rates, **how)  # type: ignore[arg-type]
    return world


def test_a_stopped_rank_is_named_and_no_sooner() -> None:
    world = sampled(7, [1, 1, 0, 1], states="RRTR")
    assert world.named() == [(2, "h1", "stopped")]
    assert sampled(6, [1, 1, 0, 1], states="RRTR").named() == []


def test_a_rank_that_works_again_is_not_named_for_a_clock_that_was_set_back() -> None:
    world = sampled(2, [1, 1, 0, 1])
    for _ in range(10):
        world.sample([1, 1, 1, 1], waits={2: "poll"}, set_back=3600.0)
    assert world.named() == []


def test_a_rank_that_goes_on_after_a_stop_begins_anew() -> None:
    world = sampled(8, [1, 1, 0, 1], states="RRTR")
    world.sample([1, 1, 0, 1], states="RRSR")
    assert world.named() == []
    for _ in range(6):
        world.sample([1, 1, 0, 1], states="RRSR")
    assert world.named() == [(2, "h1", "idle")]


def test_the_idle_one_among_busy_ranks_hangs() -> None:
    """Ranks that wait in MPI poll; the one that sleeps is the one that is waited for."""
    world = sampled(8, [1, 1, 1, 0], waits={3: "futex (futex_wait_queue)"})
    assert world.named() == [(3, "h1", "idle")]
    (suspect,) = hang.judge(world.ranks, world.now, 60.0)
    assert (suspect.pid, suspect.waits) == (503, "futex (futex_wait_queue)")


def test_a_rank_that_is_given_no_cpu_does_not_hang() -> None:
    """On an overloaded host it could run, and does not sleep."""
    assert sampled(9, [1, 1, 1, 0], asleep=False).named() == []


def test_the_busy_one_among_waiting_ranks_is_behind() -> None:
    """Ranks that wait in gloo sleep."""
    assert sampled(8, [0, 0.9, 0, 0]).named() == [(1, "h0", "behind")]


def test_all_asleep_names_the_one_that_waits_for_something_else() -> None:
    """A deadlock, with and without an odd one."""
    waits = {0: "recvfrom of a socket", 1: "recvfrom of a socket", 2: "flock of a file", 3: "recvfrom of a socket"}
    assert sampled(8, [0] * 4, waits=waits).named() == [(2, "h1", "odd")]
    assert sampled(8, [0] * 4, waits=dict.fromkeys(range(4), "poll")).named() == [(0, "h0", "all")]


def test_two_halves_that_differ_are_no_hang() -> None:
    assert sampled(9, [1, 1, 0, 0]).named() == []
    assert sampled(9, [1, 0]).named() == []


def test_a_rank_that_goes_on_is_no_longer_named() -> None:
    world = sampled(8, [1, 1, 1, 0])
    suspects = hang.judge(world.ranks, world.now, 60.0)
    assert hang.is_consistent(world.ranks, suspects)
    world.sample([1, 1, 1, 1])
    assert world.named() == []
    assert not hang.is_consistent(world.ranks, suspects)


def test_a_rank_that_has_ended_is_not_waited_for() -> None:
    world = sampled(9, [1, 1, 0, 1], states=["R", "R", "", "R"])
    assert world.named() == []
    assert sorted(world.ranks) == [0, 1, 3]


def test_ranks_that_are_no_more_are_forgotten() -> None:
    """A job that grew smaller: by a host, and by a rank of a host."""
    world = sampled(8, [1, 1, 1, 1, 1, 1])
    world.cpu = world.cpu[:3]
    world.sample([1, 1, 1])
    hang.forget(world.ranks, {"h0", "h1"})
    assert sorted(world.ranks) == [0, 1, 2]


def test_after_a_restart_what_was_said_stands_until_something_speaks_against_it() -> None:
    suspects = hang.judge((old := sampled(8, [1, 1, 1, 0])).ranks, old.now, 60.0)
    assert hang.is_consistent(sampled(2, [1, 1, 1, 0]).ranks, suspects)


RATE = st.floats(0.0, 1.0)


@given(st.lists(RATE, min_size=2, max_size=12), st.integers(2, 20))
def test_balanced_load_is_never_named(base: list[float], samples: int) -> None:
    """The same phases on every rank, however busy each is, as long as somebody works at all."""
    world = World(4)
    rates = [max(rate, 0.1) for rate in base]
    for number in range(samples):
        world.sample([rates[number % len(rates)] * skew for skew in (1.0, 0.9, 0.8, 0.7)])
    assert world.named() == []


@given(st.lists(st.lists(st.sampled_from([0.0, 0.03, 0.5, 1.0]), min_size=4, max_size=4), min_size=1, max_size=30))
def test_a_rank_that_differs_now_and_then_is_never_named(rows: list[list[float]]) -> None:
    """Whatever they do, whoever is named has been so at each sample of the time asked for."""
    world = World(4)
    for rates in rows:
        world.sample(rates)
    for suspect in hang.judge(world.ranks, world.now, 60.0):
        late = [row[suspect.rank] for row in rows[-6:]]
        assert len(rows) > 6
        assert max(late) == 0.0 if suspect.how in ("idle", "odd", "all") else min(late) >= 0.05
