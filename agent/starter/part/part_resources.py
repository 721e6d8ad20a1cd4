"""What a part has on its host besides its processes: folder, files, limits, ports, and connections to other hosts.

Rule: all of it is set up before the part is prepared, and released when the part is gone.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING

from agent.starter.blaunch.taskhub import TaskHub
from agent.starter.mpi.gang import Gang, is_gang
from agent.starter.mpi.meeting import FirstHost, OtherHost
from agent.starter.mpi.rendezvous import Rendezvous
from agent.starter.part import checkpoint_folder
from agent.starter.part.task_start import MOST_SAID, Surroundings
from agent.starter.process import account, prepare
from agent.starter.process.account import Used
from agent.starter.process.mps import Mps
from agent.starter.process.ports import Ports
from agent.starter.process.progress import Progress
from agent.starter.process.spec import Spec, encode_env
from agent.starter.protocol.orders import NumberedHost
from agent.starter.protocol.part import LinkSpec, PortsSpec
from agent.starter.protocol.reports import Address, End, HostUse, Root
from agent.starter.system import kernel, mounts, rlimits, scratch, shm
from agent.starter.system.stdio import Refused
from agent.starter.system.watch import Watch
from agent.starter.terminal.terminal import Terminal

if TYPE_CHECKING:  # ``ssl`` is loaded only where a job spans hosts
    from agent.starter.wire.job_network import JobNetwork


class PartResources:
    """The resources of one part. ``gang`` and ``terminal`` queue their events; ``PartRun`` takes them from there."""

    def __init__(self, spec: Spec, host: str, watch: Watch, progress: Progress) -> None:
        self.cwd = ""
        self._made_cwd = False
        self.files = prepare.Files()
        self.limits = rlimits.NO_CHANGE
        self.gang: Gang | None = None
        self.terminal: Terminal | None = None
        self.waits_for_user = False
        """The tasks wait for the user of an interactive part."""
        self._spec, self._host, self._watch, self._progress = spec, host, watch, progress
        self._tmpdir = ""
        self._notes = -1
        """Where the task of a part with ``notes`` is read."""
        self._hub: TaskHub | None = None
        self._network: JobNetwork | None = None
        self._ports: Ports | None = None
        self._rendezvous: Rendezvous | None = None
        self._mps = Mps(spec, host)

    def make(self) -> None:
        """Set up everything that may fail; Refused says what did."""
        spec, part = self._spec, self._spec.part
        os.umask(part.umask)
        self._made_cwd = prepare.make_folder(spec)
        self.cwd = prepare.enter_folder(spec)
        spec.env.update(encode_env(prepare.read_secrets(spec)))
        if part.tmpdir:
            self._make_tmpdir(part.tmpdir)
        if part.checkpoint:
            checkpoint_folder.prepare(part.checkpoint, self._host)
        if part.ports:
            self._ports = Ports(part.ports)
        gang = is_gang(spec)
        writes_elsewhere = part.link is not None and part.link.ranks and part.link.place > 0
        self.files = prepare.open_files(spec, with_output=not writes_elsewhere)
        self.limits = spec.limits()
        if part.notes:
            self._notes, self.files.stderr = os.pipe2(os.O_CLOEXEC)
            os.set_blocking(self._notes, False)
        if part.interactive:
            self.terminal = Terminal(spec, part.interactive, self._watch)
            self.terminal.open()
        if part.link:
            self._network = self._open_network(part.link)
        if part.ports and part.ports.serve is not None:
            self._rendezvous = self._serve_ranks(part.ports, part.ports.serve)
        if gang:
            self.gang = Gang(spec, self._host, self.files, self._watch)
            self.gang.give_output_to(self.terminal)
            if self._network and part.link and part.link.ranks:
                self.gang.join(self._network)
        if part.serve:
            self._hub = TaskHub(spec, part.serve, self.limits, self._watch, self._progress)
            self._hub.open()
            if self._network:
                self._hub.join(self._network)

        self._mps.start()

    def take_over(self) -> None:
        """The tasks run already, and have what native code gives them."""
        part = self._spec.part
        self.cwd = part.cwd
        if part.jobfile and part.jobfile.remove:
            self.files.jobfile = part.jobfile.path

    def _make_tmpdir(self, path: str) -> None:
        try:
            self._tmpdir = scratch.make_own(path)
        except (OSError, ValueError) as e:
            raise Refused("cwd", f"TMPDIR {path}: {getattr(e, 'strerror', None) or e}") from None
        if self._tmpdir != path:
            names = [name for name, value in self._spec.env.items() if value == os.fsencode(f"{name}={path}")]
            self._spec.env |= encode_env(dict.fromkeys(names, self._tmpdir))

    def _open_network(self, link: LinkSpec) -> JobNetwork:
        # ``ssl`` is loaded only where a job spans hosts
        from agent.starter.wire.job_network import open_network

        try:
            return open_network(link, self._watch, self._host)
        except OSError as e:
            where = f"{link.bind}, the address of host {self._host}" if link.bind else f"127.0.0.1 of host {self._host}"
            raise Refused("bad", f"the job's other hosts cannot be listened for at {where}: {e.strerror or e}") from None

    def _serve_ranks(self, asked: PortsSpec, number: int) -> Rendezvous:
        assert self._ports is not None
        link = self._spec.part.link
        if asked.place and self._network is None:
            raise Refused("bad", f"{self._spec.title}: its hosts have no connection for the meeting point of the ranks")
        meeting = OtherHost(self._network) if self._network and link and link.place else FirstHost(self._network)
        return Rendezvous(self._ports.keep(number), asked.key, meeting.ask, self._watch)

    def address(self) -> Address | None:
        """What the other hosts must know before they start their tasks; None: nothing."""
        link = (self._network.address if self._network else None) or Address()
        address = link._replace(ports=tuple(self._ports.numbers) if self._ports else ())
        return address if address != Address() else None

    def go(self, root: Root | None) -> None:
        """The part runs: fill in the ports, link the hosts. A gang has the event READY when its tasks may start."""
        if self._ports:
            self._ports.fill(self._spec, root)
        if self.gang:
            self.gang.start(root)
        if self._network:
            self._network.start(root)

    def may_start(self) -> bool:
        """Whether the processes may start; the user of an interactive part must be there first.

        What ranks on other hosts write, and how they end, is heard then, too: else the part could be over before.
        """
        self.waits_for_user = self.terminal is not None and not self.terminal.wait_for_user()
        if self.terminal and self.gang:
            self.gang.pause_output(self.waits_for_user)
        return not self.waits_for_user

    def surroundings(self) -> Surroundings:
        """What the tasks get."""
        fds = (self.files.stdin, self.files.stdout, self.files.stderr)
        return Surroundings(fds, self.limits, self.terminal.tty if self.terminal else -1, self.gang)

    def hosts_changed(self, hosts: tuple[NumberedHost, ...]) -> None:
        """The job has these hosts now."""
        if self._hub:
            self._hub.set_hosts({one.node_index: one.host for one in hosts})

    def leave(self) -> None:
        """The job continues without this host: how tasks end here does not matter any more."""
        if self.gang:
            self.gang.leave_job()

    def note(self, use: HostUse) -> None:
        """Store the agent's samples of what this host's ranks use, for the report of the first host."""
        if self.gang:
            self.gang.use = use

    def starts(self) -> None:
        """The processes start now."""
        if self.terminal:
            self.terminal.connect_files(self.files, gang=self.gang is not None)
        if self._ports:
            self._ports.free()

    def started(self) -> None:
        """They have started: close the part's files, which only a gang still writes to."""
        if self.terminal:
            self.terminal.started()
        if not self.gang:
            self.files.close()

    def ended(self, seen: kernel.Ended) -> None:
        """A child that is no task of the part's own has ended."""
        if self._hub:
            self._hub.ended(seen)

    def end(self, tasks: list[account.Task], status: int, started: float, expired: bool, lost: bool) -> End:
        """The end of the part. First what its ranks left in their pipes is written; the user learns of the end last.

        ``lost``: the master will not hear of this end, so that it is not that of the job.
        """
        if self.gang:
            self.gang.flush()
        if not self._progress.killing:
            self._mps.quit()
        end = account.end_of(tasks, status, started, expired, self._hub.used if self._hub else Used())
        end = end._replace(cwd=self.cwd, made_cwd=self._made_cwd)
        if self._notes >= 0:
            end = end._replace(note=self._read_notes())
        if self.gang:
            end = self.gang.completed(end)
        if self.terminal and not lost:
            self.terminal.ended(status)
        return end

    def _read_notes(self) -> str:
        try:
            return os.read(self._notes, MOST_SAID).decode("utf-8", "replace").strip()
        except BlockingIOError:  # nothing was written, and something of the task still has it open
            return ""

    def wake_at(self) -> float | None:
        """When ``on_time`` has something to do (monotonic)."""
        ones = (self._network, self.gang, self._hub, self.terminal)
        return min((at for one in ones if one and (at := one.wake_at()) is not None), default=None)

    def on_time(self) -> None:
        """Do what is due."""
        now = time.monotonic()
        for one in (self._network, self.gang, self._hub, self.terminal):
            if one and (at := one.wake_at()) is not None and at <= now:
                one.on_time()

    def close(self, started: float, failed: bool) -> None:
        """The part is gone."""
        part = self._spec.part
        if failed:
            shm.clear(started)
        if self._tmpdir and not (part.tmpdir_of_first and mounts.others_may_see(self._tmpdir)):
            scratch.remove(self._tmpdir)
        for one in (self._network, self.gang, self._hub, self._ports, self._rendezvous):
            if one:
                one.close()
        self._mps.close()
        self.files.close()
        if self._notes >= 0:
            os.close(self._notes)
        self.files.remove_jobfile()
        if self._made_cwd and not started:
            with contextlib.suppress(OSError):  # what is in it is of use to somebody
                os.rmdir(part.cwd)
        for task in self._spec.tasks if part.clean_scratch else ():
            if task.scratch:
                scratch.remove(task.scratch)
        if self.terminal:
            self.terminal.gone()
