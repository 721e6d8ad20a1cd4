"""GPUs are closed by what their agent says, and opened when it has said for long enough that they are well."""

from __future__ import annotations

from typing import Any

from lavad.core import events as ev
from lavad.core.decide.base.decided import Decided
from lavad.core.plan.volatile import GpuState, SoftUpdate
from lavad.services.gpu_watch import GpuWatch
from tests.support.worlds.watched import Watched, told_to

G0, G1 = "GPU-g1-0", "GPU-g1-1"


class GpusWatched(Watched):
    """With a watch on the GPUs."""

    def __init__(self) -> None:
        super().__init__()
        self.bench.hosts("g1", gpus=2)
        self.watch = self.restarted()
        self.driver = ""
        self.engine.listen(self._note)

    def restarted(self) -> GpuWatch:
        """The watch of a new master."""
        self.watch = GpuWatch(self.engine, lambda: self.bench.now)
        self.engine.listen(self.watch.committed)
        return self.watch

    def _note(self, committed: Any) -> None:
        for event in committed.events:
            if isinstance(event, ev.GpuSwitched):
                self.said.append(f"{event.gpu[-1]} {'closed' if event.closed else 'opened'} by {event.by}: {event.comment}")

    async def beats(self, error: str = "", cause: str = "", driver: str = "", gpu: str = G0, after: float = 5.0) -> list[str]:
        """A heartbeat ``after`` seconds, and what follows from it."""
        self.bench.now += after
        errors = {"g1": driver} if driver != self.driver else {}
        self.driver = driver
        self.watch.take(SoftUpdate(gpus={"g1": (GpuState(gpu, error=error, cause=cause),)}, gpu_errors=errors))
        return await self.turns()

    async def turns(self) -> list[str]:
        await self.watch.turn()
        said, self.said = self.said, []
        return said

    async def switches(self, closed: bool, by: str = "boss") -> None:
        event = ev.GpuSwitched(at=self.bench.now, host="g1", gpu=G0, closed=closed, by=by)
        await self.engine.ask(lambda cluster, now: Decided(events=[event]))
        self.said.clear()


told = told_to(GpusWatched)


@told
async def test_one_that_is_lost_is_closed_and_opens_when_it_has_been_well_for_a_minute(w: GpusWatched) -> None:
    assert await w.beats() == []
    assert await w.beats("lost", "lost") == ["0 closed by lava: lost"]
    assert await w.beats("lost", "lost") == []
    assert await w.beats() == []
    assert await w.beats("lost", "lost") == []
    assert await w.beats() == []
    assert await w.beats(after=59) == []
    assert await w.beats(after=1) == ["0 opened by lava: it is well again"]
    assert await w.beats("lost", "lost") == ["0 closed by lava: lost"]


@told
async def test_a_fault_stays_until_an_administrator_opens_it_who_has_the_last_word(w: GpusWatched) -> None:
    assert await w.beats("2 uncorrected ECC errors", "fault") == ["0 closed by lava: 2 uncorrected ECC errors"]
    assert await w.beats() + await w.beats(after=600) == []
    await w.beats("2 uncorrected ECC errors", "fault")
    await w.switches(closed=False)
    assert await w.beats("3 uncorrected ECC errors", "fault") == []
    w.restarted()
    assert await w.beats("3 uncorrected ECC errors", "fault") == []
    assert await w.beats() == []
    assert await w.beats(after=61) == ["0 opened by lava: it is well again"]
    w.restarted()
    assert await w.beats("1 uncorrected ECC errors", "fault") == ["0 closed by lava: 1 uncorrected ECC errors"]


@told
async def test_one_that_an_administrator_opened_is_closed_when_it_is_lost_as_well(w: GpusWatched) -> None:
    assert await w.beats("Xid 48", "fault") == ["0 closed by lava: Xid 48"]
    await w.switches(closed=False)
    assert await w.beats("too hot", "health") == []
    assert await w.beats("lost", "lost") == ["0 closed by lava: lost"]
    assert await w.beats() == []
    assert await w.beats(after=60) == ["0 opened by lava: it is well again"]


@told
async def test_what_is_held_opens_as_soon_as_nothing_holds_it(w: GpusWatched) -> None:
    assert await w.beats("process 1 of user ann still holds it", "held") == [
        "0 closed by lava: process 1 of user ann still holds it"
    ]
    assert await w.beats() == ["0 opened by lava: nothing holds it any more"]


@told
async def test_what_was_heard_before_it_was_closed_says_nothing(w: GpusWatched) -> None:
    await w.beats()
    await w.engine.ask(
        lambda cluster, now: Decided(
            events=[ev.GpuSwitched(at=w.bench.now, host="g1", gpu=G0, closed=True, by="lava", comment="held", cause="held")]
        )
    )
    w.said.clear()
    assert await w.turns() == []
    assert await w.beats() == ["0 opened by lava: nothing holds it any more"]


@told
async def test_a_silent_host_opens_nothing_and_a_new_master_waits_too(w: GpusWatched) -> None:
    await w.beats("lost", "lost")
    await w.beats()
    w.bench.now += 3600
    assert await w.turns() == []
    w.restarted()
    assert await w.turns() == []
    assert await w.beats() == []
    assert await w.beats(after=60) == ["0 opened by lava: it is well again"]


@told
async def test_what_gets_worse_is_told_again(w: GpusWatched) -> None:
    assert await w.beats("too hot", "health") == ["0 closed by lava: too hot"]
    assert await w.beats("lost", "lost") == ["0 closed by lava: lost"]
    assert await w.beats("too hot", "health") == []
    assert await w.beats("Xid 48", "fault") == ["0 closed by lava: Xid 48"]


@told
async def test_a_driver_that_does_not_answer_closes_all_gpus_of_its_host(w: GpusWatched) -> None:
    assert await w.beats(driver="no driver") == ["0 closed by lava: no driver", "1 closed by lava: no driver"]
    assert await w.beats() == []
    assert await w.beats(after=60) == ["0 opened by lava: it is well again"]
    await w.beats(gpu=G1)
    assert await w.beats(gpu=G1, after=60) == ["1 opened by lava: it is well again"]


@told
async def test_what_an_administrator_has_closed_stays_closed(w: GpusWatched) -> None:
    await w.switches(closed=True)
    assert await w.beats("lost", "lost") == []
    assert await w.beats() + await w.beats(after=61) == []
    await w.switches(closed=False)
    assert await w.beats("lost", "lost") == ["0 closed by lava: lost"]


@told
async def test_a_host_that_leaves_is_forgotten(w: GpusWatched) -> None:
    await w.beats("lost", "lost")
    await w.engine.ask(lambda cluster, now: Decided(events=[ev.HostLeft(at=now, host="g1")]))
    w.said.clear()
    assert await w.turns() == []
