"""The engine: one writer. Takes all asks that wait, decides, applies, commits once, then answers and acts.

An ask about many jobs is decided in parts, one a turn, so that what others ask for is not kept waiting.

Rules: nothing is answered, sent or shown before the commit. A commit that is known to have failed is undone and its callers
are told why; an unknown outcome, or an exception of ``apply``, ends the daemon with its story (a restart reads the truth).
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.depend.depend import ConditionQueue, local_of
from lavad.core.events import Event
from lavad.core.events.apply import apply
from lavad.core.job.job import Job
from lavad.core.job.spec import JobText
from lavad.core.lang.asks import Refused
from lavad.core.plan.cycle_record import RecordedCycle
from lavad.local_time import local_time
from lavad.store.batch import Batch, batch_of
from lavad.store.errors import Fenced, RecordRefused, StoreFull, StoreRefused
from lavad.store.writer import Store

Decide = Callable[[Cluster, float], Decided]
KEPT_ANSWERS = 2_000
"""A caller who asks again says so, and is looked up in the store; these few only spare it that."""
KEPT_BYTES = 16 << 20
SETTLED = 5_000
"""Events about dependency conditions in one turn; callers must not wait long for those of others."""
_json = msgspec.json.Encoder()
log = logging.getLogger(__name__)


class Committed(msgspec.Struct):
    """What a batch made true: for replicas, waiters and the outbox."""

    version: int
    events: Sequence[Event]
    changed: Sequence[Job]
    finished: Sequence[Job]


class Listener(Protocol):
    """Told of each committed batch, in order; must not block."""

    def __call__(self, committed: Committed, /) -> None: ...


class _Wish:
    __slots__ = ("after", "answer", "decides", "env", "given", "uuid")

    def __init__(
        self, decides: Sequence[Decide], uuid: str, env: tuple[str, bytes] | None, after: asyncio.Future[Any] | None
    ) -> None:
        self.after = after
        self.decides = decides
        self.uuid = uuid
        self.env = env
        self.given: list[dict[str, Any]] = []
        """Answers to those that were decided in earlier turns."""
        self.answer: asyncio.Future[list[dict[str, Any]]] = asyncio.get_running_loop().create_future()


class _Rest:
    """What of a wish is for a later turn, and the answers that there are."""

    __slots__ = ("decides", "given")

    def __init__(self, decides: Sequence[Decide], given: list[dict[str, Any]]) -> None:
        self.decides = decides
        self.given = given


class _Draft:
    """What the decisions of a turn add up to."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.texts: list[tuple[int, JobText]] = []
        self.envs: list[tuple[str, bytes]] = []
        self.cycles: list[RecordedCycle] = []
        self.answers: dict[str, bytes] = {}
        self.refused: set[asyncio.Future[Any]] = set()
        """Of this turn, which are not told yet."""


class Engine:
    """Owns the cluster and the store's writer."""

    def __init__(self, cluster: Cluster, store: Store, clock: Callable[[], float], answers: dict[str, bytes]) -> None:
        self.cluster = cluster
        self._store = store
        self.clock = clock
        self._conditions = ConditionQueue(cluster.conditions)
        self._waiting: list[_Wish] = []
        self._wake = asyncio.Event()
        self.quiet = asyncio.Lock()
        """Held during a turn: who holds it sees a cluster in which everything is committed."""
        self._answers: OrderedDict[str, bytes] = OrderedDict(answers)
        self._answer_bytes = sum(map(len, answers.values()))
        self._listeners: list[Listener] = []
        self._texts_seen: Callable[[int, Any], None] | None = None

    def listen(self, listener: Listener) -> None:
        """Tell ``listener`` of every committed batch from now on."""
        self._listeners.append(listener)

    def on_text(self, seen: Callable[[int, Any], None]) -> None:
        """Tell of each job's text once it is committed (a cache for starting it soon)."""
        self._texts_seen = seen

    async def ask(self, decide: Decide, uuid: str = "", env: tuple[str, bytes] | None = None) -> dict[str, Any]:
        """Carry out one ask; its answer, once committed. Raises Refused."""
        return (await self.ask_all([decide], uuid, env))[0]

    async def ask_all(
        self, decides: Sequence[Decide], uuid: str = "", env: tuple[str, bytes] | None = None
    ) -> list[dict[str, Any]]:
        """Several decisions of one caller, each seeing what the one before it changed, in one commit."""
        known = self._answers.get(uuid) if uuid else None
        if known is not None:
            return [msgspec.json.decode(known)]
        return await self.hand_in(decides, uuid, env)

    def hand_in(
        self,
        decides: Sequence[Decide],
        uuid: str = "",
        env: tuple[str, bytes] | None = None,
        after: asyncio.Future[Any] | None = None,
    ) -> asyncio.Future[list[dict[str, Any]]]:
        """As ``ask_all``, for a caller that goes on meanwhile: all that is handed in during a commit makes up the next.

        ``after``: what the caller handed in before; where that failed, this is refused too, so that nothing overtakes it.
        """
        wish = _Wish(decides, uuid, env, after)
        self._waiting.append(wish)
        self._wake.set()
        return wish.answer

    def time_passed(self) -> None:
        """Judge dependency conditions with a time window again."""
        self._conditions.time_passed()
        self._wake.set()

    async def find_answer(self, uuid: str) -> dict[str, Any] | None:
        """The stored answer of an ask that a caller repeats."""
        known = self._answers.get(uuid)
        if known is None:
            known = await asyncio.to_thread(self._store.find_answer, uuid)
        return None if known is None else msgspec.json.decode(known)

    async def run(self) -> None:
        """Serve for ever; returns only by an exception that ends the daemon."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            committed = True
            while self._waiting or (committed and self._conditions):
                async with self.quiet:
                    wishes, self._waiting = self._waiting, []
                    committed = await self._turn(wishes)

    async def _turn(self, wishes: list[_Wish]) -> bool:
        """Decide and commit; False if nothing could be written."""
        why = ""
        before = self.cluster.version
        draft = _Draft()
        answers: list[tuple[_Wish, list[dict[str, Any]] | Refused | _Rest]] = []
        for wish in wishes:
            known = (self._answers.get(wish.uuid) or draft.answers.get(wish.uuid)) if wish.uuid else None
            done = self._decide(wish, draft) if known is None else [msgspec.json.decode(known)]
            answers.append((wish, done))
        self._settle(draft)
        if draft.events:
            batch = batch_of(self.cluster, draft.events)
            batch.cycles = draft.cycles
            batch.texts, batch.envs, batch.answers = draft.texts, draft.envs, [*draft.answers.items()]
            try:
                why = await self._commit(batch, before)
            except RecordRefused as error:
                why = self._undo(before, f"The master's store refused the change: {error}")
                if len(wishes) > 1:
                    return await self._one_by_one(wishes)
            if why:
                refusal = Refused(why)
                answers = [(wish, answer if isinstance(answer, Refused) else refusal) for wish, answer in answers]
            else:
                self._tell(batch)
        for wish, answer in answers:
            if isinstance(answer, _Rest):
                wish.given, wish.decides = answer.given, answer.decides
                self._waiting.append(wish)
            else:
                _give(wish, answer)
        return not why

    async def _one_by_one(self, wishes: list[_Wish]) -> bool:
        """Each in a turn of its own: a record that the database cannot hold fails its own caller only."""
        committed = [await self._turn([wish]) for wish in wishes]
        return any(committed)

    def _settle(self, draft: _Draft) -> None:
        """What the changes mean for jobs that wait for others; each judgement may make another due."""
        left = SETTLED
        while self._conditions and left > 0:
            now = self.clock()
            events = self._conditions.settle(self.cluster, now, local_of(local_time(now)), left)
            for event in events:
                apply(self.cluster, event)
            draft.events += events
            left -= len(events)

    def _tell(self, batch: Batch) -> None:
        for uuid, stored in batch.answers:
            self._answers[uuid] = stored
            self._answer_bytes += len(stored)
            while len(self._answers) > 1 and (len(self._answers) > KEPT_ANSWERS or self._answer_bytes > KEPT_BYTES):
                self._answer_bytes -= len(self._answers.popitem(last=False)[1])
        if self._texts_seen is not None:
            for job, text in batch.texts:
                self._texts_seen(job, text)
        committed = Committed(self.cluster.version, batch.events, batch.jobs, batch.finished)
        for listener in self._listeners:
            listener(committed)

    def _decide(self, wish: _Wish, draft: _Draft) -> list[dict[str, Any]] | Refused | _Rest:
        """Decide and apply; a refusal fails its own caller only."""
        if wish.after is not None and (wish.after in draft.refused or _has_failed(wish.after)):
            draft.refused.add(wish.answer)
            return Refused("What went before it was refused")
        now = self.clock()
        given = list(wish.given)
        for at, decide in enumerate(wish.decides):
            try:
                decided = decide(self.cluster, now)
            except Refused as refusal:
                draft.refused.add(wish.answer)
                return refusal
            except Exception as error:
                draft.refused.add(wish.answer)
                # a decision changes nothing: its fault is its caller's alone
                log.exception("an ask could not be decided")
                return Refused(f"lavad: internal error: {type(error).__name__}; its log says more")
            for event in decided.events:
                apply(self.cluster, event)
            draft.events += decided.events
            draft.texts += decided.texts
            draft.cycles += decided.cycles
            if decided.more is not None:
                return _Rest([decided.more, *wish.decides[at + 1 :]], given)
            given.append(decided.answer)
        if wish.env is not None and given:
            draft.envs.append(wish.env)
        if wish.uuid:
            draft.answers[wish.uuid] = _json.encode(given[0])
        return given

    async def _commit(self, batch: Batch, before: int) -> str:
        """Commit; why nothing of it was written, or "" when all of it is."""
        try:
            await asyncio.to_thread(self._store.commit, batch)
        except (Fenced, RecordRefused):
            raise
        except StoreFull:
            return self._undo(before, "The master's store is full")
        except StoreRefused as error:
            return self._undo(before, f"The master's store refused the change: {error}")
        self.cluster.forget_changes()
        return ""

    def _undo(self, version: int, why: str) -> str:
        self.cluster.undo_changes()
        self.cluster.version = version
        return why


def _has_failed(earlier: asyncio.Future[Any]) -> bool:
    return earlier.done() and (earlier.cancelled() or earlier.exception() is not None)


def _give(wish: _Wish, answer: list[dict[str, Any]] | Refused) -> None:
    if wish.answer.done():
        return  # the caller went away
    if isinstance(answer, Refused):
        wish.answer.set_exception(answer)
    else:
        wish.answer.set_result(answer)
