"""Submissions, one by one or many in one ask: their environments, what their decisions need from the store, and their commits."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import cast, overload

import msgspec
from msgspec.structs import replace

from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.base.resolve import NeedsLookup, StoredJobs
from lavad.core.decide.control.revive import find_restart_source
from lavad.core.decide.submit import submit
from lavad.core.decide.submit.alike import Alike, Lately, Run, runs_with
from lavad.core.decide.submit.restart import RestartSource
from lavad.core.lang import asks
from lavad.core.lang.asks import Caller, Faulty, OptionValue, Refused
from lavad.core.lang.bulk_asks import BulkJob
from lavad.core.lang.ids import key_of, show
from lavad.core.lang.secrets import without_secrets
from lavad.engine import Engine
from lavad.hosts.folder_probes import FolderProbes
from lavad.hosts.job_text_cache import JobTextCache
from lavad.local_time import local_time
from lavad.requests import Decide
from lavad.rpc.store_growth import StoreGrowth
from lavad.services.lookups import Lookups
from lavad.store.refusals import Away
from proto.answers import Answer, Result
from proto.options import ESUBS

MAX_ENVIRONMENT = 8 << 20
AT_ONCE = 2_000
"""Jobs of a request that one turn of the engine may take, if it has the time."""
LONGEST_RUN, LARGEST_RUN = 64, 64 << 10
"""Jobs that one decision is about, and characters of their commands and scripts; between two a turn's time is looked at."""
ENVIRONMENTS_AT_ONCE = 8 << 20
"""Bytes of different environments beyond which no more are made in one go: others wait as long as that takes."""
LONGEST_ESUBS = 4_000
_GROWN = "As much as LAVA_USER_STORE allows was added to the master's store"
_packer = msgspec.msgpack.Encoder()
Environment = tuple[str, bytes]
"""Its hash, by which it is kept once, and its msgpack."""


class Submissions:
    """Makes jobs of asks."""

    def __init__(self, engine: Engine, texts: JobTextCache, lookups: Lookups, growth: StoreGrowth, probes: FolderProbes) -> None:
        self._probes = probes
        self._engine = engine
        self._texts = texts
        self._lookups = lookups
        self._growth = growth
        self._lately = Lately()

    async def submit(self, ask: asks.Submit, caller: Caller) -> Answer:
        """One job or array, or whether it would be taken (``check``); raises Refused."""
        esub = _esubs(ask.env)
        env = self._kept(ask.env, ask.options.get("secret"))
        ask = replace(ask, env={}, env_hash=env[0], esub=esub)
        await self._probes.look_for((ask,), caller.user, caller.host)
        if ask.check:
            return await self._check(ask, caller)
        if ask.restart_of:
            return await self._lookups.held(self._restart(ask, caller, env))
        return await self._submit(ask, caller, env)

    async def _check(self, ask: asks.Submit, caller: Caller) -> Answer:
        seen = self._probes.seen(caller.user) if ask.checkpoint_folder else None

        async def decided(known: StoredJobs) -> Answer:
            def decide(cluster: Cluster, now: float) -> Decided:
                given = submit.Given(ask, caller, now, local_time(now), known, None, None, seen)
                made = submit.submit(cluster, given).answer
                return Decided(answer={"queue": made["queue"], "default": made["default"], "notices": made["notices"]})

            return await self._engine.ask(decide, user=caller.user)

        return await self._lookups.tried(decided, caller)

    async def _restart(self, ask: asks.Submit, caller: Caller, env: Environment) -> Answer:
        return await self._submit(ask, caller, env, await self._restart_source(ask, caller))

    async def _submit(self, ask: asks.Submit, caller: Caller, env: Environment, source: RestartSource | None = None) -> Answer:
        async def decided(known: StoredJobs) -> Answer:
            decide = partial(self._decided, caller, known, source, None, ask, env)
            return await self._engine.ask(decide, ask.uuid, caller.user)

        return await self._lookups.tried(decided, caller)

    async def _restart_source(self, ask: asks.Submit, caller: Caller) -> RestartSource:
        finished = await self._lookups.finished(asks.Select(ids=[show(key_of(ask.restart_of, ask.restart_index))]), caller)
        texts = await self._texts.texts([ask.restart_of])
        return find_restart_source(self._engine.cluster, ask, caller, finished, texts.get(ask.restart_of))

    async def bulk(self, ask: asks.Bulk, caller: Caller) -> Answer:
        """All jobs of a request in order, as many in a commit as a turn of the engine has time for; each refused alone.

        An answer is stored with the jobs that it tells of, under the place of its first row: behind what the one before tells of.
        So a request that is sent again finds all that was made, wherever time and refusals have ended a commit.
        """
        rows: list[Result] = []
        stored = 0
        drafts = _Drafts(self._drafts(ask))
        await self._probes.look_for(ask.jobs, caller.user, caller.host)
        most = AT_ONCE
        while len(rows) < len(ask.jobs):
            try:
                rows[stored:] = await self._some(ask, caller, stored, rows[stored:], drafts.take(len(rows), most))
                if any(row["ok"] for row in rows[stored:]):
                    stored = len(rows)
                most = min(AT_ONCE, most * 4)
            except (Faulty, NeedsLookup) as refusal:
                if most == 1 or isinstance(refusal, NeedsLookup):
                    rows.append(_refusal(refusal))
                else:
                    # one of them is at fault: the fewer they are, the fewer others have to be tried again
                    most = max(1, most // 4)
            except Away:
                raise  # they are all asked again; those that are stored have their answers
            except Refused as refusal:
                # the store takes nothing now, or nothing more of this user
                rows += [_refusal(refusal)] * (len(ask.jobs) - len(rows))
        return {"results": rows}

    def _check_growth(self, caller: Caller) -> None:
        """Raises Refused where what was made of a request has added too much to the store; whether it may begin is known."""
        conf = self._engine.cluster.conf
        if self._growth.has_to_wait(conf, caller, self._engine.clock()):
            raise Refused(_GROWN, retry=conf.params.sub_try_interval)

    async def _some(
        self, ask: asks.Bulk, caller: Caller, first: int, before: Sequence[Result], drafts: Sequence[_Draft]
    ) -> list[Result]:
        """What became of the jobs from the ``first`` on, of as many as one commit has taken.

        ``before``: what is known of the first ones already, and is in no stored answer.
        """
        uuid = f"{ask.uuid}.{first}" if ask.uuid else ""
        if ask.again and uuid:
            stored = await self._engine.find_answer(uuid, caller.user)
            if stored is not None:
                return stored["results"]
        if first or before:
            self._check_growth(caller)

        def joined(answers: Sequence[Answer]) -> Answer:
            return {"results": [*before, *(row for answer in answers for row in answer["results"])]}

        async def decided(known: StoredJobs) -> Answer:
            decides = _Decisions(drafts, partial(self._decided, caller, known, None), partial(self._run, caller, known))
            return (await self._engine.hand_in(decides, uuid, caller.user, join=joined))[0]

        return (await self._lookups.tried(decided, caller))["results"]

    def _drafts(self, ask: asks.Bulk) -> Iterator[_Draft]:
        envs: dict[object, Environment] = {}
        for job in ask.jobs:
            options = {**ask.options, **job.options} if job.options else ask.options
            secret = options.get("secret")
            try:
                if job.env:
                    changed = _changed(ask.env, job.env)
                    esub, env = _esubs(changed), self._kept(changed, secret)
                else:
                    esub = _esubs(ask.env)
                    known = envs.get(secret if isinstance(secret, str) else None)
                    env = known or envs.setdefault(secret if isinstance(secret, str) else None, self._kept(ask.env, secret))
            except Refused as refusal:
                yield refusal
                continue
            yield replace(_submission(ask, job, options, env[0]), esub=esub), env

    def _kept(self, env: Mapping[str, str], secret: OptionValue | None) -> Environment:
        """The environment as it is stored; raises Refused."""
        passed = without_secrets(env, secret)
        if ESUBS in passed:  # it is none of the job's
            passed = {name: value for name, value in passed.items() if name != ESUBS}
        for variable in passed:
            if not variable or "=" in variable:
                raise Refused(f"env: {variable[:64]!r} is no name of a variable")
        packed = _packer.encode(passed)
        if len(packed) > MAX_ENVIRONMENT:
            raise Refused("The environment is too large")
        name = hashlib.sha256(packed).hexdigest()
        self._texts.seen_env(name, passed)
        return name, packed

    def _run(
        self, caller: Caller, known: StoredJobs, alike: Alike, drafts: Sequence[Made], cluster: Cluster, now: float
    ) -> Decided:
        """Drafts that follow each other, which differ in little; each is refused alone."""
        run, rows, env = Run(), list[Result](), drafts[0][1]
        for ask, _ in drafts:
            try:
                given = submit.Given(ask, caller, now, local_time(now), known, alike=alike)
                rows.append(_accepted(submit.submit_in(run, cluster, given)))
            except Refused as refusal:
                rows.append(_refusal(refusal))
        decided = Decided(events=run.events, answer={"results": rows}, texts=run.texts, envs=[env] if run.jobs else [])
        if run.jobs:
            self._growth.count(decided, caller.user, now, env, cluster.specs.rows)
        return decided

    def _decided(
        self,
        caller: Caller,
        known: StoredJobs,
        source: RestartSource | None,
        alike: Alike | None,
        ask: asks.Submit,
        env: Environment,
        cluster: Cluster,
        now: float,
    ) -> Decided:
        seen = self._probes.seen(caller.user) if ask.checkpoint_folder else None
        if alike is None and seen is None:
            alike = self._lately.find(cluster, now)
        decided = submit.submit(cluster, submit.Given(ask, caller, now, local_time(now), known, source, alike, seen))
        decided.envs = [env]
        self._growth.count(decided, caller.user, now, env, cluster.specs.rows)
        return decided


Made = tuple[asks.Submit, Environment]
_Draft = Made | Refused
"""A job of a request, with its environment; or why it is refused before it is decided."""
Decision = Callable[[Alike, asks.Submit, Environment, Cluster, float], Decided]
RunDecision = Callable[[Alike, Sequence[Made], Cluster, float], Decided]


class _Drafts:
    """Those of a request; made when they are needed, and kept for another try."""

    def __init__(self, drafts: Iterator[_Draft]) -> None:
        self._source = drafts
        self._made: list[_Draft] = []
        self._first = 0
        """The place of the first of those that are kept."""

    def take(self, first: int, most: int) -> list[_Draft]:
        """``most`` of them from ``first`` on, fewer at the end and where their environments are large; none before it is kept."""
        passed = first - self._first - len(self._made)
        del self._made[: first - self._first]
        self._first = first
        for _ in islice(self._source, max(0, passed)):
            """Told of by a stored answer."""
        envs = {id(draft[1]): len(draft[1][1]) for draft in self._made if not isinstance(draft, Refused)}
        size = sum(envs.values())
        while len(self._made) < most and size < ENVIRONMENTS_AT_ONCE:
            draft = next(self._source, None)
            if draft is None:
                break
            self._made.append(draft)
            if not isinstance(draft, Refused) and id(draft[1]) not in envs:
                envs[id(draft[1])] = len(draft[1][1])
                size += len(draft[1][1])
        return self._made[:most]


class _Decisions(Sequence[Decide]):
    """Those about drafts, answered also where they are refused; made when their turn comes, which most are not at first.

    Decisions of one iteration are made at one time, and those about drafts that differ in little are one.
    """

    def __init__(self, drafts: Sequence[_Draft], decided: Decision, run: RunDecision) -> None:
        self._drafts = drafts
        self._decided = decided
        self._run = run

    def __len__(self) -> int:
        return len(self._drafts)

    @overload
    def __getitem__(self, at: int) -> Decide: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Decide]: ...
    def __getitem__(self, at: int | slice) -> Decide | Sequence[Decide]:
        if isinstance(at, slice):
            return _Decisions(self._drafts[at], self._decided, self._run)
        return partial(self._about, self._drafts[at], {})

    def __iter__(self) -> Iterator[Decide]:
        alike: Alike = {}
        begin = 0
        while begin < len(self._drafts):
            end = _end_of_run(self._drafts, begin)
            if end - begin > 1:
                yield partial(self._run, alike, cast("Sequence[Made]", self._drafts[begin:end]))
            else:
                yield partial(self._about, self._drafts[begin], alike)
            begin = end

    def _about(self, draft: _Draft, alike: Alike, cluster: Cluster, now: float) -> Decided:
        try:
            if isinstance(draft, Refused):
                raise draft
            decided = self._decided(alike, *draft, cluster, now)
        except NeedsLookup:
            raise
        except Refused as refusal:
            return Decided(answer={"results": [_refusal(refusal)]})
        decided.answer = {"results": [_accepted(decided.answer)]}
        return decided


def _end_of_run(drafts: Sequence[_Draft], begin: int) -> int:
    """Where drafts end that are decided together with the one at ``begin``."""
    first, size = drafts[begin], 0
    for at in range(begin, min(begin + LONGEST_RUN, len(drafts))):
        draft = drafts[at]
        if isinstance(first, Refused) or isinstance(draft, Refused) or draft[1] is not first[1]:
            return max(at, begin + 1)
        size += len(draft[0].command) + len(draft[0].script)
        if size > LARGEST_RUN or not runs_with(first[0], draft[0]):
            return max(at, begin + 1)
    return min(begin + LONGEST_RUN, len(drafts))


def _submission(ask: asks.Bulk, job: BulkJob, options: dict[str, OptionValue], env: str) -> asks.Submit:
    return asks.Submit(
        command=job.command,
        script=job.script,
        cwd=job.cwd or ask.cwd,
        home=ask.home,
        umask=ask.umask,
        shell=ask.shell,
        options=options,
        env_hash=env,
        checkpoint_folder=job.checkpoint_folder,
        checkpoint_mount=job.checkpoint_mount,
        roles=job.roles,
        policy=job.policy,
    )


def _esubs(env: Mapping[str, str]) -> str:
    return " ".join(env.get(ESUBS, "").split())[:LONGEST_ESUBS]


def _changed(env: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in {**env, **changes}.items() if value is not None}


def _accepted(answer: Answer) -> Result:
    row: Result = {"ok": True, "job": int(answer["job"]), "queue": answer["queue"], "default": answer["default"]}
    if answer["notices"]:
        row["notices"] = answer["notices"]
    return row


def _refusal(refusal: Refused) -> Result:
    row: Result = {"ok": False, "why": refusal.text, "exit": refusal.exit_code}
    if refusal.retry:
        row["retry"] = refusal.retry
    return row
