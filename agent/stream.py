"""The agent's stream to the master: the master is found among its addresses, and served for as long as the stream lasts.

Rule: what the master says goes into the inbox; one writer sends reports, heartbeats and what was peeked at.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial

from agent.launch.site import Site
from agent.master.channel import NotMaster, stamp
from agent.master.link import Session, open_session
from agent.master.pacing import Pacing, pause_after
from agent.master.relay import Relay
from agent.monitor.elim import Elims
from agent.monitor.health import Health
from agent.parts.control import now
from agent.parts.host_monitor import HostMonitor
from agent.parts.runner import Runner
from proto import agent_pb2 as pb

log = logging.getLogger("lava-agent")

SILENCE_LIMIT = 15.0
"""Seconds without a message of the master after which the stream is closed (at least five heartbeats)."""
SAMPLE_PAUSE = 5.0
CERTIFICATE_PAUSE = 5.0


Inbox = asyncio.Queue[Callable[[], None]]


class Measures:
    """What a heartbeat tells of the host."""

    def __init__(self, monitor: HostMonitor, elims: Elims, health: Health) -> None:
        self.monitor = monitor
        self.elims = elims
        self.health = health

    async def load(self) -> dict[str, float]:
        """Load indices, the site's too."""
        return await self.monitor.load() | self.elims.values()

    def heartbeat(self, load: dict[str, float]) -> pb.Heartbeat:
        """One, with the usage that was not sent yet."""
        monitor, health = self.monitor, self.health.line()
        states, error = monitor.gpus.states(), monitor.gpus.error()
        return pb.Heartbeat(sent=now(), load=load, usage=monitor.unsent(), health=health, gpus=states, gpu_error=error)


class Stream:
    """``masters``: where lavad may be (HOST:PORT)."""

    def __init__(self, site: Site, masters: list[str], runner: Runner, relay: Relay, measures: Measures, inbox: Inbox) -> None:
        self._site = site
        self._masters = masters
        self._runner = runner
        self._relay = relay
        self._measures = measures
        self._inbox = inbox
        self.sample_pause = SAMPLE_PAUSE
        """Seconds between two samples, as the master wants them."""
        self.starter_there = asyncio.Event()
        self.starter_changed = asyncio.Event()
        """Its protocol is another than the one that the master was told."""
        self.gpus_changed = asyncio.Event()
        """The GPUs, or their driver, are others than those that the master was told."""
        self.told_gpus: tuple[tuple[pb.Gpu, ...], str] = (), ""
        self.pacing = Pacing()
        self._heartbeats: list[pb.Heartbeat] = []
        self._last_heard = 0.0
        self._last_logged: dict[str, str] = {}
        """Master to what was said of it last: while one is away and another stands by, each says the same for ever."""

    def beat_early(self) -> None:
        """A new sample is sent at once; the load comes with the next heartbeat."""
        if self._relay.session is not None:
            self._heartbeats.append(self._measures.heartbeat({}))
            self.pacing.want()

    async def run(self) -> None:
        """Find the master among the addresses and serve it, forever."""
        pause, at = 0.0, 0
        while True:
            await self.starter_there.wait()
            session, lasted = None, 0.0
            for _ in self._masters:
                session = await self._try(self._masters[at % len(self._masters)])
                if session is not None:
                    break
                at += 1
            if session is not None:
                began = now()
                await self._run_session(session)
                lasted = now() - began
            pause = pause_after(pause, lasted)
            await asyncio.sleep(pause)

    async def _try(self, target: str) -> Session | None:
        facts = await self._measures.monitor.facts()
        await finish_turn(self._inbox)
        self.starter_changed.clear()
        self.gpus_changed.clear()
        self.told_gpus = tuple(facts.gpus), facts.gpu_driver
        greeted = now()
        try:
            session = await open_session(target, self._site, self._runner.hello(facts))
        except NotMaster as e:
            self.say_of(target, f"no master at {target}: {e}")
            return None
        if why := self._runner.welcomed(session.welcome, greeted):
            self.say_of(target, f"the master at {target} is not obeyed: {why}")
            await session.close()
            return None
        self._inbox.put_nowait(nothing)
        welcome = session.welcome
        self.say_of(target, f"obeys the master at {target}: epoch {welcome.epoch}, store {welcome.incarnation}")
        return session

    def say_of(self, target: str, text: str) -> None:
        """A line of the log about a master, unless it is what was said of that one last."""
        if text != self._last_logged.get(target):
            log.info("%s", text)
            self._last_logged[target] = text

    async def _run_session(self, session: Session) -> None:
        welcome = session.welcome
        self.sample_pause = welcome.sample or SAMPLE_PAUSE
        self._last_heard = now()
        self._heartbeats.clear()
        self._relay.session = session
        self.pacing.want()
        pause = welcome.heartbeat or 5.0
        limit = max(SILENCE_LIMIT, 5 * pause)
        work = [
            self._receive(session),
            self._send(session),
            self._beat(pause),
            self._watch_for_silence(limit),
            self._watch_certificate(),
        ]
        tasks = [asyncio.create_task(one) for one in work]
        tasks += [asyncio.create_task(until(event)) for event in (self.starter_changed, self.gpus_changed)]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            self._relay.session = None
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await session.close()
        self.say_of(session.target, f"the stream to the master at {session.target} has ended")

    async def _receive(self, session: Session) -> None:
        async for message in session.messages():
            self._last_heard = now()
            self._inbox.put_nowait(partial(self._runner.from_master, message))

    async def _send(self, session: Session) -> None:
        """One writer for the stream; the reports that wait go together."""
        runner = self._runner
        while True:
            await self.pacing.wait()
            messages = [pb.FromAgent(heartbeat=beat) for beat in self._heartbeats]
            self._heartbeats.clear()
            while not runner.outbox.empty:
                message = pb.FromAgent()
                message.reports.reports.extend(runner.outbox.take())  # a message that is given to another one is copied once more
                messages.append(message)
            messages += [pb.FromAgent(peek=data) for data in runner.peeks.answers]
            runner.peeks.answers.clear()
            if (held := runner.holding.take()) is not None:
                messages.append(pb.FromAgent(copies=held))
            if (folders := runner.folders.take(time.time())) is not None:
                messages.append(pb.FromAgent(work_folders=folders))
            for message in messages:
                if not await session.send(message):
                    return

    async def _beat(self, pause: float) -> None:
        while True:
            load = await self._measures.load()
            if not self._heartbeats:
                self._heartbeats.append(self._measures.heartbeat(load))
                self.pacing.want()
            await asyncio.sleep(pause)

    async def _watch_certificate(self) -> None:
        """Return when the certificate was replaced: the agent connects again with it; jobs do not notice."""
        former = stamp(self._site)
        while True:
            await asyncio.sleep(CERTIFICATE_PAUSE)
            if (found := stamp(self._site)) and found != former:
                break
        log.info("the certificate was replaced: the stream is made anew")

    async def _watch_for_silence(self, seconds: float) -> None:
        left = seconds
        while left > 0:
            await asyncio.sleep(left)
            left = self._last_heard + seconds - now()
        log.warning("the master has said nothing for %.0f s", seconds)


async def finish_turn(inbox: Inbox) -> None:
    """Wait until everything in the inbox was handled, so that Hello has what the starter reported."""
    over = asyncio.Event()
    inbox.put_nowait(over.set)
    await over.wait()


async def until(event: asyncio.Event) -> None:
    """Wait for it."""
    await event.wait()


def nothing() -> None:
    """Into the inbox: a turn without news."""
