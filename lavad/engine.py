"""The engine, the only writer: in each turn it decides all queued requests, applies and commits the events once, then answers.

A request about many jobs is decided in chunks, one in each turn, so that other callers do not wait for all of it. Where a turn
ends jobs while others are pending, it waits for the scheduler's plan: ends and the starts that take their slots are one commit.

Rules: nothing is answered, sent or shown before the commit. A commit that is known to have failed is undone and its callers get
the reason; so is what cannot be applied, and its caller alone is refused. An unknown outcome ends the daemon, and so does a fault
that memory cannot be restored after; a restart reads the stored state.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping, Sequence

import msgspec

from lavad.committed import Ahead, Committed, Listener
from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.invariants import check_invariants
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.depend.depend import ConditionQueue
from lavad.core.events import Event
from lavad.core.events.apply import apply_all
from lavad.core.events.base import IllegalMove
from lavad.core.job.spec import JobText
from lavad.core.lang.asks import Faulty, Overtaken, Refused
from lavad.core.lang.windows import local_of
from lavad.core.plan.cycle_record import RecordedCycle
from lavad.local_time import local_time
from lavad.requests import Decide, Join, Request, Waiting, key_of
from lavad.store.batch import Batch, batch_of
from lavad.store.errors import AnsweredBefore, Fenced, RecordRefused, StoreRefused
from lavad.store.refusals import Refusals, refused
from lavad.store.rows import StoredText
from lavad.store.writer import Store
from proto.answers import Answer
from proto.daemon.workers import Workers

KEPT_ANSWERS, KEPT_BYTES = 2_000, 16 << 20
"""Recent answers kept in memory, and their bytes; a retry that is not found here is looked up in the store."""
SLICE = 0.025
"""Seconds for which requests of one user are decided in one turn; what is left then waits for the next, behind other users."""
SLICE_OF_MASTER, SLICE_OF_USERS = 0.004, 0.05
"""The same of the master itself, which asks for reports of hosts and plans, and of all users together. What the master asks is
decided in less time than it takes to be committed and told, for which a user waits twice: for the turn under way, and their own.
"""
QUICK, MOST_STRETCH = 0.05, 10.0
"""Seconds of a commit up to which slices are as long as that. Behind one that took longer they are longer in proportion, at most
so many times: each turn waits for its commit, so that with few decisions in a turn most of the time would pass with waiting."""
SETTLED = 5_000
"""Maximum of events about dependency conditions in one turn, so that callers do not wait long."""
_json = msgspec.json.Encoder()
_decode: Callable[[bytes], Answer] = msgspec.json.Decoder().decode
log = logging.getLogger(__name__)


class _Remainder:
    """The remaining decisions of a request, for a later turn, and the answers so far."""

    __slots__ = ("answered", "decides")

    def __init__(self, decides: Sequence[Decide], answered: list[Answer]) -> None:
        self.decides = decides
        self.answered = answered


_Decision = list[Answer] | Refused | _Remainder
_NONE: Mapping[str, bytes] = {}
_INTERNAL = "lavad: internal error: {}; its log says more"


class _Turn:
    """The combined result of the decisions of a turn."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.texts: list[tuple[int, JobText]] = []
        self.envs: dict[str, bytes] = {}
        self.attached: list[tuple[int, int, str]] = []
        self.cycles: list[RecordedCycle] = []
        self.answers: dict[str, bytes] = {}
        self.refused: set[asyncio.Future[list[Answer]]] = set()
        """Futures of refused requests whose callers are not answered yet."""
        self.requests: list[Request] = []
        """Those that are decided and, where that failed, those that were to be."""
        self.decided: list[tuple[Request, _Decision]] = []
        self.told = 0
        """How many of the events the one who plans ahead has been told of when the commit begins."""
        self.spent: defaultdict[str, float] = defaultdict(float)
        """User to the seconds that decisions for them took; "": the master itself."""
        self.of_users = 0.0
        """Seconds of all users."""


class Engine:
    """Owns the cluster and the store's writer."""

    def __init__(self, cluster: Cluster, store: Store, clock: Callable[[], float], answers: dict[str, bytes]) -> None:
        self.cluster = cluster
        self._store = store
        self._committing = Workers("commits")
        self._refusals = Refusals(log, "a commit failed", "commits succeed again")
        self._answering = Workers("stored answers", 2)
        self.clock = clock
        self._conditions = ConditionQueue(cluster.conditions)
        self._waiting = Waiting()
        self._wake = asyncio.Event()
        self.quiet = asyncio.Lock()
        """Held during a turn; its holder sees a cluster with committed changes only."""
        self._answers: OrderedDict[str, bytes] = OrderedDict(answers)
        self._answer_bytes = sum(map(len, answers.values()))
        self._stretch = 1.0
        """How many times longer slices are, after the commit before."""
        self._listeners: list[Listener] = []
        self.ahead: Ahead | None = None
        self._texts_seen: Callable[[int, bytes], None] | None = None

    def listen(self, listener: Listener) -> None:
        """Call ``listener`` with every batch that is committed from now on."""
        self._listeners.append(listener)

    def on_text(self, seen: Callable[[int, bytes], None]) -> None:
        """Call ``seen`` with (job id or key, text as the store has it) of each committed job text, to cache it for the start."""
        self._texts_seen = seen

    async def ask(self, decide: Decide, uuid: str = "", user: str = "") -> Answer:
        """Carry out one request; returns its answer after the commit. Raises Refused.

        ``user``: who asks, as the requests of users are decided in turns and their uuids are their own; "": the master itself.
        """
        known = self._answers.get(key_of(user, uuid)) if uuid else None
        if known is not None:
            return _decode(known)
        return (await self.hand_in([decide], uuid, user))[0]

    def hand_in(
        self,
        decides: Sequence[Decide],
        uuid: str = "",
        user: str = "",
        after: asyncio.Future[list[Answer]] | None = None,
        join: Join | None = None,
    ) -> asyncio.Future[list[Answer]]:
        """Several decisions of one caller in one commit, each on the state after the one before it; does not wait.

        ``after``: the caller's previous request; if that failed, this one is refused too, so that nothing overtakes it.
        ``join``: only as many are made as a turn has time for, or up to the first that is refused, but at least the first; what
        ``join`` makes of their answers is the one answer, and is stored under ``uuid`` if one of them has an event.
        """
        request = Request(decides, key_of(user, uuid), user, after, join)
        self._waiting.add(request)
        self._wake.set()
        return request.answer

    async def lives(self) -> None:
        """Returns once no turn is under way and the thread for commits has answered."""
        async with self.quiet:
            await self._committing.run(_nothing)

    def time_passed(self) -> None:
        """Judge dependency conditions with a time window again."""
        self._conditions.time_passed()
        self._wake.set()

    async def find_answer(self, uuid: str, user: str = "") -> Answer | None:
        """The stored answer to a request that this user repeats; None: it was not answered."""
        # a release before kept answers by uuid alone, and may have been the master at the first try
        for key in dict.fromkeys((key_of(user, uuid), uuid)):
            known = self._answers.get(key) or await self._answering.run(self._store.find_answer, key)
            if known is not None:
                return _decode(known)
        return None

    async def run(self) -> None:
        """Serve for ever; returns only by an exception that ends the daemon."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            committed = True
            while self._waiting or (committed and self._conditions):
                async with self.quiet:
                    committed = await self._turn(self._waiting.take(), joined=True)
                await asyncio.sleep(0)  # who was answered hears of it before the next turn

    async def _turn(self, requests: list[Request], known: Mapping[str, bytes] = _NONE, joined: bool = False) -> bool:
        """Decide and commit; False if nothing could be written. ``known``: answers that the store has to repeated requests.

        ``joined``: where jobs end while others are pending, what starts in their place is decided in the same turn.
        """
        refusal: Refused | None = None
        turn = _Turn()
        failed: Exception | None = None
        try:
            self._decide_all(requests, turn, known)
            if joined and self.ahead is not None and self.ahead.wants_plan(self.cluster):
                turn.told = await self.ahead.planned(turn.events, self.cluster.version)
                self._decide_all(self._waiting.take(), turn, known)
            batch = batch_of(self.cluster, turn.events)
        except Exception as error:
            failed = error
        requests, answers = turn.requests, turn.decided
        if failed is not None:
            return await self._without_fault(requests, known, failed, turn.told)
        if turn.events:
            batch.cycles, batch.attached = turn.cycles, turn.attached
            batch.texts, batch.envs, batch.answers = turn.texts, [*turn.envs.items()], [*turn.answers.items()]
            begun = time.perf_counter()
            try:
                refusal, texts = await self._commit(batch, turn.told)
            except AnsweredBefore as error:
                self._undo()
                return await self._turn(requests, {**known, **error.answers})
            except RecordRefused as error:
                self._undo()
                if len(requests) > 1:
                    return await self._by_halves(requests, known)
                refusal = refused(error)
            if refusal is not None:
                answers = [(request, answer if isinstance(answer, Refused) else refusal) for request, answer in answers]
            else:
                took = time.perf_counter() - begun
                self._stretch = min(MOST_STRETCH, max(1.0, took / QUICK))
                self._tell(batch, texts, took)
        for request, answer in answers:
            if isinstance(answer, _Remainder):
                request.answered, request.decides = answer.answered, answer.decides
                self._waiting.add(request)
            else:
                request.end(answer)
        return refusal is None

    def _decide_all(self, requests: list[Request], turn: _Turn, known: Mapping[str, bytes]) -> None:
        """Decide requests, of the master, each user and all users as many as their slices have time for; the others wait on."""
        turn.requests = [*turn.requests, *requests]
        turn.spent[""] = 0.0  # a plan that was waited for is not to wait for the next turn
        left: list[Request] = []
        for request in requests:
            user = request.user
            most = (SLICE if user else SLICE_OF_MASTER) * self._stretch
            if turn.spent[user] > most or (user and turn.of_users > SLICE_OF_USERS * self._stretch):
                left.append(request)
                continue
            begun = time.perf_counter()
            uuid = request.uuid
            before = (known.get(uuid) or self._answers.get(uuid) or turn.answers.get(uuid)) if uuid else None
            turn.decided.append((request, self._decide(request, turn) if before is None else [_decode(before)]))
            took = time.perf_counter() - begun
            turn.spent[user] += took
            turn.of_users += took if user else 0.0
        self._waiting.put_back(left)
        turn.requests = [request for request, _ in turn.decided]
        self._settle(turn)

    async def _by_halves(self, requests: list[Request], known: Mapping[str, bytes]) -> bool:
        """Commit the requests in smaller and smaller turns: a record that the database cannot hold fails only its own caller."""
        half = len(requests) // 2
        committed = [await self._turn(requests[:half], known), await self._turn(requests[half:], known)]
        return any(committed)

    async def _without_fault(self, requests: list[Request], known: Mapping[str, bytes], error: Exception, told: int) -> bool:
        """Undo the turn, and refuse the request at fault alone; after a fold that failed midway only if memory is sound then."""
        if not requests:
            raise error
        if told:
            self._undo()
        else:
            self.cluster.undo_changes()
        if not isinstance(error, IllegalMove):
            check_invariants(self.cluster)
        if len(requests) > 1:
            return await self._by_halves(requests, known)
        log.error("an ask of %s could not be applied", requests[0].user or "the master", exc_info=error)
        requests[0].end(Faulty(_INTERNAL.format(type(error).__name__)))
        return False

    def _settle(self, turn: _Turn) -> None:
        """Judge the dependency conditions that the changes affect; each judgement may make another due."""
        left = SETTLED
        while self._conditions and left > 0:
            now = self.clock()
            events = self._conditions.settle(self.cluster, now, local_of(local_time(now)), left)
            apply_all(self.cluster, events)
            turn.events += events
            left -= len(events)

    def _tell(self, batch: Batch, texts: Sequence[StoredText], took: float) -> None:
        for uuid, stored in batch.answers:
            self._answers[uuid] = stored
            self._answer_bytes += len(stored)
            while len(self._answers) > 1 and (len(self._answers) > KEPT_ANSWERS or self._answer_bytes > KEPT_BYTES):
                self._answer_bytes -= len(self._answers.popitem(last=False)[1])
        if self._texts_seen is not None:
            for job, text, _ in texts:
                self._texts_seen(job, text)
        committed = Committed(self.cluster.version, batch.events, batch.jobs, batch.finished, batch.dropped_arrays, took)
        for listener in self._listeners:
            listener(committed)

    def _decide(self, request: Request, turn: _Turn) -> _Decision:
        """Decide and apply; a refusal fails its own caller only."""
        if request.after is not None and (request.after in turn.refused or _has_failed(request.after)):
            turn.refused.add(request.answer)
            return Overtaken("Refused: an earlier request of this connection failed.")
        now = self.clock()
        begun = len(turn.events)
        answered = list(request.answered)
        until = time.perf_counter() + SLICE * self._stretch
        for at, decide in enumerate(request.decides):
            part = request.join is not None and bool(answered)
            if part and time.perf_counter() > until:
                break
            try:
                decided = decide(self.cluster, now)
            except Exception as error:
                if part:
                    break
                turn.refused.add(request.answer)
                return _refusal_of(error)
            self._take(decided, turn)
            if decided.more is not None:
                return _Remainder([decided.more, *request.decides[at + 1 :]], answered)
            answered.append(decided.answer)
        if request.join is not None:
            answered = [request.join(answered)]
        if request.uuid and (request.join is None or len(turn.events) > begun):
            turn.answers[request.uuid] = _json.encode(answered[0])
        return answered

    def _take(self, decided: Decided, turn: _Turn) -> None:
        """Apply what was decided, and note it for the commit."""
        apply_all(self.cluster, decided.events)
        turn.events += decided.events
        turn.texts += decided.texts
        if decided.envs:
            turn.envs.update(decided.envs)
        turn.attached += decided.attached
        turn.cycles += decided.cycles

    async def _commit(self, batch: Batch, told: int) -> tuple[Refused | None, Sequence[StoredText]]:
        """Commit the batch; returns why nothing was written, None after success, and the texts that were.

        ``told``: number of its first events that who works ahead has heard of.
        """
        if self.ahead is not None:
            try:
                self.ahead.begun(batch.events[told:])
            except (UnicodeEncodeError, OverflowError) as error:
                raise RecordRefused(f"store: a record cannot be written: {error}") from error
        committing = self._committing.begin(self._store.commit, batch)
        if self.ahead is not None:
            self.ahead.under_way()
        try:
            texts = await committing
        except (Fenced, RecordRefused, AnsweredBefore):
            raise
        except StoreRefused as error:
            self._refusals.failed(error)
            self._undo()
            return refused(error), ()
        self._refusals.worked()
        self.cluster.forget_changes()
        return None, texts

    def _undo(self) -> None:
        """The batch was not committed."""
        self.cluster.undo_changes()
        if self.ahead is not None:
            self.ahead.undone()


def _nothing() -> None:
    pass


def _refusal_of(error: Exception) -> Refused:
    """What its caller is told. A decision changes nothing, so an error in it fails only its own caller."""
    if isinstance(error, Refused):
        return error
    log.exception("an ask could not be decided")
    return Faulty(_INTERNAL.format(type(error).__name__))


def _has_failed(earlier: asyncio.Future[list[Answer]]) -> bool:
    return earlier.done() and (earlier.cancelled() or earlier.exception() is not None)
