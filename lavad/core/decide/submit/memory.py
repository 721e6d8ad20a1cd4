"""-M: a memory limit, or ``[size] auto``: one that is learnt, and doubled where it does not suffice."""

from __future__ import annotations

from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.draft import JobDraft, text_of
from lavad.core.decide.submit.limits import read_size
from lavad.core.decide.submit.readers import reads
from lavad.core.job.memory import program_of, size_text
from lavad.core.lang.asks import OptionValue, Refused
from lavad.core.rules.memory_limit import first_limit, learnt_limit

AUTO = "auto"


@reads("M")
def read_memory(draft: JobDraft, option: str, value: OptionValue) -> None:
    """``SIZE``, ``auto`` or ``SIZE auto``."""
    size, auto, rest = text_of(option, value).rpartition(AUTO)
    if not auto or rest.strip():
        read_size(draft, option, value)
    elif size.strip():
        read_size(draft, option, size)
    else:
        draft.set_limit(mem=None)
    if auto and draft.ran is not None:
        raise Refused("-M auto: Job has already started")
    draft.set_spec(memory_auto=bool(auto))


def settle_memory(cluster: Cluster, draft: JobDraft) -> None:
    """The limit of a job with ``auto`` of which nothing is learnt, once its queue and application profile are known."""
    if not draft.spec.memory_auto:
        return
    if draft.spec.roles:
        raise Refused("-M auto: The tasks of a job with several roles have limits of their own")
    draft.set_limit(mem=first_limit(cluster, draft.spec))


def settle_learnt_memory(cluster: Cluster, draft: JobDraft) -> None:
    """The limit that it begins with, by what its program has needed before."""
    if not draft.spec.memory_auto:
        return
    what = program_of(draft.spec.app, draft.name or draft.text.command)
    learnt = learnt_limit(cluster, draft.spec, what)
    if learnt is not None:
        draft.set_limit(mem=learnt)
    limit, why = draft.spec.limits.mem or 0, "nothing is known of what it needs" if learnt is None else f"what {what} has needed"
    draft.notices = [*draft.notices, f"Memory limit {size_text(limit)}: {why}"]
