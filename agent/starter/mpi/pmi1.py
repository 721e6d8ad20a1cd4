"""The dialogue of PMI-1: a request is a line, ``cmd=put kvsname=k key=a value=b``, and so is its answer.

It is that of MPICH 4 and 5 and Intel MPI. Rule: pure. Invalid requests are answered with rc=-1.
"""

from __future__ import annotations

from agent.starter.mpi.pmi_job import MAX_KEY, MAX_NAME, MAX_VALUE, Abort, Action, Broken, Job, Rank, Send, number

RELEASED = b"cmd=barrier_out\n"
"""The answer to ``barrier_in``, when the barrier is over."""


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


class Pmi1:
    """Answers the lines of ranks, also the one in which a rank says that it speaks PMI-2."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def read(self, rank: int, one: Rank) -> list[Action]:
        """Carry out the complete lines in ``one.rest``, up to one after which another version is spoken."""
        lines = one.rest.split(b"\n")
        one.rest = lines.pop()
        actions: list[Action] = []
        for at, line in enumerate(lines, 1):
            actions += self._line(rank, one, line.decode("utf-8", "surrogateescape"))
            if one.version > 1:
                one.rest = b"\n".join([*lines[at:], one.rest])
                break
        return actions

    def _line(self, rank: int, one: Rank, line: str) -> list[Action]:
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
        if cmd in ("put", "get", "getbyidx"):
            return [_answer(rank, self._keyval(cmd, fields))]
        if cmd == "init":
            return self._init(rank, one, 2 if fields.get("pmi_version") == "2" else 1)
        if cmd == "finalize":
            one.finalized = True
        elif cmd == "barrier_in":
            return self._job.enter(one)
        elif cmd == "abort":
            return [Abort(rank, number(fields.get("exitcode"), 1), fields.get("error_msg", ""))]
        elif cmd == "initack":
            return [
                _answer(rank, "cmd=initack rc=0"),
                _answer(rank, f"cmd=set size={self._job.size}"),
                _answer(rank, f"cmd=set rank={rank}"),
                _answer(rank, "cmd=set debug=0"),
            ]
        return [_answer(rank, self._reply(cmd, fields))]

    def _init(self, rank: int, one: Rank, version: int) -> list[Action]:
        spoken = self._job.version or version
        answer = f"cmd=response_to_init pmi_version={spoken} pmi_subversion={1 if spoken == 1 else 0}"
        if spoken != version:
            why = f"rank {rank} speaks PMI-{version}, another rank of the job PMI-{spoken}"
            return [_answer(rank, f"{answer} rc=-1"), Broken(rank, why)]
        self._job.version = one.version = version
        one.initialized = True
        return [_answer(rank, f"{answer} rc=0")]

    def _reply(self, cmd: str, fields: dict[str, str]) -> str:
        fixed = {
            "get_maxes": f"cmd=maxes kvsname_max={MAX_NAME} keylen_max={MAX_KEY} vallen_max={MAX_VALUE}",
            "get_appnum": "cmd=appnum appnum=0",
            "get_universe_size": f"cmd=universe_size size={self._job.size}",
            "get_my_kvsname": f"cmd=my_kvsname kvsname={self._job.kvs.name}",
            "create_kvs": "cmd=newkvs rc=-1 msg=one_space_only",
            "destroy_kvs": "cmd=kvs_destroyed rc=-1 msg=one_space_only",
            "finalize": "cmd=finalize_ack",
            "publish_name": "cmd=publish_result rc=-1 info=notok msg=names_are_not_offered",
            "unpublish_name": "cmd=unpublish_result rc=-1 info=notok msg=names_are_not_offered",
            "lookup_name": "cmd=lookup_result rc=-1 info=notok msg=names_are_not_offered",
        }.get(cmd)
        return fixed or f"cmd={cmd or 'unknown'}_result rc=-1 msg=unknown_command"

    def _keyval(self, cmd: str, fields: dict[str, str]) -> str:
        kvs = self._job.kvs
        wrong_space = fields.get("kvsname", kvs.name) != kvs.name
        key = fields.get("key", "")
        if cmd == "put":
            why = "no_such_kvs" if wrong_space else kvs.put(key, fields.get("value", ""))
            return f"cmd=put_result rc={-1 if why else 0} msg={why or 'success'}"
        if cmd == "get":
            value = None if wrong_space else kvs.get(key)
            if value is None:
                return f"cmd=get_result rc=-1 msg=key_{key}_not_found value=unknown"
            return f"cmd=get_result rc=0 msg=success value={value}"
        index = number(fields.get("idx"), -1)
        pair = None if wrong_space else kvs.at(index)
        if pair is None:
            return "cmd=getbyidx_results rc=-1 reason=no_more_keyvals"
        return f"cmd=getbyidx_results rc=0 nextidx={index + 1} key={pair[0]} val={pair[1]}"


def _answer(rank: int, line: str) -> Send:
    return Send(rank, line.encode("utf-8", "surrogateescape") + b"\n")
