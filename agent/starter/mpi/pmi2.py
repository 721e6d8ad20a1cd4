"""The dialogue of PMI-2: a message is its length in six characters, then ``cmd=kvs-put;key=a;value=b;``; in a value ;; is ;.

It is that of MPICH and of Slurm's libpmi2, which Intel MPI and others load. A request's ``thrid``, its thread, is in its
answer. A connection begins with a line of PMI-1, which pmi1.py answers, and is as new after ``finalize``.
Rule: pure. Invalid requests are answered with rc=1; only a length that is none, or too large, is Broken.
"""

from __future__ import annotations

import re

from agent.starter.mpi.pmi_job import MAPPING, MAX_MESSAGE, Abort, Action, Broken, Job, Rank, Send, not_storable, number

MAX_WAITS = 64
"""Attributes for which a rank may wait at a time."""

_LENGTH = re.compile(rb" *[0-9]+ *")
"""libpmi2 puts the blanks behind it."""
_LENGTH_SIZE = 6
_FIELD = re.compile(r"([^=;]*)(?:=([^;]*(?:;;[^;]*)*))?(?:;|$)")
_COMMAND = re.compile(r"[A-Za-z0-9-]{1,64}")
_ABORT_CODE = re.compile(r"MPI_Abort\([^()]*,\s*(-?[0-9]{1,10})\)")
"""MPICH and Intel MPI have the code of MPI_Abort in their message only."""
_NO_NAMES = "names are not offered"
_REFUSED = {
    "job-connect": "jobs are not connected",
    "job-disconnect": "jobs are not connected",
    "name-publish": _NO_NAMES,
    "name-unpublish": _NO_NAMES,
    "name-lookup": _NO_NAMES,
    "spawn": "spawn is not offered",
}

Answer = dict[str, str]
"""What an answer has beside its name, thread and rc."""


class Pmi2:
    """Answers the messages of ranks."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._attributes: dict[str, str] = {}
        """What the ranks of this host have put for each other."""
        self._waiting: dict[str, list[tuple[int, str]]] = {}
        """Key that is not there yet to the ranks, and their threads, that wait for it."""

    def read(self, rank: int, one: Rank) -> list[Action]:
        """Carry out the complete messages in ``one.rest``, up to one that ends the dialogue."""
        actions: list[Action] = []
        at = 0
        while one.version == 2 and len(one.rest) >= at + _LENGTH_SIZE:
            start = at + _LENGTH_SIZE
            length = _LENGTH.fullmatch(one.rest, at, start)
            if length is None or int(length[0]) > MAX_MESSAGE:
                shown = one.rest[at:start].decode("ascii", "backslashreplace")
                one.rest = b""
                return [*actions, Broken(rank, f"rank {rank} sent a PMI-2 message of no valid length: '{shown}'")]
            end = start + int(length[0])
            if len(one.rest) < end:
                break
            actions += self._message(rank, one, one.rest[start:end].decode("utf-8", "surrogateescape"))
            at = end
        one.rest = one.rest[at:]
        return actions

    def released(self, rank: int, one: Rank) -> Send:
        """The barrier that a rank was in is over."""
        return _answer(rank, "kvs-fence", one.thread, {}, self._job.failed)

    def fail(self) -> list[Action]:
        """The job ends: whoever waits is told."""
        actions: list[Action] = []
        if self._job.version == 2:
            actions += [self.released(rank, one) for rank, one in self._job.leave()]
        for key in list(self._waiting):
            actions += self._end_waits(key, {}, self._job.failed)
        return actions

    def _message(self, rank: int, one: Rank, text: str) -> list[Action]:
        fields = fields_of(text)
        cmd, thread = fields.get("cmd", ""), fields.get("thrid", "")
        if cmd == "abort":
            message = fields.get("msg") or fields.get("message", "")
            said = _ABORT_CODE.search(message)
            return [Abort(rank, number(fields.get("exitcode"), int(said[1]) if said else 1), message)]
        if cmd == "spawn-cmd":  # the rest of a spawn, which is answered already
            return []
        if cmd == "kvs-fence":
            return self._fence(rank, one, thread)
        if cmd == "info-putnodeattr":
            return self._put_attribute(rank, thread, fields)
        if cmd == "info-getnodeattr":
            return self._get_attribute(rank, one, thread, fields)
        why, answer = "", {}
        if cmd == "kvs-put":
            why = self._job.kvs.put(fields.get("key", ""), fields.get("value", ""))
        elif cmd == "kvs-get":
            name = self._job.kvs.name
            answer = _found(self._job.kvs.get(fields.get("key", "")) if fields.get("jobid", name) == name else None)
        elif cmd == "info-getjobattr":
            answer = _found(self._of_job(fields.get("key", "")))
        elif cmd == "job-getid":
            answer = {"jobid": self._job.kvs.name}
        elif cmd == "fullinit":
            answer = {"pmi-version": "2", "pmi-subversion": "0", "rank": str(rank), "size": str(self._job.size)}
            answer |= {"appnum": "0", "debugged": "FALSE", "pmiverbose": "FALSE"}
        elif cmd == "finalize":
            one.finalized, one.version = True, 0
        else:
            why = _REFUSED.get(cmd, "unknown command")
        return [_answer(rank, cmd if _COMMAND.fullmatch(cmd) else "unknown", thread, answer, why)]

    def _of_job(self, key: str) -> str | None:
        if key == MAPPING:
            return self._job.kvs.get(key)
        return {"universeSize": str(self._job.size), "hasNameServ": "FALSE"}.get(key)

    def _fence(self, rank: int, one: Rank, thread: str) -> list[Action]:
        why = "the rank is in a fence" if one.in_barrier else self._job.failed
        if why:
            return [_answer(rank, "kvs-fence", thread, {}, why)]
        one.thread = thread
        return self._job.enter(one)

    def _put_attribute(self, rank: int, thread: str, fields: dict[str, str]) -> list[Action]:
        key, value = fields.get("key", ""), fields.get("value", "")
        why = not_storable(key, value)
        done: list[Action] = [_answer(rank, "info-putnodeattr", thread, {}, why)]
        if why:
            return done
        self._attributes[key] = value
        return done + self._end_waits(key, _found(value), "")

    def _get_attribute(self, rank: int, one: Rank, thread: str, fields: dict[str, str]) -> list[Action]:
        key = fields.get("key", "")
        value = self._attributes.get(key)
        why = ""
        if value is None and fields.get("wait", "").upper() == "TRUE":
            why = self._job.failed or not_storable(key, "") or ("too many waits" if one.waits >= MAX_WAITS else "")
            if not why:
                one.waits += 1
                self._waiting.setdefault(key, []).append((rank, thread))
                return []
        return [_answer(rank, "info-getnodeattr", thread, {} if why else _found(value), why)]

    def _end_waits(self, key: str, answer: Answer, why: str) -> list[Action]:
        actions: list[Action] = []
        for rank, thread in self._waiting.pop(key, ()):
            self._job.ranks[rank].waits -= 1
            actions.append(_answer(rank, "info-getnodeattr", thread, answer, why))
        return actions


def fields_of(text: str) -> dict[str, str]:
    """``cmd=kvs-put;key=a;value=b;;c;`` as a dict; of a name that is there twice the first counts."""
    found: dict[str, str] = {}
    for name, value in _FIELD.findall(text):
        found.setdefault(name, value.replace(";;", ";"))
    return found


def _found(value: str | None) -> Answer:
    return {"found": "FALSE"} if value is None else {"found": "TRUE", "value": value}


def _answer(rank: int, cmd: str, thread: str, answer: Answer, why: str) -> Send:
    """``why``: the reason of a refusal, "" where there is none."""
    fields = {"cmd": f"{cmd}-response", **({"thrid": thread} if thread else {}), **answer, "rc": "1" if why else "0"}
    if why:
        fields["errmsg"] = why
    text = "".join(f"{name}={value.replace(';', ';;')};" for name, value in fields.items())
    data = text.encode("utf-8", "surrogateescape")
    return Send(rank, b"%6d%b" % (len(data), data))
