"""EXTENDABLE_RUNLIMIT: a job that has reached its soft run limit goes on, unless others need its slots.

Others are waiting jobs of queues of the same or a higher priority: one that does not fit, and would if such jobs ended, or one
with a slot reservation that counts on their slots.

Rule: started jobs are looked through only when the next one may have reached its soft limit; a cycle in which any has looks at
all blocked classes again.
"""

from __future__ import annotations

from itertools import islice

from config.model.values import ExtendableRunlimit
from lavad.core.decide.placement.preempt import parts_of
from lavad.core.job.job import Array, Job
from lavad.core.job.run_time import counted
from lavad.core.job.spec import Spec
from lavad.core.lang.states import JobState
from lavad.core.plan.plan import RunLimit
from lavad.core.rules.run_settings import extension_of, soft_limit
from lavad.sched.hosts.ends import end_of
from lavad.sched.hosts.offers import Offers, Shifted, shift
from lavad.sched.needs.eligibility import Eligibility
from lavad.sched.needs.needs import Need
from lavad.sched.policy.slot_reservations import SlotReservation
from lavad.sched.state.cycle_state import CycleState

LOOK_AGAIN = 60.0
"""Seconds after which jobs that could not be decided are looked at again."""


class SoftLimits:
    """The jobs whose soft limit is reached in one cycle (``due``), and those of them that others need (``claimed``)."""

    def __init__(self, state: CycleState) -> None:
        self.state = state
        self.due: dict[int, tuple[Job, Spec, ExtendableRunlimit]] = {}
        self.claimed: set[int] = set()
        shortest = state.cache.rules.shortest_soft
        if not shortest:
            return
        if state.now >= state.cache.soft_due:
            state.cache.soft_due = self._look(state.now + state.run_times.least(shortest))
        state.wake(state.cache.soft_due)
        if self.due:
            state.cache.changed.note_all()
            state.retry_blocked = state.free_may_grow = True

    def _look(self, latest: float) -> float:
        """Find the jobs that are due; when to look again, at the latest when one that starts now may be due."""
        state = self.state
        for key in sorted(state.cluster.started):
            job = state.cluster.jobs.rows[key]
            spec = state.cluster.specs.rows[job.spec]
            soft, rule = soft_limit(state.cluster, job, spec), extension_of(state.cluster, spec)
            if soft is None or rule is None or job.run is None:
                continue
            left = state.run_times.longest(spec, soft, (part.host for part in job.run.parts)) - counted(job, state.now)
            if left <= 0:
                left = LOOK_AGAIN
                if _may_be_told(job):
                    self.due[key] = job, spec, rule
            latest = min(latest, state.now + left)
        return latest

    def claim(self, need: Need, eligible: Eligibility) -> None:
        """A job of this class does not fit: those that are due and whose slots it and the next ones of its class could have."""
        for _ in range(self._count(need)):
            if not self._claim_one(need, eligible):
                break

    def _count(self, need: Need) -> int:
        """How many jobs of a class wait, as far as it counts."""
        cluster, most, found = self.state.cluster, len(self.due), 0
        for key in islice(cluster.pending.get(need.number, ()), most):
            row = cluster.get(key)
            found += len(row.startable) if isinstance(row, Array) else 1
        return min(most, found)

    def _claim_one(self, need: Need, eligible: Eligibility) -> bool:
        """Whether those not claimed so far make room for one job more; as few of them as will do are claimed."""
        state = self.state
        offers = Offers(state, need, eligible)
        taken: list[tuple[int, Shifted]] = []
        fits = False
        for key in self._open(need):
            one = (parts_of(state.cluster, key), state.cluster.spec_of(key))
            taken.append((key, one))
            offers.renew(shift(state, [one], -1))
            if fits := bool(offers.choose()):
                break
        for found in taken[-2::-1] if fits else ():
            offers.renew(shift(state, [found[1]], 1))
            if offers.choose():
                taken.remove(found)
            else:
                offers.renew(shift(state, [found[1]], -1))
        shift(state, [one for _, one in taken], 1)
        if fits:
            self.claimed.update(key for key, _ in taken)
        return fits

    def _open(self, need: Need) -> list[int]:
        """Those that jobs of this class may claim, the longest over its limit first."""
        confs = self.state.cluster.queue_conf
        found = [
            key
            for key, (_, spec, _) in self.due.items()
            if key not in self.claimed and key not in self.state.preempted and confs[spec.queue].priority <= need.queue.priority
        ]
        return sorted(found, key=lambda key: (-counted(self.due[key][0], self.state.now), key))

    def claim_for(self, reservation: SlotReservation) -> None:
        """A job has a slot reservation: those that are due, and on whose slots it counts before they would be due again."""
        state, need = self.state, reservation.need
        places = {place.host: place.slots for place in reservation.places}
        held = {place.host: place.slots for place in reservation.full}
        for key in self._open(need):
            rule = self.due[key][2]
            hosts = [part.host for part in parts_of(state.cluster, key) if part.host in places]
            if reservation.start > state.now + rule.increment:
                continue
            if any(need.gpu is not None or self._left(host, held, reservation.start, key) < places[host] for host in hosts):
                self.claimed.add(key)

    def _left(self, host: str, held: dict[str, int], start: float, without: int) -> int:
        """Slots of a host that are free for the reservation at its start if one job goes on."""
        state = self.state
        found = state.cache.by_name[host].free + held.get(host, 0)
        use = state.cluster.use.hosts.get(host)
        for key, part in use.jobs.items() if use is not None else ():
            job = state.cluster.jobs.rows[key]
            if key != without and (key not in self.due or key in self.claimed):
                found += part.slots if end_of(state, job, state.cluster.specs.rows[job.spec]) <= start else 0
        return found

    def decided(self) -> tuple[RunLimit, ...]:
        """What becomes of each."""
        state = self.state
        found = []
        for key, (job, spec, rule) in self.due.items():
            if job.run is None or key in state.preempted:
                continue
            ran = counted(job, state.now)
            hosts = [part.host for part in job.run.parts]
            if key in self.claimed:
                found.append(RunLimit(key, job.run.uid, hard=state.run_times.given(spec, ran + rule.grace, hosts)))
            else:
                soft = soft_limit(state.cluster, job, spec) or rule.base
                more = max(1, -(-int(ran - state.run_times.longest(spec, soft, hosts) + 1) // rule.increment))
                found.append(RunLimit(key, job.run.uid, soft=soft + more * rule.increment))
        return tuple(found)


def _may_be_told(job: Job) -> bool:
    """Whether a job runs, and is not about to end or to give up its slots."""
    run = job.run
    return (
        job.state is JobState.RUN
        and run is not None
        and run.started > 0
        and run.verdict is None
        and not (run.is_ending or run.refused or job.preempted_for)
    )
