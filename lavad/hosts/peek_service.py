"""bpeek: output of a running job, or retained output of a finished one, read on its host as its owner."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from msgspec.structs import replace

from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.select import has_filter, matching, select
from lavad.core.job.job import Job
from lavad.core.job.run_time import has_started
from lavad.core.job.spec import Spec
from lavad.core.lang.asks import Caller, Peek, Refused
from lavad.core.lang.ids import index_of, job_of, key_of, show
from lavad.core.lang.job_names import ArrayError, parse_job_id
from lavad.core.site.rights import why_not_control
from lavad.hosts.folder_probes import FolderProbes
from lavad.hosts.peek_requests import PATIENCE, NoOutput, PeekRequests
from lavad.hosts.sessions import Session, Sessions
from lavad.replica.replicas import ALIVE
from lavad.store.read import Reader
from lavad.wire import records
from proto.answers import Piece
from proto.daemon.workers import Workers

FOLLOW = 0.3
"""Seconds between two reads of output with bpeek -f."""
STARTS = 3.0
"""Seconds for which the start of a job that has its hosts is waited for; longer takes only what runs before it."""
SOON = 0.05
"""Seconds between two looks at whether it has started."""
QUIET = ALIVE - PATIENCE
"""Seconds without output after which an empty piece says that the job writes nothing; its host may then be slow to answer."""


class PeekService:
    """Answers bpeek."""

    def __init__(self, cluster: Cluster, sessions: Sessions, peeks: PeekRequests, reader: Reader, reads: Workers) -> None:
        self._cluster = cluster
        self._sessions = sessions
        self._peeks = peeks
        self.probes = FolderProbes(cluster, sessions, peeks)
        self._reader = self.reader = reader
        self.reads = reads

    async def find_finished(self, key: int, user: str) -> Job | None:
        """The last record of a job that is not live."""
        return await self.reads.run(self._reader.finished_job, key, who=user)

    async def find_worst_element(self, array: int, user: str) -> Job | None:
        """Of a finished array: the first element that failed, else its first element."""
        return await self.reads.run(self._reader.worst_element, array, who=user)

    async def spec_of(self, ended: Job, user: str) -> Spec:
        """Of a job that is not live."""
        specs = await self.reads.run(self._reader.specs, [ended.spec], who=user)
        return specs[ended.spec]

    async def answer(self, ask: Peek, caller: Caller) -> AsyncIterator[Piece]:
        """Pieces of output, then the exit status."""
        try:
            job, spec = await self._find(ask, caller)
            files = [False]
            if not ask.follow and await self._has_own_errors(job, caller):
                files.append(True)
            for stderr in files:
                async for text in self._pieces(job, spec, ask, stderr):
                    yield {"out": text.decode("utf-8", "replace")}
        except NoOutput as why:
            raise Refused(str(why)) from None
        if not ask.follow and not ask.last:
            # after the output, as with LSF where stdout is not a terminal
            yield {"out": "".join(f"<< output from {'stderr' if stderr else 'stdout'} >>\n" for stderr in files)}
        yield {"exit": 0}

    async def _has_own_errors(self, job: Job, caller: Caller) -> bool:
        """Whether the standard error of a live job goes into a file of its own."""
        if job.outcome is not None:
            return False
        text = await self.reads.run(self._reader.text_of, job_of(job.key), who=caller.user)
        return text is not None and bool(text.error) and text.error != text.output

    async def _find(self, ask: Peek, caller: Caller) -> tuple[Job, Spec]:
        shown, key = self._key(ask, caller)
        job = await self._started(key)
        if job is not None:
            spec = self._cluster.specs.rows[job.spec]
        else:
            ended = await self.find_finished(key, caller.user)
            if ended is None:
                raise Refused(await self._why_none(shown, key, caller))
            job, spec = ended, await self.spec_of(ended, caller.user)
        if why := why_not_control(self._cluster.conf, spec, caller):
            raise Refused(f"Job <{shown}>: {why}")
        started = has_started(job)
        if job.outcome is not None and not started:
            raise Refused(f"Job <{shown}> is not found")
        if not started:
            raise Refused(f"Job <{shown}> : Not yet started.")
        if spec.interactive:
            raise Refused(f"Job <{shown}> : Cannot bpeek an interactive job.")
        return job, spec

    async def _started(self, key: int) -> Job | None:
        """A live job, which has started if it is about to: listings show it as RUN from the moment on in which it has hosts."""
        clock = asyncio.get_running_loop().time
        until = clock() + STARTS
        while (job := self._cluster.find_job(key)) is not None:
            if has_started(job) or job.run is None or job.outcome is not None or clock() >= until:
                break
            await asyncio.sleep(SOON)
        return job

    async def _why_none(self, shown: str, key: int, caller: Caller) -> str:
        """Why there is no job or touched element of this key, live or finished."""
        job, index = job_of(key), index_of(key)
        array = self._cluster.find_array(key)
        if array is None and not index:
            array = await self.reads.run(self._reader.finished_array, job, who=caller.user)
        if array is not None and not index:
            return f"Job <{shown}> is an array: name one of its elements, as {job}[{array.indices.min()}]"
        return f"Job <{shown}> : Not yet started." if array and index in array.indices else f"Job <{shown}> is not found"

    def _key(self, ask: Peek, caller: Caller) -> tuple[str, int]:
        if ask.job:
            try:
                job, elements = parse_job_id(ask.job)
            except ArrayError as error:
                raise Refused(str(error)) from None
            return ask.job, key_of(job, elements.min() if elements else 0)
        cluster, wanted = self._cluster, ask.select
        found = select(cluster, wanted, caller) if has_filter(wanted) else list(matching(cluster, wanted, caller))
        for target in reversed(found):
            if isinstance(target, int):
                return show(target), target
            if target.keys:
                return target.shown, target.keys[-1]
        raise Refused(f"Job <{ask.select.name}> is not found" if ask.select.name else "No unfinished job found")

    async def _pieces(self, job: Job, spec: Spec, ask: Peek, stderr: bool) -> AsyncIterator[bytes]:
        assert job.run is not None
        end = job.run.verdict
        path = end.output if end is not None and job.outcome is not None else ""
        question = records.Peek(key=job.key, uid=job.run.uid, user=spec.user, path=path, stderr=stderr)
        if job.outcome is not None and not path:
            raise Refused(f"Job <{ask.job}> is not found")
        clock, last = asyncio.get_running_loop().time, ask.last
        said = clock()
        while True:
            live = self._cluster.find_job(job.key)
            over = live is None or live.run is None or live.run.uid != job.run.uid
            try:
                async for piece, offset in self._peeks.pieces(self._session(job), question, last):
                    question, last = replace(question, offset=offset), 0
                    yield piece
                    said = clock()
            except NoOutput:
                if over and ask.follow and not path:
                    raise NoOutput("The job is over: what it wrote last is in its output file") from None
                raise
            if over or not ask.follow:
                return
            if clock() - said >= QUIET:
                yield b""
                said = clock()
            await asyncio.sleep(FOLLOW)

    def _session(self, job: Job) -> Session:
        assert job.run is not None
        host = job.run.parts[0].host
        session = self._sessions.rows.get(host)
        if session is None:
            raise NoOutput(f"host {host} cannot be reached")
        return session
