"""The PMI-1 protocol of one host, without I/O: lines from ranks in; lines for ranks and actions of the gang out.

Rule: pure. Nothing that a rank sends raises an exception; invalid requests are answered with rc=-1 or lead to Broken.
The dialogue is that of MPICH 4 and 5 and Intel MPI. The key-value space has a copy on every host, made equal at each barrier,
so that a get never needs another host.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

MAX_LINE = 64 * 1024
MAX_NAME = 256
MAX_KEY = 64
MAX_VALUE = 1024


class Kvs:
    """The key-value space of an MPI job, on this host."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._values: dict[str, str] = {}
        self._new: dict[str, str] = {}

    def put(self, key: str, value: str) -> str:
        """Store a value; "" or the reason why not (PMI's ``msg``)."""
        if not key or len(key) > MAX_KEY:
            return "bad_key"
        if len(value) > MAX_VALUE:
            return "value_too_long"
        self._values[key] = value
        self._new[key] = value
        return ""

    def get(self, key: str) -> str | None:
        """The value put on this host, or on another one before the last barrier; None: there is none."""
        return self._values.get(key)

    def at(self, index: int) -> tuple[str, str] | None:
        """The pair with this index in the order of arrival, None when there are not so many."""
        if not 0 <= index < len(self._values):
            return None
        return list(self._values.items())[index]

    def set(self, key: str, value: str) -> None:
        """Store a value that every host sets itself, so that it is not exchanged."""
        self._values[key] = value

    def take_new(self) -> dict[str, str]:
        """What was put on this host since the last call."""
        new, self._new = self._new, {}
        return new

    def merge(self, values: Mapping[str, str]) -> None:
        """Store what all hosts put."""
        self._values.update(values)


class Send(NamedTuple):
    """Bytes for a rank."""

    rank: int
    data: bytes


class Barrier(NamedTuple):
    """All ranks of this host are in the barrier. ``puts``: the keys and values that they put since the last one."""

    puts: dict[str, str]


class Abort(NamedTuple):
    """A rank wants the whole job to end with this exit code."""

    rank: int
    code: int
    text: str


class Broken(NamedTuple):
    """A rank does not speak PMI-1."""

    rank: int
    text: str


Action = Send | Barrier | Abort | Broken


def fields_of(line: str) -> dict[str, str]:
    """``cmd=put key=a value=b c`` as a dict; the value of ``value``, ``error_msg`` or ``port`` is the rest of the line."""
    found: dict[str, str] = {}
    rest = line.strip("\r\n ")
    while rest:
        name, equals, after = rest.partition("=")
        if not equals:
            break
        name = name.strip()
        if name in ("value", "error_msg", "port"):
            found[name] = after
            break
        value, _, rest = after.partition(" ")
        found[name] = value
        rest = rest.lstrip()
    return found


class _Rank:
    __slots__ = ("finalized", "in_barrier", "initialized", "rest", "spawning")

    def __init__(self) -> None:
        self.initialized = False
        self.finalized = False
        self.in_barrier = False
        self.spawning = False
        self.rest = b""


class Pmi:
    """The PMI server of one host's ranks. ``mapping``: PMI_process_mapping."""

    def __init__(self, kvsname: str, size: int, mapping: str, ranks: Iterable[int]) -> None:
        self.size = size
        self.kvs = Kvs(kvsname[:MAX_NAME])
        if mapping:
            self.kvs.set("PMI_process_mapping", mapping)
        self._ranks = {rank: _Rank() for rank in ranks}

    def feed(self, rank: int, data: bytes) -> list[Action]:
        """The actions that follow from ``data``, which a rank sent."""
        one = self._ranks[rank]
        lines = (one.rest + data).split(b"\n")
        one.rest = lines.pop()
        actions: list[Action] = []
        for line in lines:
            actions += self._line(rank, one, line.decode("utf-8", "surrogateescape"))
        if len(one.rest) > MAX_LINE:
            one.rest = b""
            actions.append(Broken(rank, f"rank {rank} sent a PMI line without an end"))
        return actions

    def unfinished(self, rank: int) -> bool:
        """Whether the rank has called MPI_Init and not yet MPI_Finalize."""
        one = self._ranks[rank]
        return one.initialized and not one.finalized

    def begun(self, rank: int) -> bool:
        """Whether the rank has ever called MPI_Init."""
        return self._ranks[rank].initialized

    def release(self, puts: Mapping[str, str]) -> list[Action]:
        """The barrier is complete on all hosts; ``puts``: what all of them put."""
        self.kvs.merge(puts)
        actions: list[Action] = []
        for rank, one in self._ranks.items():
            if one.in_barrier:
                one.in_barrier = False
                actions.append(Send(rank, b"cmd=barrier_out\n"))
        return actions

    def _line(self, rank: int, one: _Rank, line: str) -> list[Action]:
        fields = fields_of(line)
        if one.spawning:
            if line.strip() != "endcmd":
                return []
            one.spawning = False
            return [_answer(rank, "cmd=spawn_result rc=-1 msg=spawn_is_not_offered")]
        if "mcmd" in fields:
            one.spawning = True
            return []
        cmd = fields.get("cmd", "")
        if cmd == "init":
            one.initialized = True
        elif cmd == "finalize":
            one.finalized = True
        elif cmd == "barrier_in":
            return self._barrier(one)
        elif cmd == "abort":
            return [Abort(rank, _int(fields.get("exitcode"), 1), fields.get("error_msg", ""))]
        elif cmd == "initack":
            return [
                _answer(rank, "cmd=initack rc=0"),
                _answer(rank, f"cmd=set size={self.size}"),
                _answer(rank, f"cmd=set rank={rank}"),
                _answer(rank, "cmd=set debug=0"),
            ]
        return [_answer(rank, self._reply(cmd, fields))]

    def _barrier(self, one: _Rank) -> list[Action]:
        one.in_barrier = True
        if all(r.in_barrier for r in self._ranks.values()):
            return [Barrier(self.kvs.take_new())]
        return []

    def _reply(self, cmd: str, fields: dict[str, str]) -> str:
        fixed = {
            "init": "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0",
            "get_maxes": f"cmd=maxes kvsname_max={MAX_NAME} keylen_max={MAX_KEY} vallen_max={MAX_VALUE}",
            "get_appnum": "cmd=appnum appnum=0",
            "get_universe_size": f"cmd=universe_size size={self.size}",
            "get_my_kvsname": f"cmd=my_kvsname kvsname={self.kvs.name}",
            "create_kvs": "cmd=newkvs rc=-1 msg=one_space_only",
            "destroy_kvs": "cmd=kvs_destroyed rc=-1 msg=one_space_only",
            "finalize": "cmd=finalize_ack",
            "publish_name": "cmd=publish_result rc=-1 info=notok msg=names_are_not_offered",
            "unpublish_name": "cmd=unpublish_result rc=-1 info=notok msg=names_are_not_offered",
            "lookup_name": "cmd=lookup_result rc=-1 info=notok msg=names_are_not_offered",
        }.get(cmd)
        if fixed is not None:
            return fixed
        if cmd in ("put", "get", "getbyidx"):
            return self._keyval(cmd, fields)
        return f"cmd={cmd or 'unknown'}_result rc=-1 msg=unknown_command"

    def _keyval(self, cmd: str, fields: dict[str, str]) -> str:
        wrong_space = fields.get("kvsname", self.kvs.name) != self.kvs.name
        key = fields.get("key", "")
        if cmd == "put":
            why = "no_such_kvs" if wrong_space else self.kvs.put(key, fields.get("value", ""))
            return f"cmd=put_result rc={-1 if why else 0} msg={why or 'success'}"
        if cmd == "get":
            value = None if wrong_space else self.kvs.get(key)
            if value is None:
                return f"cmd=get_result rc=-1 msg=key_{key}_not_found value=unknown"
            return f"cmd=get_result rc=0 msg=success value={value}"
        index = _int(fields.get("idx"), -1)
        pair = None if wrong_space else self.kvs.at(index)
        if pair is None:
            return "cmd=getbyidx_results rc=-1 reason=no_more_keyvals"
        return f"cmd=getbyidx_results rc=0 nextidx={index + 1} key={pair[0]} val={pair[1]}"


def _answer(rank: int, line: str) -> Send:
    return Send(rank, line.encode("utf-8", "surrogateescape") + b"\n")


def _int(text: str | None, default: int) -> int:
    try:
        return int(text or "")
    except ValueError:
        return default
