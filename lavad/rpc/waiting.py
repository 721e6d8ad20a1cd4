"""Callers that wait for a job: until it starts or ends, or until it has a terminal for its user.

Rule: who may see nothing of a job (SECURE_JOB_INFO_LEVEL) hears of none. Only its owner attaches to a job, also to one that has
no terminal, or is over.
"""

from __future__ import annotations

from lavad.core.job.spec import Spec
from lavad.core.lang.asks import Attach, Caller, Refused, Wait
from lavad.engine import Engine
from lavad.hosts.attach import find_attach_address
from lavad.hosts.peek_service import PeekService
from lavad.queries.facts.visibility import Sight, is_restricted, sight_of
from lavad.services.waits import Waits, answer_for
from proto.answers import Answer


class Waiting:
    """Answers them."""

    def __init__(self, engine: Engine, waits: Waits, outputs: PeekService, secret: bytes) -> None:
        self._engine = engine
        self._waits = waits
        self._outputs = outputs
        self._secret = secret

    async def attach(self, ask: Attach, caller: Caller) -> Answer:
        """Where the job's terminal is, or how the job ended."""
        spec = await self._spec(ask.job, caller)
        if spec is not None and spec.user != caller.user:
            raise Refused(f"Job <{ask.job}>: User permission denied")
        while True:
            found = find_attach_address(self._engine.cluster, ask, caller, self._secret)
            if found is not None:
                return found
            told = await self._waits.wait(ask.job, "attachable")
            if told is None:
                return await self.wait(Wait(job=ask.job), caller)
            if told:
                return told

    async def wait(self, ask: Wait, caller: Caller) -> Answer:
        """How the job started or ended; of an array, how its worst element ended."""
        if ask.until not in ("started", "finished"):
            raise Refused(f"{ask.until}: no state to wait for")
        sight = Sight.DETAIL
        if is_restricted(self._engine.cluster.conf, caller):
            spec = await self._spec(ask.job, caller)
            sight = Sight.NOTHING if spec is None else sight_of(self._engine.cluster.conf, caller, spec)
        if sight is Sight.NOTHING:
            raise _not_found(ask.job)
        told = await self._told(ask, caller)
        if sight is Sight.SUMMARY:
            return {"state": told["state"], "status": told["status"], "host": told["host"]}
        return told

    async def _told(self, ask: Wait, caller: Caller) -> Answer:
        await self._waits.array_over(ask.job)
        live = await self._waits.wait(ask.job, ask.until)
        if live is not None:
            return live
        # a job that has just left memory is in the store when the turn is over
        async with self._engine.quiet:
            pass
        finished = await self._outputs.find_finished(ask.job, caller.user)
        finished = finished or await self._outputs.find_worst_element(ask.job, caller.user)
        if finished is None:
            raise _not_found(ask.job)
        return answer_for(finished)

    async def _spec(self, number: int, caller: Caller) -> Spec | None:
        """Of a job or array, live or finished; None: there is none."""
        cluster = self._engine.cluster
        live = cluster.find_job(number) or cluster.find_array(number)
        if live is not None:
            return cluster.specs.rows[live.spec]
        async with self._engine.quiet:
            pass
        ended = await self._outputs.find_finished(number, caller.user)
        ended = ended or await self._outputs.find_worst_element(number, caller.user)
        return await self._outputs.spec_of(ended, caller.user) if ended is not None else None


def _not_found(job: int) -> Refused:
    return Refused(f"Job <{job}> is not found")
