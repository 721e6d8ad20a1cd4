"""Frames that a careless or hostile caller may send: every kind of ask with values at and beyond its bounds, and broken ones."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

from msgspec import inspect as types

from lavad.core.lang import asks
from proto.commands import COMMANDS
from proto.options import OPTIONS

KINDS = sorted(asks.Ask.__subclasses__(), key=lambda kind: kind.__name__)
INFO = {kind: types.type_info(kind) for kind in KINDS}
IDS = [
    "0",
    "1",
    "2",
    "3[1]",
    "3[1-2147483646]",
    "4[2-9:2]",
    "99999",
    "1[1-2147483646:2,2-2147483646:3]",
    "[",
    "-1",
    "1[0]",
    "4294967297",
]
WORDS = [
    "",
    "all",
    "*",
    "*" * 60,
    "a*a*a*b",
    "normal",
    "nosuch",
    "alice",
    "h1",
    "run",
    "true",
    "done(1)",
    "done(" * 50,
    "rusage[mem=1]",
    "select[" + "(" * 300,
    "1:2",
    "9Z",
    "9" * 30,
    "a[1-10:9999999999]",
    "a[1-3]%1",
    "x\ny",
    "\u202e\x1b[2J",
    "ü" * 90,
    "\ud83d\ude00",
    "%s%n",
    "'; drop table jobs; --",
    "../../etc/passwd",
    "/",
    "-",
]
NUMBERS = [0, 1, -1, 2, 100, 127, 128, 255, 65_536, 2**31 - 1, 2**31, -(2**31), 2**53, 2**63, 10**25]


class Frames:
    """An endless supply; the same seed gives the same frames."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def __iter__(self) -> Iterator[bytes]:
        while True:
            yield self.frame()

    def frame(self) -> bytes:
        """Nine in ten are of a kind that there is; of these a fifth has some bytes changed."""
        pick = self._random
        if pick.random() < 0.1:
            return pick.randbytes(pick.randrange(200))
        data = json.dumps(self.ask(pick.choice(KINDS))).encode()
        return self._broken(data) if pick.random() < 0.2 else data

    def ask(self, kind: type[asks.Ask]) -> dict[str, object]:
        """One of this kind, mostly within its types."""
        info = INFO[kind]
        assert isinstance(info, types.StructType)
        made = {"ask": kind.__struct_config__.tag, **self._record(info)}
        if kind is asks.Query:
            made["command"] = self._random.choice(sorted(COMMANDS))
        return made

    def _record(self, info: types.StructType) -> dict[str, object]:
        share = self._random.choice([0.0, 0.2, 0.5])
        known = [field for field in info.fields if field.required or self._random.random() < share]
        return {field.encode_name: self._value(field.type, field.name) for field in known}

    def _value(self, kind: types.Type, name: str) -> object:
        pick = self._random
        match kind:
            case types.StrType():
                return self._text(name)
            case types.BoolType():
                return pick.random() < 0.5
            case types.IntType(ge=least, le=most):
                inside = [n for n in NUMBERS if (least or 0) <= n <= (most or 0)]
                return pick.choice(inside if pick.random() < 0.9 else NUMBERS)
            case types.FloatType():
                return pick.choice([0.0, -1.5, 1e300, 86_400.0, 2])
            case types.ListType(item_type=item):
                return [self._value(item, name) for _ in range(pick.choice([0, 1, 1, 2, 3, 30]))]
            case types.DictType(value_type=item):
                return {self._key(name): self._value(item, name) for _ in range(pick.choice([0, 1, 2, 4]))}
            case types.TupleType(item_types=items):
                return [self._value(item, name) for item in items]
            case types.UnionType(types=some):
                return self._value(pick.choice(some), name)
            case types.StructType():
                return self._record(kind)
        return None

    def _key(self, name: str) -> str:
        if name == "options" and self._random.random() < 0.9:
            return self._random.choice(OPTIONS).name
        return self._random.choice(WORDS)

    def _text(self, name: str) -> str:
        pick = self._random
        if name in ("job", "ids", "words") and pick.random() < 0.8:
            return pick.choice(IDS)
        if name == "uuid":
            return f"{pick.getrandbits(64):x}" if pick.random() < 0.8 else pick.choice(["u", "u" * 64, "u" * 65])
        if name == "command" and pick.random() < 0.8:
            return "sleep 1"
        text = pick.choice(WORDS)
        return text * pick.choice([1, 1, 1, 1, 200])

    def _broken(self, data: bytes) -> bytes:
        pick = self._random
        broken = bytearray(data)
        for _ in range(pick.choice([1, 1, 2, 8])):
            at = pick.randrange(len(broken) + 1)
            how = pick.randrange(4)
            if how == 0:
                broken[at:at] = pick.choice([b"[" * 2000, b"{", b'"', b"\\u0000", b"\xff", b"null", b",", b"\\ud800"])
            elif how == 1:
                del broken[at : at + pick.randrange(1, 9)]
            elif how == 2 and at < len(broken):
                broken[at] = pick.randrange(256)
            else:
                broken += broken[: pick.randrange(60)]
        return bytes(broken)
