"""What a plan's record has of GPUs: what a scheduler reads that the stored records do not say yet."""

from __future__ import annotations

from lavad.core.cluster.cluster import Cluster
from lavad.core.events import HostLeft
from lavad.core.plan.cycle_record import CycleRecord, fold_record, unpack
from lavad.core.plan.plan import Plan
from lavad.core.plan.volatile import GpuState, Soft, SoftUpdate, forget, update
from lavad.processes.recorder import Recorder


class Recorded:
    """A scheduler's soft state, what is recorded of it, and what a replay makes of the records."""

    def __init__(self) -> None:
        self.soft, self.replayed, self.recorder = Soft(), Soft(), Recorder()
        self.plan()

    def hear(self, **used: int) -> None:
        """A heartbeat of each host: MB in use of its GPU."""
        states = {host: GpuState(uuid=f"GPU-{host}", util=7, mem_used=mb) for host, mb in used.items()}
        load = {host: {"r1m": 1.0} for host in states}
        news = SoftUpdate(load=load, gpus={host: (state,) for host, state in states.items()})
        update(self.soft, news)
        self.recorder.note(news)

    def leave(self, host: str) -> None:
        """The cluster drops a host; a replay makes the same of the event."""
        for soft in (self.soft, self.replayed):
            forget(soft, Cluster(), [HostLeft(at=0.0, host=host)], ())

    def plan(self, kept: bool = True) -> CycleRecord:
        """The record of a plan, which a replay reads if it is stored."""
        record = unpack(self.recorder.record(Plan(version=1), self.soft, 1000.0, (0, 0)).data)
        self.recorder.done(kept)
        if kept:
            fold_record(self.replayed, record)
            assert in_gb(self.replayed) == in_gb(self.soft)
        return record


def in_gb(soft: Soft) -> dict[str, int]:
    return {uuid: state.gb_used for gpus in soft.gpus.values() for uuid, state in gpus.items()}


def test_gpus_are_recorded_when_they_use_another_number_of_gb():
    site = Recorded()
    site.hear(h1=5000, h2=100)
    assert site.plan().gpus == {"h1": {"GPU-h1": 4096}, "h2": {"GPU-h2": 0}}
    site.hear(h1=5100, h2=-1)
    assert site.plan().gpus == {}
    site.hear(h1=5100, h2=2000)
    assert site.plan().gpus == {"h2": {"GPU-h2": 1024}}


def test_gpus_of_a_record_that_was_not_stored_are_recorded_again():
    site = Recorded()
    site.hear(h1=5000)
    assert site.plan(kept=False).gpus == site.plan().gpus == {"h1": {"GPU-h1": 4096}}
    assert site.plan().gpus == {}


def test_gpus_of_a_host_that_left_and_came_back_are_recorded_again():
    site = Recorded()
    site.hear(h1=5000)
    site.plan()
    site.leave("h1")
    site.hear(h1=5000)
    assert site.plan().gpus == {"h1": {"GPU-h1": 4096}}


def test_a_whole_record_has_the_gpus_of_all_hosts():
    site = Recorded()
    site.hear(h1=5000, h2=100)
    site.plan()
    site.recorder.stop()
    assert site.plan().gpus.keys() == {"h1", "h2"}
    site.hear(h1=5000)
    assert site.plan().gpus == {}
