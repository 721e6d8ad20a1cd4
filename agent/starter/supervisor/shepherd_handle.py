"""A shepherd as the starter sees it, and how a forked child of the starter becomes one and changes to the user for good.

Rule: no file of the user is touched before the change of user.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import sys
import traceback
from typing import NamedTuple, NoReturn

from agent.starter.part import shepherd
from agent.starter.process.ends import EndFile
from agent.starter.protocol.codec import Json, text
from agent.starter.protocol.orders import Look, ToShepherd, Write, write_order
from agent.starter.supervisor.journal import RecordedShepherd
from agent.starter.system import apart, kernel
from agent.starter.system.cgroup import Groups
from agent.starter.system.stdio import one_line
from agent.starter.wire import frames
from agent.starter.wire.pipe import FramePipe

Asked = Look | Write
"""A request for a user that belongs to no running part."""

KEPT_TEMPLATES = 16
KEPT_TEMPLATE_BYTES = 4 << 20
"""What a shepherd keeps of templates for the next part of its user."""
SOCK = 3
END = 4
"""The files of a shepherd."""
_HANDLED = [
    int(getattr(signal, f"SIG{name}"))
    for name in ("TERM", "INT", "HUP", "QUIT", "USR1", "USR2", "ALRM", "XCPU", "TSTP", "TTOU", "TTIN")
]
_set_handler = getattr(signal.signal, "__wrapped__", signal.signal)
"""Without what makes a member of an enum of the former handler: that takes longer than all else, in each new shepherd."""


class ShepherdKey(NamedTuple):
    """What distinguishes shepherds and never changes: the user, whether ``ssl`` is loaded, and whether Python is not."""

    uid: int
    gid: int
    groups: tuple[int, ...]
    tls: bool
    native: bool = False
    """It runs parts that native code knows, and becomes Python where something else comes."""


class ShepherdHandle:
    """A shepherd as the starter sees it.

    ``busy``: uid of its part; ``kept``: uids of parts whose ends in its end file are still needed; ``doomed``: it gets no more.
    """

    __slots__ = (
        "asked",
        "busy",
        "doomed",
        "end_bytes",
        "end_file",
        "groups",
        "idle_since",
        "kept",
        "key",
        "number",
        "pid",
        "pipe",
        "starttime",
        "stops",
        "templates",
    )

    def __init__(self, number: int, key: ShepherdKey) -> None:
        self.number = number
        self.key = key
        self.pid = 0
        self.starttime = 0
        """In clock ticks since boot."""
        self.stops = 0
        """How often it was stopped since it got its part."""
        self.pipe: FramePipe | None = None
        self.groups: Groups | None = None
        self.busy: str | None = None
        self.kept: set[str] = set()
        self.templates: dict[int, int] = {}
        """Those that it has, the oldest first, with their bytes."""
        self.asked: dict[int | str, Asked] = {}
        """Requests that it has not answered, by their id."""
        self.idle_since = 0.0
        self.end_file: EndFile | None = None
        self.end_bytes = 0
        """Written into it since its beginning."""
        self.doomed = False

    def record(self) -> RecordedShepherd:
        """Its entry in the journal."""
        return RecordedShepherd(self.number, self.pid, self.starttime, self.key.uid)

    def send(self, order: ToShepherd) -> None:
        """Queue an order for the next flush; ignored when the shepherd is gone."""
        if self.pipe is not None and not self.pipe.closed:
            self.pipe.send(write_order(order))

    def send_part(self, number: int, template: bytes, own: Json) -> None:
        """Queue a part, preceded by its template (JSON) if the shepherd does not have template ``number`` yet.

        FrameError when one of the two is too large; nothing was queued then.
        """
        assert self.pipe is not None
        begin = frames.frame(b'{"do":"part","t":%d,"p":%b}' % (number, text(own)))
        if number not in self.templates:
            drop = self._make_room(len(template))
            # The template is encoded once for all shepherds: it is most of what is sent to them.
            self.pipe.send_frame(frames.frame(b'{"do":"template","t":%d,"drop":%b,"fields":%b}' % (number, drop, template)))
            self.templates[number] = len(template)
        self.pipe.send_frame(begin)

    def _make_room(self, size: int) -> bytes:
        """Forget the oldest templates where there are too many for one of this size more; their numbers as JSON."""
        dropped: list[int] = []
        while self.templates and (
            len(self.templates) >= KEPT_TEMPLATES or sum(self.templates.values()) + size > KEPT_TEMPLATE_BYTES
        ):
            dropped.append(oldest := next(iter(self.templates)))
            del self.templates[oldest]
        return text(dropped)


def run(sock: int, end_fd: int, key: ShepherdKey, host: str, oom_score: int) -> NoReturn:
    """Run a shepherd in a forked child; ends the process. ``oom_score``: at least the oom_score_adj of its jobs."""
    code = 70
    try:
        kernel.become_subreaper()
        kernel.set_name("lava-shepherd")
        os.setsid()
        reset_signals()
        mine = _keep_only(sock, end_fd)
        if key.tls:
            # Before the change of user: the user may not be able to read the daemon's Python.
            import ssl  # noqa: F401
        leave_daemon(oom_score)
        become(key)
        os.chdir("/")
        shepherd.Shepherd(mine, END, host).run()
        code = 0
    except BaseException:
        sys.stderr.write(f"lava-shepherd {os.getpid()} failed: {one_line(traceback.format_exc())}\n")
    finally:
        os._exit(code)


def leave_daemon(oom_score: int) -> None:
    """Give up what root's daemon has and jobs must not: its keyring, and its protection from the OOM killer."""
    if os.geteuid() == 0:
        apart.new_session_keyring()
        apart.give_up_protection(oom_score)


def become(key: ShepherdKey) -> None:
    """Set groups, group and user, in this order; PermissionError when this process cannot become that user."""
    if os.geteuid() == 0:
        try:
            os.setgroups(list(key.groups))
        except PermissionError:  # in a name space with one user alone, whose groups stay as they are
            if (key.uid, key.gid) != (0, os.getegid()):
                raise
        os.setresgid(key.gid, key.gid, key.gid)
        os.setresuid(key.uid, key.uid, key.uid)
    if os.getresuid() != (key.uid,) * 3:
        raise PermissionError(f"cannot become user {key.uid}")


def _keep_only(sock_fd: int, end_fd: int) -> socket.socket:
    high_sock, high_end = os.dup(sock_fd), os.dup(end_fd)
    base = max(high_sock, high_end, END) + 1
    moved_sock, moved_end = _dup_above(high_sock, base), _dup_above(high_end, base)
    os.dup2(moved_sock, SOCK, inheritable=False)
    os.dup2(moved_end, END, inheritable=False)
    os.closerange(END + 1, 1 << 20)
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.close(null)
    return socket.socket(fileno=SOCK)


def _dup_above(fd: int, base: int) -> int:
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, base)


def reset_signals() -> None:
    """The handlers of a shepherd."""
    # A handler, unlike "ignore", is not inherited through exec: the job's processes get the defaults.
    signal.set_wakeup_fd(-1)
    for sig in _HANDLED:
        _set_handler(sig, _nothing)


def _nothing(*_: object) -> None:
    pass
