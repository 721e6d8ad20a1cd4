"""Which agents are let in, and for whom they may speak.

Rule: an agent speaks for its own host and the users there, while its host belongs to the cluster; one that has left may still say
how the jobs end that it has. Commands are taken on the connection of the host's live stream alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from urllib.parse import unquote

from config.values.names import is_within
from lavad.core.cluster.cluster import Cluster
from lavad.core.job.places import places_of
from lavad.core.job.resize import uid_of
from lavad.core.lang.ids import show
from lavad.core.rules.vouching import has_jobs, is_admin_host, is_member
from lavad.hosts.sessions import Sessions
from lavad.rpc.server import Call, PeerAuth
from lavad.wire.records import Hello
from proto.version import why_not_protocol

log = logging.getLogger(__name__)

LATELY = 60.0
"""Seconds; an agent that is refused tries again every few."""
MOST_REFUSED = 1000
SHOWN = 20
"""How many jobs a line names."""


class Admission:
    """``master``: this master's own host; ``silence``: seconds since a host was heard; ``lasting``: jobs with leases there."""

    def __init__(
        self,
        auth: PeerAuth,
        cluster: Cluster,
        sessions: Sessions,
        silence: Callable[[str], float],
        lasting: Callable[[str], Sequence[int]],
        master: str,
        clock: Callable[[], float],
    ) -> None:
        self._auth = auth
        self._cluster = cluster
        self._sessions = sessions
        self._silence = silence
        self._lasting = lasting
        self._master = master
        self._clock = clock
        self._refused: dict[str, tuple[str, float]] = {}
        """Host to why an agent of it was refused last, and when."""

    def why_not_stream(self, hello: Hello, context: Call) -> str:
        """Why a host's stream is refused, also said in the log; "": it is let in."""
        why = self._auth.why_not_host(context, hello.host) or self._why_not_host(hello, context)
        why = why or self._why_not_twin(hello) or self._why_not_other_agent(hello)
        if why:
            if self._refused.get(hello.host, ("", 0.0))[0] != why:
                log.warning("host %s refused: %s", hello.host, why)
            self._refused[hello.host] = (why, self._clock())
            if len(self._refused) > MOST_REFUSED:
                del self._refused[next(iter(self._refused))]
        else:
            self._refused.pop(hello.host, None)
        return why

    def refused_lately(self) -> list[str]:
        """A line for each host whose agent was refused, has not given up and was not let in since."""
        since = self._clock() - LATELY
        return [f"host {host} refused: {why}" for host, (why, at) in self._refused.items() if at > since]

    def _why_not_host(self, hello: Hello, context: Call) -> str:
        cluster, host, address = self._cluster, hello.host, address_of(context.peer())
        addresses = cluster.conf.params.host_addresses
        if host in cluster.host_conf or has_jobs(cluster, host):
            pass
        elif addresses and not is_within(address, addresses):
            return f"host {host} joins from {address}, which LSF_HOST_ADDR_RANGE does not allow"
        elif not is_member(cluster, host):
            return self._not_listed(host)
        if why := why_not_protocol(f"the agent of host {host}", hello.protocol, "lavad"):
            return why
        if hello.incarnation == cluster.incarnation and hello.epoch > cluster.epoch:
            return f"the host has obeyed a newer master (epoch {hello.epoch})"
        return ""

    def _why_not_twin(self, hello: Hello) -> str:
        """Two machines of one name would end each other's jobs: the first stays for as long as it is heard."""
        first = self._sessions.rows.get(hello.host)
        if first is None or first.boot_id in ("", hello.facts.boot_id):
            return ""
        if self._silence(hello.host) > self._cluster.conf.params.lava_host_timeout:
            return ""
        return f"another machine, with another boot id, is connected as host {hello.host} from {address_of(first.peer)}"

    def _why_not_other_agent(self, hello: Hello) -> str:
        """Nor may two agents of one name on one machine, each with a folder of its own, nor one take the place of another that is
        away: what is not in its folder would be taken for lost, and started again beside what runs."""
        host, known = hello.host, self._cluster.hosts.rows.get(hello.host)
        if known is None or not hello.facts.agent or known.facts.agent in ("", hello.facts.agent):
            return ""
        if self._silence(host) > self._cluster.conf.params.lava_host_timeout:
            booted = known.facts.boot_id not in ("", hello.facts.boot_id)
            return "" if booted else self._why_not_yet(hello)
        if (first := self._sessions.rows.get(host)) is not None:
            return f"another agent, with another folder, is connected as host {host} from {address_of(first.peer)}"
        if has_jobs(self._cluster, host):
            return f"another agent, with another folder, has jobs on host {host}, and may be away for a moment only"
        return ""

    def _why_not_yet(self, hello: Hello) -> str:
        """Jobs of the agent that is away run on, until their leases have passed, where the machine was not booted since."""
        host, told, rows = hello.host, {part.uid for part in hello.parts}, self._cluster.jobs.rows
        runs = [(key, run) for key in self._lasting(host) if (run := rows[key].run) is not None]
        left = [key for key, run in runs if any(uid_of(run, run.parts[at]) not in told for at in places_of(run, host))]
        if not left:
            return ""
        shown = ", ".join(map(show, left[:SHOWN])) + (" ..." if len(left) > SHOWN else "")
        return f"jobs of another agent, with another folder, may run on host {host} until their leases have passed: {shown}"

    def has_left(self, host: str) -> bool:
        """Whether nothing that the host says is of use any more."""
        return not is_member(self._cluster, host) and not has_jobs(self._cluster, host)

    def vouched_host(self, context: Call) -> tuple[str, str]:
        """(the host whose users the peer may speak for, why not now); why none, without a host."""
        host, why = self._auth.identify(context)
        if why:
            return "", f"only an agent may vouch for users: {why}"
        if not is_member(self._cluster, host):
            return "", self._not_listed(host)
        session = self._sessions.rows.get(host)
        has_stream = session is not None and session.peer == context.peer()
        return host, "" if has_stream else f"host {host} has no stream on this connection"

    def may_administer(self, host: str) -> bool:
        """Whether administrators have their rights on the host; all hosts of a cluster on one machine are the master's own."""
        return self._auth.local or is_admin_host(self._cluster.conf, self._master, host)

    def _not_listed(self, host: str) -> str:
        return f"host {host} is not in lsf.cluster.{self._cluster.conf.cluster}"


def address_of(peer: str) -> str:
    """The address in gRPC's name of a peer, ``ipv4:ADDRESS:PORT`` or ``ipv6:[ADDRESS]:PORT`` (the brackets may be escaped)."""
    if peer.startswith("unix:"):
        return "127.0.0.1"
    return unquote(peer).partition(":")[2].rpartition(":")[0].strip("[]")
