"""The agent's engine: takes messages of the master and reports of the starter, and answers each with one message a turn.

Rule: one inbox, taken empty at each turn; nothing here waits for a disk, a directory service or a network.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine
from itertools import chain

import msgspec

from agent.checkpoint.holding import Holding
from agent.core import decide
from agent.core.lease import Granted
from agent.core.part import Part, Stage
from agent.launch import build, gpus, outputs
from agent.launch.accounts import Accounts
from agent.launch.mpi import root_of
from agent.launch.site import Site
from agent.launch.timeleft import TimeLeft
from agent.master.link import Outbox
from agent.parts import report_messages as messages
from agent.parts.chunks import Chunks
from agent.parts.completion import Completion
from agent.parts.control import PartControl, now
from agent.parts.entry import Entry, adopted
from agent.parts.gpu_ends import GpuEnds
from agent.parts.gpu_modes import GpuModes
from agent.parts.host_monitor import HostMonitor
from agent.parts.job_report import JobReports
from agent.parts.kept_messages import alone, ends, saved, unpack
from agent.parts.parts import Parts, PartWork
from agent.parts.peeks import Peeks
from agent.parts.prepost import PrePost
from agent.parts.resizing import Resizing
from agent.parts.spool import Obeyed, Saved, Spool
from agent.parts.table import PartTable, Reporter
from agent.parts.work_folders import WorkFolders
from agent.starter.protocol import answers, orders, reports
from agent.starter.protocol.part import PartSpec
from agent.starter.protocol.reports import Hello, Refused, Report
from agent.starter_client.outgoing import Outgoing
from agent.starter_client.starterlink import StarterLink
from agent.starter_client.starts import SEQUENCE_BITS, Ready, Starts, why_not_started
from proto import agent_pb2 as pb
from proto.version import PROTOCOL, why_not_protocol

STARTED_AT_ONCE = 32
"""Parts in a frame to the starter."""
log = logging.getLogger("lava-agent")


class Runner:
    """Takes what comes from master and starter, and gathers what goes to them."""

    def __init__(self, site: Site, spool: Spool, monitor: HostMonitor, accounts: Accounts, starter: Outgoing) -> None:
        self.table = PartTable()
        self.outbox = Outbox()
        self.starter = starter
        self.starts = Starts(site, accounts)
        reporter = Reporter(self.outbox)
        self._time_left = TimeLeft(self.starts.hostfiles)
        self.folders = WorkFolders(spool.folder, self.table, starter)
        completion = Completion(JobReports(site), self.table, reporter, spool, starter, self._time_left, self.folders)
        self._resizing = Resizing(self.table, reporter, starter, self.starts.hostfiles.folder)
        self.control = PartControl(site, self.table, reporter, starter, spool, monitor, completion, self._time_left)
        self.gpu_ends = GpuEnds(site.host, monitor.gpus, self.table)
        self._prepost = PrePost(site, self.table, starter, self._describe)
        work = PartWork(completion, self.control, self._resizing, self.gpu_ends, self._prepost)
        self.parts = Parts(site, self.table, reporter, starter, spool, monitor, work)
        self._monitor = monitor
        self._site = site
        self._spool = spool
        self._obeyed = spool.obeyed()
        self._granted = Granted(now())
        self._modes = GpuModes(monitor.gpus, spool.folder, lambda: self.starts.poke())
        self._starter_seen = False
        self._held: dict[str, list[pb.Order]] = {}
        """Attempts whose user is being looked up or whose GPUs are made ready, with the orders that came for them meanwhile."""
        self.chunks = Chunks(self.table)
        self._lookups: set[asyncio.Task[None]] = set()
        self.peeks = Peeks(self.table, starter, accounts, self._look_after, lambda: self.starts.poke())
        self.holding = Holding(site)
        self._texts: dict[int, pb.JobText] = {}
        self._retold: dict[str, pb.Report] = {}
        """Ends that a restored store does not have yet."""
        if self._obeyed.retell:
            self._retold = spool.ends.since(self._obeyed.retell)

    def adopt(self, noted: dict[str, Saved]) -> None:
        """After a restart of the agent: what its notes tell of parts."""
        self.table.adopt(adopted(noted, self._site, now()))
        self.chunks.adopt()
        self._time_left.adopt({uid: one.ends for uid, one in noted.items()})

    def starter_connected(self, link: StarterLink, hello: Hello) -> None:
        """A starter greeted."""
        self._starter_seen = True
        waiting = self.starter.waiting()
        self.starter.up(link, hello.seq, hello.protocol)
        self.parts.starter_connected(hello, waiting)
        self.starts.high = max(self.starts.high, hello.seq >> SEQUENCE_BITS)

    def from_starter(self, report: Report) -> None:
        """What the starter says."""
        match report:
            case reports.Reports():
                self.parts.reported(reports.part_reports(report))
            case answers.Folders() | answers.Generations():
                self.parts.found_checkpoints(report)
            case answers.Data():
                self.peeks.found(report)

    def sampled(self, usage: dict[str, pb.Usage]) -> None:
        """Usage samples came in."""
        self.control.sampled(usage)

    def flush(self) -> None:
        """The end of a turn: what is due, starts to the starter in one frame, notes to the system.

        A part is noted before it is sent, and all else after that: an agent killed meanwhile knows the part, and asks again.
        """
        self.parts.looked_at(self.gpu_ends.done())
        self.control.on_time()
        self.starter.flush()
        for number, start in enumerate(chain(self.starts.ready(), self.chunks.due(self._granted.deadline)), 1):
            self._start(start)
            if not number % STARTED_AT_ONCE:
                self._spool.flush()
                self.starter.flush()  # it begins with these while the next are described
        if self._modes.changed and self._starter_seen:
            self._modes.keep({*self._held, *(entry.uid for entry in self.table if not entry.over)})
        self._spool.flush()
        self.starter.flush()
        self.parts.reported([Refused(uid, "bad", f"it cannot be started: {why}") for uid, why in self.starter.failed()])
        self._spool.flush()
        self._spool.compact()

    # -- the master --------------------------------------------------------------------------------------------------

    def hello(self, facts: pb.Facts) -> pb.Hello:
        """The greeting: everything that is here."""
        facts.starter = self.starter.protocol
        facts.copies_port = self.holding.port
        facts.chunks, facts.agent = True, self._spool.drawn()
        past = [uid for uid in self._retold if uid not in self.table]
        ended = [
            pb.PartStatus(key=one.key, attempt=one.attempt, uid=uid, state="ended") for uid in past if (one := self._retold[uid])
        ]
        return pb.Hello(
            protocol=PROTOCOL,
            host=self._site.host,
            incarnation=self._obeyed.incarnation,
            epoch=self._obeyed.epoch,
            sequence=self.starts.high,
            facts=facts,
            gpus_unknown=self._monitor.gpus.unknown,
            unpacks=True,
            parts=[*(entry.status() for entry in self.table if not entry.orphan), *ended],
        )

    def welcomed(self, welcome: pb.Welcome, greeted: float) -> str:
        """Obey this master, or say why not.

        Another incarnation than before: all that is here ends. Where that one was restored from a backup of the former, all goes
        on, and the greeting is made again with the ends that the backup cannot have.
        """
        if why := self._why_not(welcome):
            return why
        # the greeting does not tell of what waits here: the master orders again what of it is still to run
        for uid in self.chunks.clear():
            self._held.pop(uid, None)
        former = self._obeyed
        other = former.incarnation not in ("", welcome.incarnation)
        left = tuple(dict.fromkeys((*former.left, former.incarnation))) if other else former.left
        retell = welcome.restored if other else former.retell * bool(self._retold)
        if why := self._keep_obeyed(Obeyed(welcome.incarnation, welcome.epoch, left, retell)):
            return why
        if other and welcome.restored:
            log.warning("the store (%s) was restored from a backup: what is here goes on", welcome.incarnation)
            self._retold = self._spool.ends.since(welcome.restored)
            self.parts.forget_acks()
            return "its store was restored from a backup, another greeting follows"
        if other:
            log.warning("another store (%s): every part of the former one is ended", welcome.incarnation)
            self._held.clear()
            self.parts.end_all()
        self.holding.welcomed(welcome)
        self._granted = self._granted.greeted(greeted)
        self._texts.clear()
        self.parts.new_stream()
        for report in self._retold.values():
            again = pb.Report()
            again.CopyFrom(report)  # each has a number of its own
            self.outbox.put(again)
        return ""

    def _why_not(self, welcome: pb.Welcome) -> str:
        if welcome.incarnation in self._obeyed.left:
            return f"its store ({welcome.incarnation}) was given up for another ({self._obeyed.incarnation})"
        if self._obeyed.incarnation == welcome.incarnation and welcome.epoch < self._obeyed.epoch:
            return f"epoch {welcome.epoch} is lower than {self._obeyed.epoch}; a store from a backup needs lava db restore"
        return why_not_protocol("lavad", welcome.protocol, "the agent")

    def _keep_obeyed(self, found: Obeyed) -> str:
        """Keep on disk whom the agent obeys; why that cannot be done."""
        if found != self._obeyed:
            try:
                self._spool.obey(found)
            except OSError as e:
                return f"this cannot be kept on disk: {e}"
            self._obeyed = found
        return ""

    def _acked(self, acks: pb.Acks) -> None:
        self.outbox.acked(acks.serial)
        self.parts.acked(list(acks.ended))
        if self._retold and (ended := frozenset(acks.ended)):
            self._retold = {uid: one for uid, one in self._retold.items() if uid not in ended}
            if not self._retold:
                self._keep_obeyed(msgspec.structs.replace(self._obeyed, retell=0.0))

    def from_master(self, message: pb.ToAgent) -> None:
        """A message of the master."""
        kind = message.WhichOneof("kind")
        if kind == "orders":
            self._texts |= {text.id: alone(text) for text in message.orders.texts}
            for order in message.orders.orders:
                self._obey(order)
        elif kind == "acks":
            self._acked(message.acks)
        elif kind == "echo":
            self._echo(message.echo)
        elif kind == "peek":
            self.peeks.look(message.peek)
        elif kind == "copies":
            self.holding.unneeded(message.copies.jobs, now())
        elif kind == "work_folders":
            self.folders.answered(message.work_folders.jobs, time.time())

    def _echo(self, echo: pb.Echo) -> None:
        self._granted = self._granted.answered(echo.sent, echo.extended)
        leased: dict[float, list[str]] = {}
        for entry in self.table:
            if entry.needs_lease() and (deadline := self._granted.deadline(entry.order.start.lease)) is not None:
                entry.work.deadline = deadline
                leased.setdefault(deadline, []).extend(uid for uid in entry.leased())
        for deadline, uids in leased.items():
            self.starter.put(orders.Renew(deadline, tuple(uids)))

    def _obey(self, order: pb.Order) -> None:
        """One order; what cannot be carried out is refused, and prevents no other."""
        try:
            unpack(order)
            self._order(order)
        except Exception as e:
            log.exception("job %s: an order could not be carried out: %s", outputs.show(order.key), order.WhichOneof("what"))
            if order.HasField("start") and order.uid not in self.table:
                self._cannot_start(order, self._held.get(order.uid, []), e)

    def _cannot_start(self, order: pb.Order, held: list[pb.Order], why: Exception) -> None:
        self._held[order.uid] = held
        self.starts.refuse(order, *why_not_started(self._site.host, order.key, why))
        self.starts.poke()

    def _order(self, order: pb.Order) -> None:
        what, uid = order.WhichOneof("what"), order.uid
        entry = self.table.find(uid)
        if what == "start":
            self._order_start(order, uid, entry)
        elif what == "kill":
            self._order_kill(order, entry)
        elif entry is None and uid in self._held:
            if ends(order) and self.chunks.drop(uid):
                self._report_gone(order)
            else:
                self._held[uid].append(order)
        elif entry is None or entry.orphan:
            log.info("an order for attempt %s, which is not here: %s", uid, what)
        else:
            self._order_part(order, entry, what)

    def _order_part(self, order: pb.Order, entry: Entry, what: str | None) -> None:
        if what == "release":
            self.starter.put(orders.Go(order.uid, root_of(order.release)))
        elif what == "start_task":
            self.starter.put(messages.start_task(order))
        elif what == "end_task":
            self.starter.put(messages.end_task(order))
        elif what == "finish":
            self.starter.put(messages.finish(order))
        elif what == "hosts":
            self._resizing.hosts(entry, order.hosts)
        elif what == "limits":
            new = order.limits
            limits = (new.run, new.cpu, new.mem, new.swap, new.processes)
            self.control.apply(entry, *decide.limited(entry.part, *limits, now()))
        elif what == "amend":
            entry.amend(order.amend, self._site, now())
        elif what == "stop":
            self.control.stop(entry, order.stop.stopped)
        elif what in ("copy_to", "copy_generation"):
            self.control.staging.ordered(entry, order, now())
        elif what == "signal":
            self.control.asked(entry, order.signal)

    def _order_kill(self, order: pb.Order, entry: Entry | None) -> None:
        if entry is not None and order.kill.leaves and entry.part.stage is Stage.RUNNING:
            entry.dropped = "the job went on without this host"
            self.starter.put(orders.Leave(order.uid))
            self.control.apply(entry, *decide.leave(entry.part, order.kill.grace, now()))
            return
        if entry is None:
            self.chunks.drop(order.uid)
            self._report_gone(order)
        else:
            entry.ended_for = order.kill
            self.parts.end(entry)

    def _report_gone(self, order: pb.Order) -> None:
        """Of an attempt that will not run here."""
        self._held.pop(order.uid, None)
        self.outbox.put(pb.Report(key=order.key, attempt=order.attempt, uid=order.uid, gone=pb.Gone()))

    def _order_start(self, order: pb.Order, uid: str, entry: Entry | None) -> None:
        if entry is not None:
            self.parts.report_stage_again(entry)
            return
        if self.outbox.repeat_final(uid) or uid in self._held:
            return
        self._held[uid] = []
        start = order.start
        self.starts.take(order, self._texts.get(start.text), self._granted.deadline(start.lease), time.time())

    def _start(self, start: Ready) -> None:
        """An order whose user is known now goes to the starter, or is refused."""
        order, made = start.order, start.made
        uid = order.uid
        if made is not None and not start.modes_set and (cards := gpus.alone(made.text, order.start)):
            self._look_after(self._take_gpus(start, cards))
            return
        if made is not None and uid in self._held and self.chunks.waits(start):
            if any(ends(one) for one in self._held[uid]):  # asked for before it was known to wait
                self.chunks.drop(uid)
                self._report_gone(order)
            return
        held = self._held.pop(uid, None)
        if held is None or uid in self.outbox.final or uid in self.table:
            return
        if made is not None and start.deadline is not None and start.deadline <= now():
            return  # its lease passed while it waited: it may run elsewhere by now
        if made is None:
            entry = Entry(Part(order.uid, order.key, order.attempt), order, None, outputs.OutputPaths(), time.time())
            self.outbox.put(messages.refused(entry, start.code, start.why))
            log.info("job %s is refused: %s: %s", outputs.show(order.key), start.code, start.why)
            return
        try:
            order = alone(order)
            where = made.where or outputs.output_paths(made.text, order.key, made.user, self._site)
            rules = made.rules(order.start, self._site)
            entry = Entry(Part(uid, order.key, order.attempt, rules), order, made, where, time.time())
            file = self._time_left.begin(uid, decide.ends_at(entry.part, now()))
            entry.work.deadline = start.deadline
            template, part = self._describe(entry)
            self._spool.began(uid, saved(order), made.text, made.user, entry.received, file)
        except Exception as e:
            self._time_left.over(uid)
            if not isinstance(e, OSError | ValueError):
                log.exception("job %s: its part could not be described", outputs.show(order.key))
            self._cannot_start(order, held, e)
            return
        self.parts.add(entry)
        if not self._prepost.begin(entry):
            self.starter.start(order.start.sequence, template, part)
        for one in held:
            self._obey(one)

    def _describe(self, entry: Entry) -> tuple[PartSpec, PartSpec]:
        """Its template and its part, as things are now."""
        assert entry.made is not None
        ends, deadline, here = self._time_left.path(entry.uid), entry.work.deadline, self._monitor.gpus.facts()[0]
        return build.part(entry.order, entry.made, entry.where, self._site, self.starts.hostfiles, ends, deadline, here)

    async def _take_gpus(self, start: Ready, cards: list[str]) -> None:
        """Put its GPUs into their mode, and start it then; a job that was promised a mode does not run in another."""
        why = await self._modes.take(start.order.uid, cards)
        if why:
            self.starts.refuse(start.order, "gpu", f"host {self._site.host}: {why}")
        else:
            self.starts.put_back(msgspec.structs.replace(start, modes_set=True))
        self.starts.poke()

    def _look_after(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._lookups.add(task)
        task.add_done_callback(self._lookups.discard)
