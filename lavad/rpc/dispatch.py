"""Requests of commands, local or relayed: decodes the frame, asks for a decision or a query, encodes the answer frames."""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import AsyncIterator
from functools import singledispatchmethod

import msgspec
from msgspec.structs import replace

from lavad.core.cluster.cluster import Cluster
from lavad.core.decide import load_decisions
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.base.decisions import find_decision
from lavad.core.decide.base.resolve import StoredJobs
from lavad.core.decide.base.select import get_target
from lavad.core.decide.control import force, revive, tokens
from lavad.core.decide.depend.depend import judge
from lavad.core.decide.modify.modify import modify
from lavad.core.lang import asks, bounds
from lavad.core.lang.asks import Caller, Refused
from lavad.core.lang.ids import job_of
from lavad.core.lang.token_ask import ListTokens, RevokeTokens, Token
from lavad.core.lang.windows import local_of
from lavad.core.rules.vouching import why_not_vouched
from lavad.core.site.rights import why_not_admin
from lavad.engine import Engine
from lavad.hosts.job_text_cache import JobTextCache
from lavad.hosts.peek_service import PeekService
from lavad.local_time import local_time
from lavad.queries.frame.terminal import shown
from lavad.replica.replicas import QueryProcess
from lavad.requests import Decide
from lavad.rpc.store_growth import StoreGrowth
from lavad.rpc.submissions import Submissions
from lavad.rpc.tokens import Tokens
from lavad.rpc.under_way import CHANGE, LARGE, QUERY, UnderWay
from lavad.rpc.waiting import Waiting
from lavad.services.changes import Changes
from lavad.services.lookups import Lookups
from lavad.services.perfmon import LONGEST, Perfmon
from lavad.services.reconfiguration import Reconfiguration
from lavad.services.waits import Waits
from lavad.store.errors import StoreAway, StoreRefused
from lavad.store.refusals import Away, for_users
from proto.answers import Answer
from proto.daemon.callers import LATER
from proto.version import PROTOCOL, why_not_protocol

_decoder: msgspec.json.Decoder[asks.Ask] = msgspec.json.Decoder(asks.any_ask())
_MOST_BYTES = {str(kind.__struct_config__.tag): kind.most_bytes for kind in asks.Ask.__subclasses__()}
_encode = msgspec.json.Encoder().encode
MAX_USER = 256
"""Bytes of a user's name, which is a key of the store's indexes."""

_LIMIT = re.compile(r"Expected `(\w+)` of length <= (\d+)(?: - at `\$\.?(.*)`)?")
_WAITS = (asks.Wait, asks.Changes, asks.Attach, asks.Peek)
"""They wait for jobs, not for the master."""
_ADD_NOTHING = (asks.Query, asks.Judge, ListTokens, *_WAITS)
"""To the store."""

load_decisions()
log = logging.getLogger(__name__)


class _Kind(msgspec.Struct):
    """What kind of ask a frame is, without decoding the rest."""

    ask: str
    v: int = 1


_kind = msgspec.json.Decoder(_Kind)


def decoded(frame: bytes) -> asks.Ask:
    """The ask in a frame; raises Refused."""
    # without those that are a backslash themselves: a script may have these six characters in it
    if b"\\u0000" in frame and b"\\u0000" in frame.replace(b"\\\\", b""):
        raise Refused("Bad request: a NUL character")
    try:
        if len(frame) > bounds.LARGE and len(frame) > _MOST_BYTES.get(_kind.decode(frame).ask, bounds.LARGE):
            raise Refused("Bad request: the frame is too large")
        ask = _decoder.decode(frame)
        if why := why_not_protocol("the command", ask.v, "lavad"):
            raise Refused(f"Bad request: {why}")
        return ask
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(f"Bad request: {_explained(str(error))}{_newer(frame)}") from None


def _explained(error: str) -> str:
    """What is wrong with a request, in words that its sender knows."""
    found = _LIMIT.match(error)
    if found is None:
        return error
    kind, most, name = found.groups()
    return f"{name or 'frame'}: more than {most} values" if kind == "array" else f"{name or 'frame'} is too long (at most {most})"


def _newer(frame: bytes) -> str:
    """What is said besides of a request that does not read because it is of a newer command."""
    try:
        theirs = _kind.decode(frame).v
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    return f" (the command speaks protocol {theirs}, lavad {PROTOCOL}: upgrade lavad first)" if theirs > PROTOCOL else ""


class Dispatch:
    """Answers requests."""

    def __init__(
        self,
        engine: Engine,
        texts: JobTextCache,
        waits: Waits,
        queries: QueryProcess,
        outputs: PeekService,
        reconfiguration: Reconfiguration,
        secret: bytes,
        perfmon: Perfmon,
    ) -> None:
        self._engine = engine
        self._texts = texts
        self._queries = queries
        self._outputs = outputs
        self.lookups = Lookups(engine.cluster, outputs.reader, outputs.reads, engine.clock)
        self._reconfiguration = reconfiguration
        self._waiting = Waiting(engine, waits, outputs, secret)
        self._tokens = Tokens(secret)
        self._perfmon = perfmon
        self._under_way = UnderWay()
        self._growth = StoreGrowth(lambda: engine.cluster.conf.params.lava_user_store)
        self._submissions = Submissions(engine, texts, self.lookups, self._growth, outputs.probes)
        self.audit = reconfiguration.audit
        self.changes = Changes(engine.cluster)

    async def answer(self, frame: bytes, caller: Caller) -> AsyncIterator[bytes]:
        """The answer frames (JSON, without length) to one request frame."""
        large = [LARGE] if len(frame) > bounds.LARGE else []
        ask: asks.Ask | None = None
        try:
            if len(caller.user.encode(errors="surrogatepass")) > MAX_USER:
                raise Refused("Bad request: the name of the user is too long")
            with self._under_way.let_in(caller.user, *large) as welcome:
                if not welcome:
                    yield LATER
                    return
                ask = decoded(frame)
                caller = self._bearer(ask, caller)
                if why := why_not_vouched(self._engine.cluster, ask, caller):
                    raise Refused(why)
                if self._has_to_wait(ask, caller):
                    yield LATER
                    return
                kinds = [] if isinstance(ask, _WAITS) else [QUERY if isinstance(ask, asks.Query) else CHANGE]
                with self._under_way.let_in(caller.user, *kinds) as room:
                    if not room:
                        yield LATER
                        return
                    async for piece in self._pieces(ask, caller):
                        yield piece
        except Away:
            yield LATER
        except Refused as refusal:
            self.audit.refused(ask, caller, refusal.text)
            yield _refusal(refusal)
        except StoreAway:
            yield LATER
        except StoreRefused as error:
            log.warning("an ask could not be answered: %s", error)
            why = for_users(error)
            self.audit.refused(ask, caller, why)
            yield _refusal(Refused(why))
        except Exception as error:
            # without an answer the command would ask again for ever
            log.exception("an ask could not be answered")
            self.audit.refused(ask, caller, f"internal error: {type(error).__name__}")
            yield _refusal(Refused(f"lavad: internal error: {type(error).__name__}; its log says more"))

    def _bearer(self, ask: asks.Ask, caller: Caller) -> Caller:
        """Who asks; looked at for each piece of an answer, as a stream may last longer than its token. Raises Refused."""
        return self._tokens.bearer(ask, caller, self._engine.cluster, self._engine.clock())

    def _has_to_wait(self, ask: asks.Ask, caller: Caller) -> bool:
        """Whether the caller's asks have added too much to the store."""
        if isinstance(ask, _ADD_NOTHING):
            return False
        return self._growth.has_to_wait(self._engine.cluster.conf, caller, self._engine.clock(), isinstance(ask, asks.Kill))

    async def _ask(self, decide: Decide, ask: asks.Ask, caller: Caller) -> Answer:
        return await self._engine.ask(self._growth.counted(decide, caller.user), ask.uuid, caller.user)

    async def _pieces(self, ask: asks.Ask, caller: Caller) -> AsyncIterator[bytes]:
        self._perfmon.asked(ask)
        if isinstance(ask, asks.Query):
            async for piece in self._queries.answer(ask, caller):
                self._bearer(ask, caller)
                yield _encode(piece)
        elif isinstance(ask, asks.Peek):
            shown = False
            async for piece in self._outputs.answer(ask, caller):
                if not shown:
                    self.audit.answered(ask, caller, {})
                shown = True
                self._bearer(ask, caller)
                yield _encode(piece)
        else:
            answer = await self._change(ask, caller)
            self.audit.answered(ask, caller, answer)
            yield _encode({"ok": answer})

    async def _change(self, ask: asks.Ask, caller: Caller) -> Answer:
        if ask.again and ask.uuid:
            known = await self._engine.find_answer(ask.uuid, caller.user)
            if known is not None:
                return known
        answer: Answer = await self._answer(ask, caller)
        return answer

    @singledispatchmethod
    async def _answer(self, ask: asks.Ask, caller: Caller) -> Answer:
        """The answer to one request; kinds without a method here need only their registered decision."""
        return await self._decide(ask, caller)

    async def _decide(self, ask: asks.Ask, caller: Caller) -> Answer:
        decide = find_decision(type(ask))
        if decide is None:
            raise Refused(f"{type(ask).__name__.lower()}: not supported by lava")
        return await self._ask(lambda cluster, now: decide(cluster, ask, caller, now, local_time(now)), ask, caller)

    @_answer.register
    async def _perfmon_control(self, ask: asks.Perfmon, caller: Caller) -> Answer:
        if ask.what == "view":
            return {"text": self._perfmon.view(ask.json)}
        if why := why_not_admin(self._engine.cluster.conf, caller):
            raise Refused(why)
        if not 0 <= ask.period <= LONGEST:
            raise Refused(f"{ask.period}: a sampling period is at most {LONGEST} seconds")
        if ask.what == "start":
            return {"text": self._perfmon.start(ask.period)}
        if ask.what == "setperiod":
            return {"text": self._perfmon.set_period(max(ask.period, 1))}
        if ask.what == "stop":
            return {"text": self._perfmon.stop()}
        raise Refused(f"perfmon {ask.what[:40]}: Invalid command")

    @_answer.register
    async def _token(self, ask: Token, caller: Caller) -> Answer:
        who, token = self._tokens.wanted(ask, caller, self._engine.cluster.conf, self._engine.clock())
        decide = self._growth.counted(lambda cluster, now: tokens.make(cluster, who.user, token, now), who.user)
        # without the ask's uuid: what is answered twice would be kept
        await self._engine.ask(decide, user=caller.user)
        return self._tokens.signed(who, token)

    @_answer.register
    async def _list_tokens(self, ask: ListTokens, caller: Caller) -> Answer:
        now = self._engine.clock()
        this = self._tokens.id_of(ask.token, now) if ask.token else ""
        return {"tokens": tokens.shown(self._engine.cluster, ask, caller, now, self._tokens.used, this)}

    @_answer.register
    async def _revoke(self, ask: RevokeTokens, caller: Caller) -> Answer:
        if ask.this and ask.token:
            ask = replace(ask, ids=[*ask.ids, self._tokens.id_of(ask.token, self._engine.clock())])
        return await self._decide(ask, caller)

    @_answer.register
    async def _submit(self, ask: asks.Submit, caller: Caller) -> Answer:
        return await self._submissions.submit(ask, caller)

    @_answer.register
    async def _bulk(self, ask: asks.Bulk, caller: Caller) -> Answer:
        return await self._submissions.bulk(ask, caller)

    @_answer.register
    async def _modify(self, ask: asks.Modify, caller: Caller) -> Answer:
        target = get_target(self._engine.cluster, ask.job, caller)
        job = target.array or job_of(target.keys[0])
        texts = await self._texts.texts([job])

        async def decided(known: StoredJobs) -> Answer:
            def decide(cluster: Cluster, now: float) -> Decided:
                return modify(cluster, ask, texts[job], caller, now, local_time(now), known)

            return await self._ask(decide, ask, caller)

        return await self.lookups.tried(decided, caller)

    @_answer.register
    async def _requeue(self, ask: asks.Requeue, caller: Caller) -> Answer:
        if {"DONE", "EXIT"}.isdisjoint(ask.states):
            return await self._decide(ask, caller)
        return await self.lookups.held(self._requeue_finished(ask, caller))

    async def _requeue_finished(self, ask: asks.Requeue, caller: Caller) -> Answer:
        finished = await self.lookups.finished(ask.jobs, caller, ask.states)

        def decide(cluster: Cluster, now: float) -> Decided:
            return revive.requeue_all(cluster, ask, finished, caller, now)

        return await self._ask(decide, ask, caller)

    @_answer.register
    async def _force(self, ask: asks.Run, caller: Caller) -> Answer:
        uid = secrets.token_hex(8)
        return await self._ask(lambda cluster, now: force.force(cluster, ask, caller, now, uid), ask, caller)

    @_answer.register
    async def _judge(self, ask: asks.Judge, caller: Caller) -> Answer:
        async def decided(known: StoredJobs) -> Answer:
            def decide(cluster: Cluster, now: float) -> Decided:
                return judge(cluster, ask, caller, local_of(local_time(now)), known)

            return await self._engine.ask(decide, user=caller.user)

        return await self.lookups.tried(decided, caller)

    @_answer.register
    async def _attach(self, ask: asks.Attach, caller: Caller) -> Answer:
        return await self._waiting.attach(ask, caller)

    @_answer.register
    async def _wait(self, ask: asks.Wait, caller: Caller) -> Answer:
        return await self._waiting.wait(ask, caller)

    @_answer.register
    async def _changes(self, ask: asks.Changes, caller: Caller) -> Answer:
        tell = self.changes.every if ask.every else self.changes.since
        return await tell(caller.user, ask.after, ask.wait)

    @_answer.register
    async def _reconfigure(self, ask: asks.Reconfig, caller: Caller) -> Answer:
        return {"text": await self._reconfiguration.ask(caller)}


def _refusal(refusal: Refused) -> bytes:
    # what a caller sent may stand in it
    answer: dict[str, str | int] = {"refused": shown(refusal.text), "exit": refusal.exit_code}
    return _encode(answer | {"retry": refusal.retry} if refusal.retry else answer)
