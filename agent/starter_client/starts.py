"""Start orders before they go to the starter: checked, and held until their user has been looked up."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from collections.abc import Callable

import msgspec

from agent.launch.accounts import Accounts
from agent.launch.build import Compiled
from agent.launch.hostfiles import HostFiles
from agent.launch.outputs import show
from agent.launch.site import Site, User
from proto import agent_pb2 as pb
from proto.names import NoAnswer

SEQUENCE_BITS = 20
"""The starter's sequence is the master's with this many bits below it, for parts that the agent itself adds."""
ROOT = "root"
KEPT_TEXTS = 1024
KEPT_BYTES = 64 << 20
KEPT_KINDS = 64
LARGE = 64 << 10
"""Bytes from which a text is compiled for itself."""
OF_ITS_OWN = ("id", "job", "name", "submitted", "command", "output", "error", "description")
"""Fields in which texts of one kind differ (``Compiled.like``)."""
HOSTS_OWN = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE)
"""Errors of the agent's own files that no job has anything to do with."""
log = logging.getLogger("lava-agent")


class Ready(msgspec.Struct, frozen=True):
    """An order to be started; ``made`` is None when it is refused, with a code and one line."""

    order: pb.Order
    made: Compiled | None
    deadline: float | None = None
    code: str = ""
    why: str = ""
    modes_set: bool = False
    """Its GPUs are in the compute mode that it asked for."""


class Starts:
    """Orders that wait, and what was made of texts. ``high`` is the highest sequence seen."""

    def __init__(self, site: Site, accounts: Accounts) -> None:
        self.high = 0
        self.hostfiles = HostFiles(site.hostfile_dir)
        self.poke: Callable[[], None] = _nothing
        self._site = site
        self._accounts = accounts
        self._ready: list[Ready] = []
        self._waiting: dict[str, list[tuple[pb.Order, pb.JobText, float | None]]] = {}
        self._lookups: set[asyncio.Task[None]] = set()
        self._made: dict[int, tuple[pb.JobText, User, Compiled]] = {}
        self._made_bytes = 0
        self._kinds: dict[tuple[User, bytes], Compiled] = {}
        """One of each kind of texts that were taken lately."""

    def take(self, order: pb.Order, text: pb.JobText | None, deadline: float | None, at: float) -> None:
        """An order; ``text`` is None when this stream never brought it. ``at``: seconds since the epoch."""
        start = order.start
        if start.sequence <= self.high:
            self.refuse(order, "stale", f"stale order: {start.sequence} is not after {self.high}")
            return
        self.high = start.sequence
        if text is None or not 0 <= start.place < len(start.hosts):
            self.refuse(order, "bad", f"the order {start.sequence} does not say what to start")
        elif start.expires and at > start.expires:
            late = at - start.expires
            self.refuse(order, "stale", f"the order came {late:.0f} s too late, by the clock of {self._site.host}")
        elif user := self._accounts.find_known(text.user):
            self._add_ready(order, text, user, deadline)
        else:
            self._look_up(order, text, deadline)

    def ready(self) -> list[Ready]:
        """The orders that are ready or refused since the last call."""
        found, self._ready = self._ready, []
        return found

    def _add_ready(self, order: pb.Order, text: pb.JobText, user: User, deadline: float | None) -> None:
        try:
            made = self._compiled(text, user)
            self._ready.append(
                Ready(order, made, deadline) if not made.why_not else Ready(order, None, None, "pre_exec", made.why_not)
            )
        except Exception as e:
            # a job whose text is not understood must not keep others from starting
            log.exception("job %d: its text is not understood", text.job)
            self.refuse(order, "bad", f"host {self._site.host} does not understand the job: {type(e).__name__}: {e}")

    def _compiled(self, text: pb.JobText, user: User) -> Compiled:
        """Kept for the other elements of an array; a job of its own starts once."""
        if not text.array_end:
            return self._like_another(text, user)
        found = self._made.get(id(text))
        if found is not None and found[0] is text and (found[1] is user or found[1] == user):
            return found[2]
        size = text.ByteSize()
        if len(self._made) >= KEPT_TEXTS or self._made_bytes + size > KEPT_BYTES:
            self._made.clear()
            self._made_bytes = 0
        self._made_bytes += size
        made = self._like_another(text, user)
        self._made[id(text)] = (text, user, made)
        return made

    def _like_another(self, text: pb.JobText, user: User) -> Compiled:
        """Jobs submitted one by one often differ in their command, name and output alone."""
        kind = _kind_of(text)
        if kind is None:
            return Compiled(text, user, self._site)
        known = self._kinds.pop((user, kind), None)
        # the one used last is the last
        self._kinds[user, kind] = known = known or Compiled(text, user, self._site)
        if len(self._kinds) > KEPT_KINDS:
            del self._kinds[next(iter(self._kinds))]
        return known if known.text is text else known.like(text)

    def put_back(self, start: Ready) -> None:
        """An order for which something else was to be made ready."""
        self._ready.append(start)

    def refuse(self, order: pb.Order, code: str, why: str) -> None:
        """An order that is not carried out: a code and one line."""
        self._ready.append(Ready(order, None, None, code, why))

    def _look_up(self, order: pb.Order, text: pb.JobText, deadline: float | None) -> None:
        waiting = self._waiting.setdefault(text.user, [])
        waiting.append((order, text, deadline))
        if len(waiting) == 1:
            task = asyncio.get_running_loop().create_task(self._find(text.user))
            self._lookups.add(task)
            task.add_done_callback(self._lookups.discard)

    async def _find(self, name: str) -> None:
        site = self._site
        user, code, why = None, "no_user", f"user {name} is not known on host {site.host}"
        try:
            user = await self._accounts.find(name)
            if user is not None and (reason := why_not(site, user, name)):
                user, code, why = None, "not_allowed", reason
            if user is not None:
                await self._accounts.directory.run(make_folder, site, user)
                self._accounts.keep(user)
        except NoAnswer as error:
            code, why = "lookup", f"host {site.host} cannot look up user {name} now: {error}"
        except OSError as error:
            user, code, why = None, "spool", f"host {site.host}: {error.filename or name}: {error.strerror}"
        except Exception:
            # whoever waits for this look-up must hear of it
            log.exception("user %s could not be looked up", name)
            user, code, why = None, "lookup", f"host {site.host} could not look up user {name}: its log says why"
        for order, text, deadline in self._waiting.pop(name, []):
            if user is None:
                self.refuse(order, code, why)
            else:
                self._add_ready(order, text, user, deadline)
        self.poke()


def _kind_of(text: pb.JobText) -> bytes | None:
    """What a text has in common with the others of its kind; None: there are none."""
    if text.job_starter or text.roles or text.ByteSize() > LARGE:
        return None
    kind = pb.JobText()
    kind.CopyFrom(text)
    for name in OF_ITS_OWN:
        kind.ClearField(name)
    return kind.SerializeToString(deterministic=True)


def why_not(site: Site, user: User, name: str) -> str:
    """Why no job of this user, asked for by ``name``, may run here, "" if one may.

    Another host's word is not enough for root: whoever is root there could be root everywhere. The master knows root by that name
    alone, and root's own commands are named so on every host: a job under another name of number 0 is nobody's whom it let in.
    """
    if not site.root and user.name != site.own_user:
        return f"the agent of {site.host} runs as {site.own_user} and cannot become user {user.name}"
    if site.root and user.uid == 0 and not site.settings.lsf_root_user:
        return f"host {site.host} runs no jobs of {user.name} (LSF_ROOT_USER)"
    if site.root and user.uid == 0 and name != ROOT:
        return f"host {site.host} runs no jobs of {name}, another name of root"
    return ""


def make_folder(site: Site, user: User) -> None:
    """The user's own folder for job files and for output without ``-o``; the folder around it is the agent's."""
    folder = os.path.join(site.output_dir, user.name)
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        # an agent that was killed between the two lines left one that is not the user's yet
        if os.lstat(folder).st_uid != os.geteuid():
            return
    if site.root:
        os.chown(folder, user.uid, user.gid)


def why_not_started(host: str, key: int, error: Exception) -> tuple[str, str]:
    """Code and line of the refusal of a job of which the agent could not write or describe something."""
    code, said = "bad", f"{type(error).__name__}: {error}"
    if isinstance(error, ValueError):
        said = str(error)
    elif isinstance(error, OSError) and error.strerror:
        code = "spool" if error.errno in HOSTS_OWN else code
        said = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return code, f"host {host} cannot start job {show(key)}: {said}"


def _nothing() -> None:
    pass
