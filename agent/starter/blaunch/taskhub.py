"""``blaunch`` on this host: accepts requests of the job's own processes, starts tasks, and relays frames between hosts.

Rule: a client must run as the part's user (SO_PEERCRED) and know the attempt's token. A task starts only while the part runs,
as a child of this shepherd: whatever ends the part ends its tasks too.

The command connects to the shepherd directly, over an abstract socket whose name only the part's environment has. The agent is
not involved: output does not pass through a process that many jobs share, and a restart of the agent breaks no launcher.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from typing import TYPE_CHECKING

from agent.starter.blaunch.taskrun import TaskRun
from agent.starter.process.account import Used
from agent.starter.process.progress import Progress
from agent.starter.process.spec import Spec
from agent.starter.protocol.codec import ProtocolError
from agent.starter.protocol.commands import read_request
from agent.starter.protocol.part import BlaunchSpec
from agent.starter.system import kernel
from agent.starter.system.rlimits import Limits
from agent.starter.system.stdio import Refused
from agent.starter.system.watch import READ, WRITE, Watch
from agent.starter.wire import taskwire as wire
from agent.starter.wire.frames import same
from agent.starter.wire.pipe import receive

if TYPE_CHECKING:  # ``ssl`` is loaded only where a job spans hosts
    from agent.starter.wire import job_network

MAX_UNSENT = 256 << 20
VARIABLE = "LAVA_TASKS"
LOCAL_NAMES = ("", "localhost", "127.0.0.1", "::1")


class Client:
    """A connected ``blaunch``. ``numbers``: its own number of each task to the number here."""

    __slots__ = ("greeted", "numbers", "out", "reader", "sock")

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.reader = wire.FrameReader()
        self.out = bytearray()
        self.greeted = False
        self.numbers: dict[int, int] = {}


class TaskHub:
    """The tasks that blaunch starts in one part, and the requests of its processes for tasks on any host of the job."""

    def __init__(self, spec: Spec, serve: BlaunchSpec, limits: Limits, watch: Watch, progress: Progress) -> None:
        self.used = Used()
        """What the tasks that have ended used."""
        self._spec = spec
        self._limits = limits
        self._watch = watch
        self._progress = progress
        self._host_index = serve.place
        self._hosts: dict[int, str] = dict(zip(serve.seats or range(len(serve.hosts)), serve.hosts, strict=True))
        self._names = dict(self._hosts)
        """The names of all hosts that the job ever had, by index."""
        self._token = spec.token
        self._clients: set[Client] = set()
        self._requests: dict[int, tuple[Client, int, int]] = {}  # number -> client, the client's number, host index
        self._last_number = 0
        self._tasks: dict[tuple[int, int], TaskRun] = {}
        self._by_pid: dict[int, TaskRun] = {}
        self._listener: socket.socket | None = None
        self._network: job_network.JobNetwork | None = None

    def open(self) -> None:
        """Listen for the job's processes; Refused when that fails."""
        try:
            self._listen()
        except OSError as e:
            raise Refused("bad", f"blaunch of {self._spec.title}: {e.strerror or e}") from None

    def join(self, network: job_network.JobNetwork) -> None:
        """Use this network for tasks on other hosts."""
        self._network = network
        network.on_tasks(self._on_network_event)

    def _listen(self) -> None:
        name = "lava-" + os.urandom(12).hex()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind("\0" + name)
        self._listener.listen(1024)
        self._listener.setblocking(False)
        self._watch.add(self._listener.fileno(), self._accept)
        self._spec.env[VARIABLE] = f"{VARIABLE}={name}".encode()

    def set_hosts(self, hosts_by_index: dict[int, str]) -> None:
        """The job has these hosts now, by index."""
        self._hosts = hosts_by_index
        self._names.update(hosts_by_index)
        if self._network:
            self._network.expect(hosts_by_index)

    # -- the command -------------------------------------------------------------------------------------------------

    def _accept(self, _: int) -> None:
        assert self._listener is not None
        try:
            sock, _addr = self._listener.accept()
        except OSError:
            return
        sock.setblocking(False)
        who = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
        if who[1] != os.getuid():
            sock.close()
            return
        client = Client(sock)
        self._clients.add(client)
        self._watch.add(sock.fileno(), lambda events: self._client_ready(client, events))

    def _client_ready(self, client: Client, events: int) -> None:
        if events & WRITE:
            self._flush(client)
        if client not in self._clients or not events & ~WRITE:
            return
        frames, over = receive(client.sock, client.reader)
        for frame in frames:
            if client in self._clients:
                self._from_client(client, frame)
        if over:
            self._drop(client)

    def _from_client(self, client: Client, frame: wire.Frame) -> None:
        if not client.greeted:
            if frame.kind == wire.HELLO and self._token and same(frame.body, self._token):
                client.greeted = True
            else:
                self._refuse(client, 0, "not with the token of this job")
                self._drop(client)
        elif frame.kind == wire.START:
            self._ask(client, frame)
        elif frame.number in client.numbers and wire.is_for_task(frame):
            number = client.numbers[frame.number]
            self._pass_on(frame._replace(to=self._requests[number][2], origin=self._host_index, number=number))

    def _ask(self, client: Client, frame: wire.Frame) -> None:
        try:
            name = read_request(frame.body).host
            if frame.number in client.numbers:
                raise ProtocolError("the number of another task")
        except ProtocolError:
            self._refuse(client, frame.number, "this is not a command")
            return
        host_index = self._find(name)
        if host_index is None:
            self._refuse(client, frame.number, f"{name}: not a host of job {self._spec.title}")
            return
        self._last_number += 1
        client.numbers[frame.number] = self._last_number
        self._requests[self._last_number] = (client, frame.number, host_index)
        self._pass_on(wire.Frame(wire.START, host_index, self._host_index, self._last_number, frame.body))

    def _find(self, name: str) -> int | None:
        """The index of a host of the job by its name, with or without domain, or by any name of this host."""
        for host_index, host in self._hosts.items():
            if name == host:
                return host_index
        short = name.partition(".")[0].lower()
        for host_index, host in self._hosts.items():
            if short and not name[0].isdigit() and short == host.partition(".")[0].lower():
                return host_index
        if name in LOCAL_NAMES or name == socket.gethostname():
            return self._host_index
        return None

    def _refuse(self, client: Client, number: int, why: str) -> None:
        self._send_to(client, wire.Frame(wire.FAIL, 0, 0, number, why.encode("utf-8", "surrogateescape")))

    def _send_to(self, client: Client, frame: wire.Frame) -> None:
        if client in self._clients:
            waiting = bool(client.out)
            client.out += wire.pack(frame)
            if not waiting:
                self._flush(client)

    def _flush(self, client: Client) -> None:
        try:
            sent = client.sock.send(client.out)
            del client.out[:sent]
        except BlockingIOError:
            pass
        except OSError:
            self._drop(client)
            return
        if len(client.out) > MAX_UNSENT:
            self._drop(client)
            return
        self._watch.change(client.sock.fileno(), READ | WRITE if client.out else READ)

    def _drop(self, client: Client) -> None:
        """Close a connection and abandon the tasks that the client asked for."""
        if client not in self._clients:
            return
        self._clients.discard(client)
        self._watch.remove(client.sock.fileno())
        client.sock.close()
        for number in client.numbers.values():
            if (asked := self._requests.pop(number, None)) is not None:
                self._pass_on(wire.Frame(wire.ABANDON, asked[2], self._host_index, number))

    # -- frames ------------------------------------------------------------------------------------------------------

    def _pass_on(self, frame: wire.Frame) -> None:
        """Send a frame to host ``frame.to``, which may be this one."""
        if frame.to == self._host_index:
            self._on_frame(frame)
        elif (self._network is None or not self._network.send(frame)) and wire.is_for_task(frame):
            self._fail_request(frame.number, f"{self._names[frame.to]} is not reached")

    def _on_network_event(self, event: job_network.Event) -> None:
        from agent.starter.wire import job_network

        match event:
            case wire.Frame(kind=wire.LOST, origin=host_index) | job_network.Lost(host_index=host_index):
                self._on_loss(host_index)
            case wire.Frame():
                self._on_frame(event)

    def _on_frame(self, frame: wire.Frame) -> None:
        """A frame for this host."""
        if not wire.is_for_task(frame):
            self._to_client(frame)
        elif frame.kind == wire.START:
            self._start(frame)
        elif (task := self._tasks.get((frame.origin, frame.number))) is not None:
            task.on_frame(frame)
            self._forget_if_over(frame.origin, frame.number, task)

    def _to_client(self, frame: wire.Frame) -> None:
        found = self._requests.get(frame.number)
        if found is None:
            return
        client, number, host_index = found
        if frame.kind in (wire.EXIT, wire.FAIL):
            self._requests.pop(frame.number, None)
            client.numbers.pop(number, None)
        body = frame.body
        if frame.kind == wire.FAIL:
            body = f"{self._names[host_index]}: ".encode() + body
        self._send_to(client, wire.Frame(frame.kind, 0, 0, number, body))

    def _fail_request(self, number: int, why: str) -> None:
        if (asked := self._requests.pop(number, None)) is not None:
            asked[0].numbers.pop(asked[1], None)
            self._refuse(asked[0], asked[1], why)

    def _start(self, frame: wire.Frame) -> None:
        origin, number = frame.origin, frame.number

        def send(kind: int, body: bytes) -> None:
            self._pass_on(wire.Frame(kind, origin, origin, number, body))

        why = self._progress.why_no_task()
        if why or (origin, number) in self._tasks:
            send(wire.FAIL, (why or "asked twice").encode())
            return
        task = TaskRun(self._watch, send)
        self._tasks[origin, number] = task
        try:
            task.start(self._spec, read_request(frame.body), self._limits)
        except (ValueError, LookupError, TypeError, AttributeError) as e:
            task.close()
            send(wire.FAIL, f"this cannot be started: {type(e).__name__}".encode())
        if task.pid:
            self._by_pid[task.pid] = task
        self._forget_if_over(origin, number, task)

    def _forget_if_over(self, origin: int, number: int, task: TaskRun) -> None:
        if task.over:
            self._tasks.pop((origin, number), None)

    def _on_loss(self, host_index: int) -> None:
        """A host (-1: all others) can no longer be reached: fail the requests for it, and abandon the tasks that it asked for."""
        for number, (_, _, at) in list(self._requests.items()):
            if at == host_index or (host_index < 0 and at != self._host_index):
                self._fail_request(number, f"the link to {self._names[at]} is lost")
        for (origin, number), task in list(self._tasks.items()):
            if origin == host_index or (host_index < 0 and origin != self._host_index):
                task.abandon()
                self._forget_if_over(origin, number, task)

    # -- the part ----------------------------------------------------------------------------------------------------

    def ended(self, seen: kernel.Ended) -> None:
        """A child of the shepherd has ended that is not a task of the part itself; it may be a task of blaunch."""
        task = self._by_pid.pop(seen[0], None)
        if task is None:
            return
        self.used.add(seen)
        task.ended(seen)
        self._sweep()

    def _sweep(self) -> None:
        for key in [key for key, task in self._tasks.items() if task.over]:
            del self._tasks[key]

    def wake_at(self) -> float | None:
        """When ``on_time`` has something to do (monotonic)."""
        times = [at for task in self._tasks.values() if (at := task.wake_at()) is not None]
        return min(times, default=None)

    def on_time(self) -> None:
        """Do what is due."""
        now = time.monotonic()
        for task in list(self._tasks.values()):
            task.on_time(now)
        self._sweep()

    def close(self) -> None:
        """The part is gone: close all sockets."""
        for task in self._tasks.values():
            task.close()
        self._tasks.clear()
        if self._listener is not None:
            self._watch.remove(self._listener.fileno())
            self._listener.close()
            self._listener = None
        for client in list(self._clients):
            self._watch.remove(client.sock.fileno())
            client.sock.close()
        self._clients.clear()
