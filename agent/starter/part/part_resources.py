"""What a part has on its host besides its processes: its folder, files, limits, ports, and its links to other hosts.

Rule: it is made whole before the part is prepared, and closed whole when the part is gone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from agent.starter.blaunch.taskhub import TaskHub
from agent.starter.mpi.gang import Gang, is_gang
from agent.starter.mpi.rendezvous import Rendezvous
from agent.starter.process import account, prepare
from agent.starter.process.ports import Ports
from agent.starter.process.spec import Spec, encode_env
from agent.starter.system import rlimits, scratch, shm
from agent.starter.system.stdio import Refused
from agent.starter.system.watch import Watch
from agent.starter.terminal.terminal import Hear, Terminal


class Outfit:
    """``say``: what the gang says; ``hear``: what the user of an interactive part does; ``why_no_task``: why no further
    task may start in the part, "" when one may.
    """

    def __init__(
        self, spec: Spec, host: str, watch: Watch, say: Callable[[str], None], hear: Hear, why_no_task: Callable[[], str]
    ) -> None:
        self.cwd = ""
        self.files = prepare.Files()
        self.limits = rlimits.NO_CHANGE
        self.gang: Gang | None = None
        self._spec, self._host, self._watch = spec, host, watch
        self.terminal: Terminal | None = None
        self.held_up = False
        """The tasks wait for the user of an interactive part."""
        self._say, self._hear, self._why_no_task = say, hear, why_no_task
        self._hub: TaskHub | None = None
        self._ports: Ports | None = None
        self._rendezvous: Rendezvous | None = None

    def make(self) -> None:
        """Everything that can be refused; Refused says what."""
        spec = self._spec
        os.umask(int(spec.get("umask", 0o022)))
        self.cwd = prepare.enter_folder(spec)
        spec.env.update(encode_env(prepare.read_secrets(spec)))
        if (own := spec.get("tmpdir")) and (why := scratch.make_own(own)):
            raise Refused("cwd", f"TMPDIR {why}")
        if spec.get("ports"):
            self._ports = Ports(asked := spec.get("ports"))
            if "serve" in asked:
                self._rendezvous = Rendezvous(self._ports.keep(int(asked["serve"])), str(asked["address"]), self._watch)
        gang = is_gang(spec)
        leaf = gang and spec.get("link", {}).get("role") == "leaf"
        self.files = prepare.open_files(spec, with_output=not leaf)
        self.limits = spec.limits()
        if spec.get("interactive"):
            self.terminal = Terminal(spec, self._watch, self._hear)
            self.terminal.open()
        if gang:
            self.gang = Gang(spec, self._host, self.files, self._watch, self._say)
            self.gang.give_output_to(self.terminal)
            self.gang.listen()
        if spec.get("serve"):
            self._hub = TaskHub(spec, self.limits, self._watch, self._why_no_task)
            self._hub.open()

    def address(self) -> list[Any] | None:
        """[host, port, ports, port for tasks]: what the other hosts must know before they go; None for nothing."""
        found = [at for one in (self.gang, self._hub) if one and (at := one.address())]
        ports = self._ports.numbers if self._ports else []
        if not found and not ports:
            return None
        host, port = found[0] if found else ("", 0)
        return [host, port, ports, found[1][1] if len(found) > 1 else 0]

    def go(self, root: list[Any] | None) -> None:
        """The part runs: marks are filled, links made; a gang says when its tasks may start."""
        if self._ports:
            self._ports.fill(self._spec, root)
        if self._hub:
            self._hub.go([root[0], root[3]] if self._has_two_links and root else root)
        if self.gang:
            self.gang.go(root)

    @property
    def _has_two_links(self) -> bool:
        return bool(self._spec.get("link") and self._spec.get("star"))

    def may_start(self) -> bool:
        """Whether the processes may start; the user of an interactive part must have come, and is heard when they do."""
        self.held_up = self.terminal is not None and not self.terminal.go()
        return not self.held_up

    @property
    def fds(self) -> tuple[int, int, int]:
        """What the processes get as 0, 1 and 2."""
        return self.files.stdin, self.files.stdout, self.files.stderr

    @property
    def tty(self) -> int:
        """The processes' side of a pseudo-terminal, -1 without one."""
        return self.terminal.tty if self.terminal else -1

    def told(self, order: dict[str, Any]) -> None:
        """``hosts``: the job has these now; ``leave``: this one is to leave it, and how tasks end here is of no account;
        ``note``: what the agent saw of this host's ranks, for the report of the first host.
        """
        if order["do"] == "hosts" and self._hub:
            self._hub.hosts({int(seat): str(host) for seat, host in order["hosts"]})
        elif order["do"] == "leave" and self.gang:
            self.gang.quit()
        elif order["do"] == "note" and self.gang:
            self.gang.use = dict(order["use"])

    def starts(self) -> None:
        """The processes start now."""
        if self.terminal:
            self.terminal.lend(self.files, gang=self.gang is not None)
        if self._ports:
            self._ports.free()

    def started(self) -> None:
        """They have started: only a gang writes to the part's files itself."""
        if self.terminal:
            self.terminal.started()
        if not self.gang:
            self.files.close()

    def ended(self, seen: tuple[int, int, float, float, int]) -> None:
        """A child that is no task of the part's own has ended."""
        if self._hub:
            self._hub.ended(seen)

    def end(self, tasks: list[account.Task], status: int, started: float, expired: bool) -> account.End:
        """END of the part; what its ranks left in their pipes is written before, and the user is told last."""
        if self.gang:
            self.gang.flush()
        end = account.end_record(tasks, status, started, expired)
        end["cwd"] = self.cwd
        if self.gang:
            end |= self.gang.verdict()
        account.add_used(end, self._hub.used if self._hub else [0.0, 0.0, 0])
        if self.terminal:
            self.terminal.ended(status)
        return end

    def wake_at(self) -> float | None:
        """When ``on_time`` has something to do (monotonic)."""
        ones = (self.gang, self._hub, self.terminal)
        return min((at for one in ones if one and (at := one.wake_at()) is not None), default=None)

    def on_time(self) -> None:
        """Do what is due."""
        now = time.monotonic()
        for one in (self.gang, self._hub, self.terminal):
            if one and (at := one.wake_at()) is not None and at <= now:
                one.on_time()

    def close(self, started: float, failed: bool) -> None:
        """The part is gone."""
        if failed:
            shm.clear(started)
        if self._spec.get("tmpdir"):
            scratch.remove(self._spec.get("tmpdir"))
        for one in (self.gang, self._hub, self._ports, self._rendezvous):
            if one:
                one.close()
        self.files.close()
        self.files.remove_jobfile()
        for task in self._spec.tasks if self._spec.get("clean_scratch") else ():
            if task.get("scratch"):
                scratch.remove(task["scratch"])
        if self.terminal:
            self.terminal.gone()
