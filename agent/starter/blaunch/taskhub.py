"""``blaunch`` on this host: takes requests of the job's own processes, starts tasks here, and passes frames between places.

Rule: who asks is of this part's user (SO_PEERCRED) and knows the attempt's token; a task starts only while the part runs,
and only in the part, as a child of this shepherd: what ends the part ends it.

The command connects to the shepherd itself, by an abstract socket whose name only the part's environment holds, not through
the agent: output does not pass a process that many jobs share, and an agent that restarts breaks no launcher.
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
    from agent.starter.wire import star as network

MAX_UNSENT = 256 << 20
VARIABLE = "LAVA_TASKS"
HERE = ("", "localhost", "127.0.0.1", "::1")


class Client:
    """A ``blaunch``, and the numbers that it gave its tasks."""

    __slots__ = ("greeted", "numbers", "out", "reader", "sock")

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.reader = wire.FrameReader()
        self.out = bytearray()
        self.greeted = False
        self.numbers: dict[int, int] = {}


class TaskHub:
    """The tasks of one part; they start only while ``progress`` says that it runs."""

    def __init__(self, spec: Spec, serve: BlaunchSpec, limits: Limits, watch: Watch, progress: Progress) -> None:
        self.used = Used()
        """What the tasks that have ended used."""
        self._spec = spec
        self._limits = limits
        self._watch = watch
        self._progress = progress
        self._place = serve.place
        self._hosts: dict[int, str] = dict(zip(serve.seats or range(len(serve.hosts)), serve.hosts, strict=True))
        self._names = dict(self._hosts)
        """All that there ever were."""
        self._token = spec.token
        self._clients: set[Client] = set()
        self._asked: dict[int, tuple[Client, int, int]] = {}  # number -> client, its number, place
        self._last = 0
        self._tasks: dict[tuple[int, int], TaskRun] = {}
        self._by_pid: dict[int, TaskRun] = {}
        self._listener: socket.socket | None = None
        self._star: network.Star | None = None

    def open(self) -> None:
        """Listen to the job's processes; Refused when that cannot be."""
        try:
            self._listen()
        except OSError as e:
            raise Refused("bad", f"blaunch of {self._spec.title}: {e.strerror or e}") from None

    def join(self, star: network.Star) -> None:
        """The tasks on the other hosts are reached by this network."""
        self._star = star
        star.on_tasks(self._from_star)

    def _listen(self) -> None:
        name = "lava-" + os.urandom(12).hex()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind("\0" + name)
        self._listener.listen(1024)
        self._listener.setblocking(False)
        self._watch.add(self._listener.fileno(), self._accept)
        self._spec.env[VARIABLE] = f"{VARIABLE}={name}".encode()

    def hosts(self, seats: dict[int, str]) -> None:
        """The job has these hosts now; the tasks on one that is gone end with it."""
        self._hosts = seats
        self._names.update(seats)
        if self._star:
            self._star.expect(seats)

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
            self._pass_on(frame._replace(to=self._asked[number][2], origin=self._place, number=number))

    def _ask(self, client: Client, frame: wire.Frame) -> None:
        try:
            name = read_request(frame.body).host
            if frame.number in client.numbers:
                raise ProtocolError("the number of another task")
        except ProtocolError:
            self._refuse(client, frame.number, "this is not a command")
            return
        place = self._find(name)
        if place is None:
            self._refuse(client, frame.number, f"{name}: not a host of job {self._spec.title}")
            return
        self._last += 1
        client.numbers[frame.number] = self._last
        self._asked[self._last] = (client, frame.number, place)
        self._pass_on(wire.Frame(wire.START, place, self._place, self._last, frame.body))

    def _find(self, name: str) -> int | None:
        """The place of a host of the job, by its name, without its domain, or by what this host calls itself."""
        for place, host in self._hosts.items():
            if name == host:
                return place
        short = name.partition(".")[0].lower()
        for place, host in self._hosts.items():
            if short and not name[0].isdigit() and short == host.partition(".")[0].lower():
                return place
        if name in HERE or name == socket.gethostname():
            return self._place
        return None

    def _refuse(self, client: Client, number: int, why: str) -> None:
        self._tell(client, wire.Frame(wire.FAIL, 0, 0, number, why.encode("utf-8", "surrogateescape")))

    def _tell(self, client: Client, frame: wire.Frame) -> None:
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
        """It is gone: nobody waits for its tasks any more."""
        if client not in self._clients:
            return
        self._clients.discard(client)
        self._watch.remove(client.sock.fileno())
        client.sock.close()
        for number in client.numbers.values():
            if (asked := self._asked.pop(number, None)) is not None:
                self._pass_on(wire.Frame(wire.ABANDON, asked[2], self._place, number))

    # -- frames ------------------------------------------------------------------------------------------------------

    def _pass_on(self, frame: wire.Frame) -> None:
        """A frame on its way from here."""
        if frame.to == self._place:
            self._arrived(frame)
        elif (self._star is None or not self._star.send(frame)) and wire.is_for_task(frame):
            self._over(frame.number, f"{self._names[frame.to]} is not reached")

    def _from_star(self, event: network.Event) -> None:
        from agent.starter.wire import star as network

        match event:
            case wire.Frame(kind=wire.LOST, origin=place) | network.Lost(place=place):
                self._lost(place)
            case wire.Frame():
                self._arrived(event)

    def _arrived(self, frame: wire.Frame) -> None:
        """A frame for this place."""
        if not wire.is_for_task(frame):
            self._to_client(frame)
        elif frame.kind == wire.START:
            self._start(frame)
        elif (task := self._tasks.get((frame.origin, frame.number))) is not None:
            task.take(frame)
            self._forget_over(frame.origin, frame.number, task)

    def _to_client(self, frame: wire.Frame) -> None:
        found = self._asked.get(frame.number)
        if found is None:
            return
        client, number, place = found
        if frame.kind in (wire.EXIT, wire.FAIL):
            self._asked.pop(frame.number, None)
            client.numbers.pop(number, None)
        body = frame.body
        if frame.kind == wire.FAIL:
            body = f"{self._names[place]}: ".encode() + body
        self._tell(client, wire.Frame(frame.kind, 0, 0, number, body))

    def _over(self, number: int, why: str) -> None:
        if (asked := self._asked.pop(number, None)) is not None:
            asked[0].numbers.pop(asked[1], None)
            self._refuse(asked[0], asked[1], why)

    def _start(self, frame: wire.Frame) -> None:
        origin, number = frame.origin, frame.number

        def say(kind: int, body: bytes) -> None:
            self._pass_on(wire.Frame(kind, origin, origin, number, body))

        why = self._progress.why_no_task()
        if why or (origin, number) in self._tasks:
            say(wire.FAIL, (why or "asked twice").encode())
            return
        task = TaskRun(self._watch, say)
        self._tasks[origin, number] = task
        try:
            task.start(self._spec, read_request(frame.body), self._limits)
        except (ValueError, LookupError, TypeError, AttributeError) as e:
            task.close()
            say(wire.FAIL, f"this cannot be started: {type(e).__name__}".encode())
        if task.pid:
            self._by_pid[task.pid] = task
        self._forget_over(origin, number, task)

    def _forget_over(self, origin: int, number: int, task: TaskRun) -> None:
        if task.over:
            self._tasks.pop((origin, number), None)

    def _lost(self, place: int) -> None:
        """A place (-1: every other) is not reached any more: its tasks are over for us, and ours for it."""
        for number, (_, _, at) in list(self._asked.items()):
            if at == place or (place < 0 and at != self._place):
                self._over(number, f"the link to {self._names[at]} is lost")
        for (origin, number), task in list(self._tasks.items()):
            if origin == place or (place < 0 and origin != self._place):
                task.abandon()
                self._forget_over(origin, number, task)

    # -- the part ----------------------------------------------------------------------------------------------------

    def ended(self, seen: kernel.Ended) -> None:
        """A child of the part's that is no task of the job's own has ended; it may be one of these."""
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
        """Nothing of the part is left."""
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
