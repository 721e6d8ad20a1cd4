"""What may befall the jobs of a world in a story: they end, leave, are killed, are stopped."""

from __future__ import annotations

from lavad.core import events as ev
from lavad.core.lang.states import JobState
from tests.support.worlds.world import World


def befall(world: World, what: str, at: int) -> None:
    """``finish``, ``gone``, ``kill`` or ``stop`` the ``at``-th of the jobs that this can happen to; nothing if there is none."""
    rows = world.cluster.jobs.rows
    match what:
        case "finish":
            if found := [key for key in world.cluster.started if rows[key].state is JobState.RUN]:
                world.finish(found[at % len(found)])
        case "gone":
            if found := [key for key in world.cluster.suspended if rows[key].preempted_for_good]:
                world.leave(found[at % len(found)])
        case "kill":
            if found := [key for key, job in rows.items() if job.state is JobState.PEND]:
                world.apply(ev.JobFinished(at=world.now, key=found[at % len(found)], state=JobState.EXIT))
        case "stop":
            if found := [key for key in world.cluster.started if rows[key].state in (JobState.RUN, JobState.SSUSP)]:
                world.apply(ev.JobSuspended(at=world.now, key=found[at % len(found)]))
