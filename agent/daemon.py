"""The agent's loops: turns of the runner, the starter, samples, GPUs, checkpoint folders and kept output.

Rule: only ``_turns`` changes the runner's state; every other loop puts what it received into the inbox.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from functools import partial

from agent.checkpoint import criu
from agent.launch.accounts import Accounts
from agent.launch.site import Site
from agent.master.relay import Relay
from agent.monitor.elim import Elims, asked_of
from agent.monitor.health import GpuHealth, Health
from agent.monitor.room import Room
from agent.parts import output_retention
from agent.parts.control import now
from agent.parts.host_monitor import HostMonitor
from agent.parts.output_limits import OutputLimits
from agent.parts.runner import Runner
from agent.parts.spool import Spool
from agent.starter.protocol.reports import Hello
from agent.starter.system.notify import Notify
from agent.starter_client import starterlink
from agent.starter_client.outgoing import Outgoing
from agent.stream import Inbox, Measures, Stream, finish_turn, nothing, until
from config.values.local_resources import NONE, LocalResources, read_local
from proto.daemon.large_pages import gather_soon
from proto.daemon.workers import Workers

log = logging.getLogger("lava-agent")

NEW_PAUSE = 1.0
CLEAN_PAUSE = 3600.0
DAY = 86400.0
CHECKPOINT_PAUSE = 0.5
OUTPUT_PAUSE = 1.0


def _local(site: Site) -> LocalResources:
    """What the site says of this host itself; what cannot be read is told and left out."""
    try:
        return read_local(site.conf.get("LSF_LOCAL_RESOURCES", ""))
    except ValueError as error:
        log.error("LSF_LOCAL_RESOURCES of lsf.conf: %s", error)
        return NONE


class Daemon:
    """One agent. ``masters``: where lavad may be (HOST:PORT); ``slots``: cores to report, 0: those there.

    ``starter_log`` is that of a starter which the agent starts ("": none); None where it starts none, but waits for it.
    """

    def __init__(self, site: Site, masters: list[str], slots: int, starter_log: str | None) -> None:
        self._site = site
        self._starter_log = starter_log
        self._gpu_health = GpuHealth(site.settings, site.root)
        folder = os.path.join(site.spool, "agent")
        self._monitor = HostMonitor(site.address, slots, None, folder, self._gpu_health, lambda: criu.found(site), _local(site))
        self._elims = Elims(site.conf.get("LSF_SERVERDIR", ""), lambda: asked_of(site.conf_dir), site.root)
        accounts = self._accounts = Accounts()
        self._spool = Spool(os.path.join(site.spool, "agent"))
        self._runner = Runner(site, self._spool, self._monitor, accounts, Outgoing())
        self._relay = Relay(site)
        self._cleaning = Workers("old output")
        self._output_limits = OutputLimits(site)
        self._room = Room([site.spool, site.output_dir])
        self._health = Health(site.settings, site.root, (accounts.why_away, self._monitor.why_unwell, self._room.why))
        self._inbox: Inbox = asyncio.Queue()
        measures = Measures(self._monitor, self._elims, self._health)
        self._stream = Stream(site, masters, self._runner, self._relay, measures, self._inbox)
        self._timer: asyncio.TimerHandle | None = None
        self._stop = asyncio.Event()
        self._notify = Notify()

    async def serve(self) -> None:
        """Run until SIGTERM; jobs continue without the agent."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        runner = self._runner
        runner.starts.poke = runner.gpu_ends.poke = self._poke
        runner.adopt(self._spool.load())
        for user in [entry.made.user for entry in runner.table if entry.made is not None]:
            self._accounts.learn(user)
            self._relay.callers.learn(user.uid, user.name)
        await runner.holding.listen()
        await self._relay.listen()
        work = [self._turns(), self._starter(), self._stream.run(), self._samples(), self._checkpoints()]
        work += [self._clean(), self._limit_output(), self._gpus()]
        work += [runner.holding.run(), runner.holding.look(self._stream.pacing.want)]
        work.append(runner.folders.look(self._stream.pacing.want))
        work.append(self._elims.run())
        work += [self._health.run(), self._room.run(), self._judge_gpus()]
        work.append(self._beats())
        self._notify.tell("READY=1")
        gather_soon()
        tasks = [asyncio.create_task(one) for one in work]
        tasks.append(asyncio.create_task(until(self._stop)))
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        self._notify.tell("STOPPING=1")
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._relay.close()
        for task in done:
            task.result()

    # -- turns -------------------------------------------------------------------------------------------------------

    def _poke(self) -> None:
        self._inbox.put_nowait(nothing)

    async def _turns(self) -> None:
        inbox, runner = self._inbox, self._runner
        while True:
            (await inbox.get())()
            while not inbox.empty():
                inbox.get_nowait()()
            runner.flush()
            self._set_timer()
            if not runner.outbox.empty or runner.peeks.answers:
                self._stream.pacing.want(runner.chunks.go_on_alone)

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if (wait := self._runner.control.next_wake()) is not None:
            self._timer = asyncio.get_running_loop().call_later(wait, self._poke)

    async def _beats(self) -> None:
        """Tell the service manager that the turns go on."""
        while True:
            await finish_turn(self._inbox)
            if self._notify.every:
                self._notify.tell("WATCHDOG=1")
            await asyncio.sleep(self._notify.every or DAY)

    # -- starter -----------------------------------------------------------------------------------------------------

    async def _starter(self) -> None:
        """Keep a connection to the starter; start a new one when there is none."""
        site, runner = self._site, self._runner
        while True:
            try:
                link = await starterlink.connect(site.starter_socket)
            except OSError as e:
                log.warning("the starter does not answer (%s)", e.strerror)
                self._spawn()
                continue
            async for report in link.reports():
                if isinstance(report, Hello):
                    if report.protocol != runner.starter.protocol:
                        self._stream.starter_changed.set()
                    log.info("starter %d, %d parts", report.pid, len(report.parts))
                    self._inbox.put_nowait(partial(runner.starter_connected, link, report))
                    self._stream.starter_there.set()
                else:
                    self._inbox.put_nowait(partial(runner.from_starter, report))
            log.warning("the connection to the starter is lost")
            self._stream.starter_there.clear()
            self._inbox.put_nowait(runner.starter.down)
            link.close()
            if not starterlink.answers(site.starter_socket):
                self._spawn()

    def _spawn(self) -> None:
        """Start a starter, unless it is a service of its own, which ``connect`` waits for."""
        site = self._site
        if self._starter_log is None:
            return
        log.info("a starter is started")
        try:
            starterlink.spawn(site.host, starter_folder(site), site.starter_socket, site.run_dir, self._starter_log)
        except OSError as e:  # the host has no room for another process: this is tried again when nobody answers
            log.error("no starter can be started: %s", e.strerror)

    # -- this host ----------------------------------------------------------------------------------------------------

    async def _samples(self) -> None:
        """Sample usage periodically, and that of a new part within a second or two; that sample is sent at once."""
        runner = self._runner
        sampled = now()
        while True:
            await asyncio.sleep(min(NEW_PAUSE, self._stream.sample_pause))
            starterlink.reap()
            entries = list(runner.table)
            early = self._monitor.has_new(entries)
            if now() < sampled + self._stream.sample_pause and not early:
                continue
            sampled = now()
            usage = await self._monitor.usage(entries)
            if usage:
                self._inbox.put_nowait(partial(runner.sampled, usage))
            if early and usage:
                self._stream.beat_early()

    async def _gpus(self) -> None:
        """Look at the GPUs periodically; when there are others, reconnect: a greeting tells of them."""
        gpus, said, looked = self._monitor.gpus, "", 0.0
        while True:
            # how often, the master says when it is first heard of
            if (left := looked + self._stream.sample_pause - now()) > 0:
                await asyncio.sleep(min(NEW_PAUSE, left))
                continue
            await gpus.look(self._stream.sample_pause)
            looked = now()
            if gpus.facts() != self._stream.told_gpus:
                self._stream.gpus_changed.set()
            if (error := gpus.error()) != said:
                said = error
                log.warning("GPUs: %s", error or "the NVIDIA driver answers again")

    async def _judge_gpus(self) -> None:
        gpus = self._monitor.gpus
        await gpus.first_look()
        await self._gpu_health.run(gpus.answering)

    async def _checkpoints(self) -> None:
        """Have the checkpoint folders searched periodically, by the starter, as the job's user."""
        runner = self._runner
        while True:
            await asyncio.sleep(CHECKPOINT_PAUSE)
            if any(entry.checkpoint is not None or entry.work.copied is not None for entry in runner.table):
                self._inbox.put_nowait(runner.parts.look_for_checkpoints)

    async def _clean(self) -> None:
        """Remove unused host files and old output periodically."""
        kept = self._site.settings.lava_output_days * DAY
        while True:
            entries = list(self._runner.table)
            oldest = min((entry.received for entry in entries), default=time.time())
            in_use = {path for entry in entries for path in entry.kept_files()}
            hostfiles = self._runner.starts.hostfiles
            hostfiles.drop(await self._cleaning.run(hostfiles.old, oldest))
            old = time.time() - kept if kept else 0.0
            folder, host = self._site.output_dir, self._site.host
            used = await self._cleaning.run(output_retention.in_use_anywhere, folder, host, in_use, old)
            if removed := await self._cleaning.run(output_retention.clean, folder, old, used):
                log.info("%d files of kept output were older than %.0f days", removed, kept / DAY)
            await asyncio.sleep(CLEAN_PAUSE)

    async def _limit_output(self) -> None:
        """End jobs whose kept output is too much for this host."""
        while True:
            await asyncio.sleep(OUTPUT_PAUSE)
            if over := await self._output_limits.look(list(self._runner.table)):
                self._inbox.put_nowait(partial(self._runner.control.wrote_too_much, over))


def starter_folder(site: Site) -> str:
    """The starter's own folder in the spool."""
    return os.path.join(site.spool, "starter")
