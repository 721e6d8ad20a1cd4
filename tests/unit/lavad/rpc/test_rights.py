"""Every ask and every call of gRPC, put to everybody: whoever the table names is heard, and nobody else.

Each cell goes through the master's own Dispatch, with its decisions and its store; each call through its own admission.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from msgspec.structs import replace

from config.model.cluster import HostConfig
from config.model.queue import QueueConfig
from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.job.job import Placed
from lavad.core.lang.asks import Ask, Caller
from lavad.core.site.host import Facts, Gpu
from lavad.core.site.reservation import Reservation
from lavad.hosts.sessions import Session, Sessions
from lavad.rpc.admission import Admission
from lavad.rpc.dispatch import Dispatch
from lavad.rpc.server import PeerAuth
from lavad.wire.records import Hello
from proto import agent_pb2
from tests.support.ask_rules import CALLS, RULES, Rule, rows
from tests.support.worlds.bench import Bench
from tests.support.worlds.peer import HERE, THERE, Peer
from tests.unit.lavad.rpc.test_dispatch_fuzz import answered, made

KINDS = sorted(Ask.__subclasses__(), key=lambda kind: kind.__name__)
DENIED = ("permission denied", "is not heard from this host", "Host is not a submission host")

CALLERS: dict[str, Caller] = {
    "nobody": Caller("nobody", 65534, "h1"),
    "another user": Caller("bob", 1001, "h1"),
    "owner": Caller("alice", 1000, "h1"),
    "owner, on a node": Caller("alice", 1000, "h2", False),
    "a task of the job": Caller("alice", 1000, "task", False),
    "owner, where there is no job of theirs": Caller("alice", 1000, "joined", False),
    "queue administrator": Caller("qadmin", 1002, "h1"),
    "user group administrator": Caller("gadmin", 1003, "h1"),
    "administrator of another user group": Caller("xadmin", 1004, "h1"),
    "host group administrator": Caller("hadmin", 1005, "h1"),
    "cluster administrator": Caller("boss", 1006, "h1"),
    "root": Caller("root", 0, "h1"),
    "queue administrator, on a node": Caller("qadmin", 1002, "h2", False),
    "user group administrator, on a node": Caller("gadmin", 1003, "h2", False),
    "host group administrator, on a node": Caller("hadmin", 1005, "h2", False),
    "cluster administrator, on a node": Caller("boss", 1006, "h2", False),
    "root, on a node": Caller("root", 0, "h2", False),
    "whom a node calls uid 0": Caller("bob", 0, "h2", False),
}
"""``alice`` owns the jobs and groups and made the reservation; on ``task`` a job of hers runs; h2 and ``task`` are nodes."""

EVERYWHERE = set(CALLERS) - {"owner, where there is no job of theirs"}
HEARD_TO_CHANGE = EVERYWHERE - {"root, on a node", "whom a node calls uid 0"}
OWNERS = {"owner", "owner, on a node", "a task of the job"}
ADMINS = {"cluster administrator", "root"}
EXPECTED: dict[Rule, set[str]] = {
    Rule.ANYONE: HEARD_TO_CHANGE,
    Rule.SUBMISSION_HOST: HEARD_TO_CHANGE - {"a task of the job"},
    Rule.SUBMITTER: HEARD_TO_CHANGE,
    Rule.CONTROL: OWNERS | ADMINS | {"queue administrator", "user group administrator"},
    Rule.OWNER: OWNERS,
    Rule.GROUP_OWNER: OWNERS | ADMINS,
    Rule.TOKEN_OWNER: OWNERS | ADMINS,
    Rule.CREATOR: OWNERS | ADMINS,
    Rule.ADMIN: ADMINS,
    Rule.QUEUE_ADMIN: ADMINS | {"queue administrator"},
    Rule.HOST_ADMIN: ADMINS | {"host group administrator"},
}
NUMBERS = itertools.count(1)


def _frame(kind: type[Ask], job: str, group: str, reservation: str, token: str) -> dict[str, Any]:
    """An ask of this kind about a job, a group, a reservation or a token of alice's."""
    name = kind.__name__
    about: dict[str, dict[str, Any]] = {
        "Submit": {"command": "true"},
        "Bulk": {"jobs": [{"command": "true"}]},
        "Switch": {"queue": "night", "jobs": {"ids": [job]}},
        "Move": {"job": job, "top": True},
        "Modify": {"job": job, "options": {"Z": "id"}},
        "Resize": {"job": job, "what": "cancel"},
        "Post": {"job": job, "text": "t"},
        "Peek": {"job": job},
        "Attach": {"job": int(job)},
        "Wait": {"job": int(job)},
        "Run": {"job": job, "hosts": ["h1"]},
        "AddGroup": {"group": f"/new{next(NUMBERS)}"},
        "DropGroup": {"group": group},
        "ChangeGroup": {"group": group, "limit": 3},
        "AddReservation": {"users": "alice", "hosts": "h1", "slots": 1, "begin": "23:10", "end": "23:59"},
        "ChangeReservation": {"name": reservation, "verb": "disable", "description": "d"},
        "DropReservation": {"name": reservation},
        "Hosts": {"hosts": ["h1"], "close": False},
        "Gpus": {"gpus": ["h1:0"], "close": False},
        "Queues": {"queues": ["normal"], "what": "qopen"},
        "Lease": {"seconds": 1.0},
        "Perfmon": {"what": "stop"},
        "Judge": {"condition": f"done({job})"},
        "Query": {"command": "bjobs"},
        "Changes": {},
        "Reconfig": {},
        "Token": {},
        "ListTokens": {},
        "RevokeTokens": {"ids": [token]},
    }
    return {"ask": name.lower(), **about.get(name, {"jobs": {"ids": [job]}})}


def _conf(cluster: Cluster) -> ev.Configured:
    params = replace(
        cluster.conf.params,
        lsf_root_user=True,
        lava_submit_hosts=("h1", "h2"),
        user_group_admins=(("hers", ("gadmin",)), ("others", ("xadmin",))),
        host_group_admins=(("near", ("hadmin",)),),
    )
    queues = (QueueConfig(name="normal", priority=30, administrators=("qadmin",)), QueueConfig(name="night", priority=20))
    conf = replace(
        cluster.conf,
        params=params,
        queues=queues,
        admins=("boss",),
        hosts=tuple(HostConfig(name) for name in ("h1", "h2", "task")),
        user_groups=(("hers", ("alice",)), ("others", ("bob",))),
        host_groups=(("near", ("h1",)),),
    )
    return ev.Configured(at=1.0, conf=conf)


def _prepared(cluster: Cluster, now: float) -> Decided:
    joined = [
        event
        for host in ("h1", "h2", "task", "joined")
        for event in (ev.HostJoined(at=now, host=host, facts=Facts(ncpus=8, gpus=(Gpu("G"),))), ev.HostUp(at=now, host=host))
    ]
    return Decided(events=[_conf(cluster), *joined])


class Office:
    """A master in office, with a job of alice's that runs on ``task``."""

    def __init__(self, dispatch: Dispatch) -> None:
        self.dispatch = dispatch

    async def tell(self, caller: Caller, **ask: Any) -> list[dict[str, Any]]:
        """All that is answered to an ask."""
        return await answered(self.dispatch, msgspec.json.encode(ask), caller)

    async def job(self) -> str:
        """A new job of alice's, in a job group of hers."""
        (told,) = await self.tell(CALLERS["owner"], ask="submit", command="true", options={"H": True, "q": "normal"})
        return str(told["ok"]["job"])

    async def token(self) -> str:
        """The id of a new token of alice's; her former ones are called back."""
        await self.tell(CALLERS["owner"], ask="revoketokens", every=True)
        await self.tell(CALLERS["owner"], ask="token", kind="api")
        (told,) = await self.tell(CALLERS["owner"], ask="listtokens")
        return str(told["ok"]["tokens"][0]["id"])

    async def group(self) -> str:
        """A new job group of alice's."""
        name = f"/hers{next(NUMBERS)}"
        await self.tell(CALLERS["owner"], ask="addgroup", group=name)
        return name


async def _cells(folder: Path) -> dict[tuple[type[Ask], str], str]:
    """What each caller is told about each ask."""
    engine, dispatch, store = await made(folder)
    running = asyncio.ensure_future(engine.run())
    office = Office(dispatch)
    told: dict[tuple[type[Ask], str], str] = {}
    try:
        await engine.ask(_prepared)
        runs = int(await office.job())
        on_task = (Placed(host="task", slots=1),)
        started = ev.JobDispatched(at=2.0, key=runs, attempt=1, uid="u1", parts=on_task)
        await engine.ask(lambda cluster, now: Decided(events=[ev.JobReleased(at=2.0, key=runs), started]))
        for kind in KINDS:
            for name, caller in CALLERS.items():
                reservation = f"r{next(NUMBERS)}"
                await engine.ask(_with_reservation(reservation))
                frame = _frame(kind, await office.job(), await office.group(), reservation, await office.token())
                told[kind, name] = str(await office.tell(caller, **frame))
                await engine.ask(_without_reservations)
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        store.close()
    return told


def _with_reservation(name: str) -> Callable[[Cluster, float], Decided]:
    row = Reservation(name=name, kind="user", users=("alice",), creator="alice", begin=4e9, end=4.1e9)

    # an ask of reconfig has read other files
    return lambda cluster, now: Decided(events=[_conf(cluster), ev.AdvanceReservationSet(at=now, value=row)])


def _without_reservations(cluster: Cluster, now: float) -> Decided:
    return Decided(events=[ev.AdvanceReservationEnded(at=now, name=name) for name in cluster.reservations.rows])


def test_what_perfmon_counts_is_shown_to_anyone(tmp_path: Path) -> None:
    async def told() -> list[dict[str, Any]]:
        _, dispatch, store = await made(tmp_path)
        answer = await answered(dispatch, b'{"ask": "perfmon", "what": "view"}', CALLERS["nobody"])
        store.close()
        return answer

    assert "ok" in asyncio.run(told())[0]


def test_every_ask_has_its_rule_and_every_call_too() -> None:
    assert set(RULES) == set(KINDS)
    calls = [method.name for service in agent_pb2.DESCRIPTOR.services_by_name.values() for method in service.methods]
    assert sorted(CALLS) == sorted(calls)


def test_an_ask_is_heard_of_whom_the_table_names_and_of_nobody_else(tmp_path: Path, record_property: Any) -> None:
    told = asyncio.run(_cells(tmp_path))
    record_property("cells", len(told))
    assert len(told) == len(KINDS) * len(CALLERS)
    wrong = []
    for (kind, name), text in told.items():
        assert "internal error" not in text, (kind.__name__, name, text)
        assert "Bad request" not in text, (kind.__name__, name, text)
        expected = name in (EVERYWHERE if kind.__name__ == "Query" else EXPECTED[RULES[kind]])
        if expected == any(words in text for words in DENIED):
            wrong.append((kind.__name__, name, "heard" if expected else "refused", text[:200]))
    assert not wrong, "\n".join(map(str, wrong))


class Comer(NamedTuple):
    """Somebody who calls as the agent of h1: who they are, and what they may."""

    peer: Peer
    streams: bool
    commands: bool
    boot: str = "b1"
    epoch: int = 0
    left: bool = False
    busy: bool = False


COMERS: dict[str, Comer] = {
    "nobody, without a certificate": Comer(Peer(lava_host="h1"), False, False),
    "a user with a certificate of their own": Comer(Peer("alice"), False, False),
    "a master, or one that was": Comer(Peer("master"), False, False),
    "agent of this host": Comer(Peer("agent:h1"), True, True),
    "agent of this host, on another connection": Comer(Peer("agent:h1", peer=THERE), True, False),
    "agent of another host": Comer(Peer("agent:h2"), False, False),
    "another machine with this host's certificate": Comer(Peer("agent:h1", peer=THERE), False, False, boot="b2"),
    "agent of this host, certificate revoked": Comer(Peer("agent:h1", "revoked"), False, False),
    "agent that has obeyed a newer master": Comer(Peer("agent:h1"), False, True, epoch=9),
    "agent of a host that has left": Comer(Peer("agent:h1"), False, False, left=True),
    "agent of a host that has left with jobs on it": Comer(Peer("agent:h1"), True, False, left=True, busy=True),
}


@pytest.mark.parametrize("who", COMERS)
def test_a_call_is_taken_of_whom_the_table_names_and_of_nobody_else(who: str) -> None:
    comer, bench, sessions = COMERS[who], Bench(), Sessions()
    if comer.busy:
        key = bench.placed()
        assert "h1" in bench.running()[key]
    bench.configure(hosts=(HostConfig("h2"),) if comer.left else (HostConfig("h1"), HostConfig("h2")))
    revoked = b"revoked" in comer.peer.auth_context().get("x509_common_name", ())
    auth = PeerAuth(False, lambda pem: "revoked" if revoked else "")
    admission = Admission(auth, bench.cluster, sessions, lambda host: 0.0, lambda host: [], "m", lambda: bench.now)
    sessions.open(Session("h1", 0, HERE, "b1"))
    hello = Hello("h1", "test", comer.epoch, 0, Facts(boot_id=comer.boot), ())
    assert (admission.why_not_stream(hello, comer.peer) == "") == comer.streams
    host, why = admission.vouched_host(comer.peer)
    assert (host == "h1" and not why) == comer.commands


def test_the_documents_show_this_table() -> None:
    text = (Path(__file__).parents[4] / "docs" / "security.md").read_text()
    for what, who in rows():
        assert f"| {what} | {who} |" in text
