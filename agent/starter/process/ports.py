"""Ports on this host for a job's own processes to listen on: chosen while the part is prepared, reserved until they start.

Rule: until the start a bound socket reserves the port; for the part's whole life an abstract Unix socket with the port in its
name does so among shepherds: the program may take seconds to bind the port, and no other job must get it meanwhile.
"""

from __future__ import annotations

import errno
import os
import re
import socket
from collections.abc import Callable

from agent.starter.process.spec import Spec
from agent.starter.protocol.part import PortsSpec, TaskSpec
from agent.starter.protocol.reports import Root
from agent.starter.system.stdio import Refused

_MARK = re.compile(r"@LAVA_PORT_(\d+)_(\d+)@")


class Ports:
    """The ports of one part, in ``numbers``; Refused when there are not enough free ones."""

    def __init__(self, asked: PortsSpec) -> None:
        self.numbers: list[int] = []
        self._host_index = asked.place
        self._hosts = asked.hosts
        self._names: list[socket.socket] = []
        self._held: list[socket.socket] = []
        low, of, wanted = asked.low, asked.of, asked.count_
        begin = asked.first - low
        for step in range(of):
            if len(self.numbers) == wanted:
                return
            self._try(low + (begin + step) % of)
        if len(self.numbers) < wanted:
            self.close()
            raise Refused("ports", f"{wanted} free ports are needed between {low} and {low + of - 1}")

    def _try(self, port: int) -> None:
        name = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        held: socket.socket | None = None
        try:
            name.bind(f"\0lava-port-{port}")
            held = _bound(port)
        except OSError as e:
            name.close()
            if e.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise Refused("ports", f"port {port}: {e.strerror}") from None
            return
        self._names.append(name)
        self._held.append(held)
        self.numbers.append(port)

    def fill(self, spec: Spec, root: Root | None) -> None:
        """Replace the marks ``@LAVA_PORT_<host index>_<number>@`` by the ports of all hosts; Refused when one is not known."""
        known_ports = root.ports if root else ()
        known = {(host_index, number): port for host_index, ports in enumerate(known_ports) for number, port in enumerate(ports)}
        known |= {(self._host_index, number): port for number, port in enumerate(self.numbers)}

        def port(match: re.Match[str]) -> str:
            found = known.get((int(match[1]), int(match[2])))
            if found is None:
                raise Refused("ports", f"the port of host {int(match[1]) + 1} of {self._hosts} is not known")
            return str(found)

        argv = tuple(_MARK.sub(port, word) for word in spec.part.argv or ("",))
        spec.part = spec.part._replace(argv=argv, tasks=tuple(_filled(task, port) for task in spec.tasks))
        for name, value in spec.env.items():
            if b"@LAVA_PORT_" in value:
                spec.env[name] = os.fsencode(_MARK.sub(port, os.fsdecode(value)))

    def keep(self, number: int) -> socket.socket:
        """Hand over the bound socket of a port; the caller listens on it and closes it."""
        return self._held.pop(number)

    def free(self) -> None:
        """The processes start: close the sockets, so that they can bind the ports."""
        for held in self._held:
            held.close()
        self._held.clear()

    def close(self) -> None:
        """The part is gone: release the ports."""
        self.free()
        for name in self._names:
            name.close()
        self._names.clear()


def _filled(task: TaskSpec, port: Callable[[re.Match[str]], str]) -> TaskSpec:
    env = {name: _MARK.sub(port, value) for name, value in task.env.items()}
    argv = None if task.argv is None else tuple(_MARK.sub(port, word) for word in task.argv)
    return task._replace(env=env, argv=argv)


def _bound(port: int) -> socket.socket:
    """A socket bound to the port on all addresses of IPv4 and IPv6; OSError when a program uses it on any of them."""
    try:
        return _bind(socket.AF_INET6, ("::", port))
    except OSError as e:
        if e.errno in (errno.EADDRINUSE, errno.EACCES):
            raise
    return _bind(socket.AF_INET, ("", port))


def _bind(family: socket.AddressFamily, address: tuple[str, int]) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind(address)
    except OSError:
        sock.close()
        raise
    return sock
