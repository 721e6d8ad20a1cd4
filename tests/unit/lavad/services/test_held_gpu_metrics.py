"""GPU seconds that waiting jobs hold."""

from __future__ import annotations

from msgspec.structs import replace

from lavad.core.job.gpu_use import GpuUse
from lavad.core.job.job import Job, Outcome, Placed
from lavad.core.lang.states import JobState
from lavad.core.plan.volatile import PartUsage, Soft
from lavad.services.held_gpu_metrics import HeldGpus, gpus_of_running_jobs


def waiting(key: int, gpus: int) -> Job:
    parts = (Placed(host="h1", slots=1, gpus=tuple(f"g{at}" for at in range(gpus))),) if gpus else ()
    return Job(key=key, spec=1, name="a", submitted=0.0, promised=parts)


def test_gpus_count_while_they_are_held_by_who_does_not_run() -> None:
    """gpu_held_idle_seconds; zero where nothing is held."""
    held = HeldGpus()
    held.note([waiting(1, 0)], 100.0)
    assert held.seconds(200.0) == 0.0
    held.note([waiting(1, 2), waiting(2, 1)], 200.0)
    assert held.seconds(210.0) == 30.0
    held.note([waiting(2, 0)], 210.0)
    assert held.seconds(220.0) == 50.0
    held.note([Job(key=1, spec=1, name="a", submitted=0.0, state=JobState.EXIT)], 220.0)
    assert held.seconds(500.0) == 50.0


def test_a_job_that_is_killed_while_it_holds_gpus_holds_them_no_longer() -> None:
    held = HeldGpus()
    held.note([waiting(1, 2)], 0.0)
    held.note([replace(waiting(1, 2), state=JobState.EXIT, outcome=Outcome(at=10.0))], 10.0)
    assert held.seconds(500.0) == 20.0


def test_gpus_of_running_jobs_are_idle_below_five_percent() -> None:
    soft = Soft()
    assert gpus_of_running_jobs(soft) == (0, 0)
    uses = tuple(GpuUse(uuid=str(util), util=util) for util in (0, 4, 5, 100, -1))
    soft.usage[1] = {"h1": PartUsage(key=1, attempt=1, at=1.0, gpus=uses), "h2": PartUsage(key=1, attempt=1, at=1.0)}
    assert gpus_of_running_jobs(soft) == (5, 2)
