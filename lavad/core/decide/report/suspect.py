"""Which hosts of an attempt are to blame that it failed or hung: the next attempt of the job goes elsewhere if it can."""

from __future__ import annotations

from lavad.core.job.job import Attempt
from lavad.core.job.spec import Spec
from lavad.core.lang.states import PartState

PER_HOST = "torchrun"


def first_failed(run: Attempt, spec: Spec) -> tuple[str, ...]:
    """The host of the rank that failed first. One host alone is not to blame: it may be the only one."""
    if run.verdict is None or run.verdict.first_rank < 0 or not run.verdict.status or len(run.parts) < 2:
        return ()
    rank = run.verdict.first_rank
    for part in run.parts:
        rank -= 1 if spec.launch.partition("(")[0] == PER_HOST else part.slots
        if rank < 0:
            return (part.host,)
    return ()


def hung(run: Attempt) -> tuple[str, ...]:
    """The hosts of ranks that were named as hanging."""
    return tuple(dict.fromkeys(suspect.host for suspect in run.suspects if suspect.how != "all"))


def lost(run: Attempt) -> tuple[str, ...]:
    """Hosts that fell silent, and of a job on several those that lost their part."""
    several = len(run.parts) > 1
    return tuple(
        part.host for part in run.parts if part.state is PartState.FENCED or (several and part.end is not None and part.end.lost)
    )
