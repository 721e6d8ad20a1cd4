"""What native code reads: of frames nothing beside them, and what it takes Python reads the same; of /proc, what is there."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.starter.part import native_parts
from agent.starter.process.spec import Spec, Template
from agent.starter.protocol import orders
from agent.starter.protocol.codec import parse

HERE = Path(__file__).resolve().parent
SOURCES = Path(native_parts.LIBRARY).parent
CHECKED = ["-g", "-O1", "-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all"]
SEED = int(os.environ.get("LAVA_PARSER_SEED", "1"))
MANY = int(os.environ.get("LAVA_PARSER_FRAMES", "6000"))

TEXTS = [
    "",
    "x",
    "/tmp/f",
    "\u00e9",
    "\U0001f600",
    "\udcff",
    "\ud800",
    "\udc00",
    "nul\0",
    '\t\n"\\/',
    "A=B",
    "{]",
    "\x7f",
    "y" * 300,
]
NUMBERS = [-1, 0, 1, 5, 64, 65, 100, 101, 0o777, 0o7777, *(1 << power for power in (20, 31, 32, 63, 70)), 2**63 - 1, -(2**63)]
REALS = [0.0, -1.0, 0.5, 1e-9, 1e300, 1.7976931348623157e308, 12345.678901, -0.0]
OTHERS: list[Any] = [None, True, False, [], {}, [[]], [None], {"a": None}, [[[[{"a": [{}]}]]]]]
FIELDS: dict[str, list[Any]] = {
    "uid": ["u1", "a-b.c_9", "q\u00e9", 'q"', ""],
    "key": [7, 1 << 40],
    "attempt": [1],
    "title": ["12[3]", ""],
    "t": ["x"],
    "user": [{"name": "me", "uid": 0, "gid": 0, "groups": [0]}],
    "env": [{}, {"A": "1"}, {"B": "2", "A": "\udcff"}, {"PATH": "/x", "LAVA_ATTEMPT": ""}, {"": "x"}, {"a=b": ""}, {"C": 5}],
    "argv": [["sh"], ["/bin/sh", "-c", "true"], ["a", ""], [""], []],
    "cwd": ["/", "/tmp/\u00e9", ""],
    "cwd_else": [["/"], []],
    "umask": [0, 0o22, 0o777, 1 << 32],
    "nice": [0, 5, -5],
    "rlimits": [
        {},
        {"CORE": [0, 0]},
        {"NOFILE": [100, -1], "CPU": [10, 20]},
        {"STACK": [-1]},
        {"what": [1, 1]},
        {"AS": [None, 5]},
    ],
    "script": ["#!/bin/sh\necho\n", ""],
    "jobfile": [{"path": "/j"}, {"path": "/j", "mode": 0o500, "remove": True}, {"path": "/j", "text": "own"}, {"mode": 1}],
    "stdin": ["/dev/null", ""],
    "stdout": [{"path": "/tmp/o"}, {"path": "/tmp/o", "append": True, "mkdir": True}, {"path": ""}, {}],
    "stderr": [{"path": "/tmp/o"}, {"path": "/tmp/e", "append": True}],
    "deadline": [1e9, 5, 1e300, 1e-12, None],
    "grace": [0.5],
    "post_always": [True],
    "secrets": [{}, {"A": "/x"}],
    "notes": [False, True],
    "tasks": [[{"rank": -1, "env": {}}], None, [], [{"rank": 0, "env": {}}], [{"rank": -1, "env": {}}] * 2],
    "cgroup": [{"pids": 5}],
    "pre_exec": ["true", None],
    "a_field": [1],
}
OFTEN = sorted(FIELDS.keys() - {"pre_exec", "a_field"})
KINDS: dict[str, dict[str, list[Any]]] = {
    "kill": {"uids": [["u1"], ["u1", "u2"], []], "posts": [True, False]},
    "signal": {"uids": [["u1"]], "sig": [9, 64], "scope": ["tasks", "groups", "catching"], "within": [5.0]},
    "renew": {"uids": [["u1"]], "deadline": [1000.5, 7, 1e300]},
}


def _value(some: random.Random, of: list[Any]) -> Any:
    return some.choice(of) if some.random() < 0.95 else some.choice([*TEXTS, *NUMBERS, *REALS, *OTHERS])


def _fields(some: random.Random, more: tuple[str, ...] = ()) -> dict[str, Any]:
    names = {*some.sample(OFTEN, some.randrange(7)), *more, *(["pre_exec", "a_field"] if some.random() < 0.02 else [])}
    return {name: FIELDS[name][0] if some.random() < 0.5 else _value(some, FIELDS[name]) for name in sorted(names)}


def _order(some: random.Random, number: int) -> dict[str, Any]:
    kind = some.random() if number % 10 else 0
    if kind < 0.1:
        return {"do": "template", "t": number, "drop": [], "fields": _fields(some, ("argv",))}
    if kind < 0.8:
        return {"do": "part", "t": some.randint(max(1, number - 20), number) // 10 * 10, "p": _fields(some, ("uid",))}
    name = some.choice(sorted(KINDS))
    return {"do": name, **{key: _value(some, of) for key, of in KINDS[name].items() if some.random() < 0.9}}


def _harmed(some: random.Random, body: bytes) -> bytes:
    """The same with some bytes changed, left out, doubled, or cut off."""
    data = bytearray(body)
    for _ in range(some.randint(1, 3)):
        at = some.randrange(len(data)) if data else 0
        match some.randrange(5):
            case 0:
                del data[at:]
            case 1:
                data[at : at + 1] = bytes([some.randrange(256)])
            case 2:
                data[at:at] = some.choice(
                    [b"[" * 100, b"{", b'"', b"\\", b"\\ud83d", b"1", b"9" * 25, b"e", b",", b"\0", b"\xff", b" "]
                )
            case 3:
                del data[at : at + some.randint(1, 9)]
            case _:
                data[at:at] = data[at : at + some.randint(1, 40)]
    return bytes(data)


def _bodies(some: random.Random) -> Iterator[bytes]:
    yield b'{"do":"renew","deadline":1'  # a number at the very end
    yield b""
    for number in range(1, MANY):
        body = json.dumps(_order(some, number), separators=(",", ":") if some.random() < 0.8 else None).encode()
        yield _harmed(some, body) if some.random() < 0.3 else body


def _hex(text: str | bytes) -> str:
    return (text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")).hex()


def _strings(texts: list[bytes]) -> list[str]:
    return [str(len(texts)), *map(_hex, texts)]


def _shown(spec: Spec) -> str:
    """A part as parsers.c prints it."""
    part, argv = spec.part, [one.encode("utf-8", "surrogateescape") for one in spec.part.argv or ()]
    out, err, jobfile = part.stdout, part.stderr, part.jobfile
    words = ["part", _hex(part.uid), _hex(spec.title), *_strings(list(spec.env.values())), *_strings(argv), _hex(part.cwd)]
    words += [str(part.umask), str(part.nice), f"{part.deadline or 0:.17g}"]
    words += ["none" if part.stdin is None else _hex(part.stdin)]
    words += [_hex(out.path) if out and out.path else "none", str(int(bool(out and out.append)))]
    words += [_hex(err.path) if err.path else "none", str(int(err.append))] if err else []
    words += (
        [_hex(jobfile.path), f"{jobfile.mode:o}", str(int(jobfile.remove)), _hex(jobfile.text or part.script)] if jobfile else []
    )
    return " ".join([*words, *(f"{number}={soft},{hard}" for number, soft, hard in spec.limits().wanted)])


class _Twice(Exception):
    pass


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(found := dict(pairs)) < len(pairs):
        raise _Twice
    return found


def _made(options: list[str], sources: list[Path], path: Path) -> bool:
    compiler = os.environ.get("CC", "cc").split()
    try:
        return subprocess.run([*compiler, *options, "-o", path, *sources], check=False, capture_output=True).returncode == 0
    except OSError:
        return False


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """The parsers as a program, with sanitizers where the compiler has them."""
    made = tmp_path / "parsers"
    sources = [HERE / "parsers.c", *(SOURCES / f"{name}.c" for name in ("json", "lease", "memory", "orders", "spec"))]
    for options in (CHECKED, []):
        if _made([*options, f"-I{SOURCES}"], sources, made) and subprocess.run([made], input=b"", check=False).returncode == 0:
            return made
    pytest.skip("no C compiler")


def test_what_is_read_is_read_as_by_python_and_nothing_beside_it(program: Path) -> None:
    bodies = list(_bodies(random.Random(SEED)))
    data = b"".join(len(body).to_bytes(4, "big") + body for body in bodies)
    done = subprocess.run([program], input=data, capture_output=True, check=False)
    assert (done.returncode, done.stderr.decode(errors="replace")) == (0, "")
    said = done.stdout.decode("latin-1").split("\n")
    templates: dict[int, Template] = {}
    taken = 0
    for body, line in zip(bodies, said, strict=False):
        if line.startswith("python"):
            continue
        try:
            json.loads(body.decode("utf-8", "surrogatepass"), object_pairs_hook=_once)
            match orders.read_order(parse(body)):
                case orders.Template(number, fields):
                    templates[number] = Template(fields)
                case orders.Begin(number, own) if number in templates:
                    taken += 1
                    assert line == _shown(Spec(templates[number], own)), body
        except (_Twice, ValueError):
            continue  # a name twice, or no order at all: the starter sends none
    assert taken > MANY / 20


WITHOUT_PROC = """
import ctypes, os, sys
libc, library = ctypes.CDLL(None, use_errno=True), ctypes.CDLL(sys.argv[1])
private = libc.unshare(0x20000) or libc.mount(None, b"/", None, 0x44000, None)
if private or libc.mount(b"none", b"/proc", b"tmpfs", 0, None):
    sys.exit(os.strerror(ctypes.get_errno()))
library.kill_below.restype = ctypes.c_bool
child = os.fork()
if child == 0:
    os.execv("/bin/sleep", ["sleep", "1000"])
print(library.kill_below(0), os.waitpid(child, os.WNOHANG))
os.kill(child, 9)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be without /proc")
def test_where_the_kernel_does_not_tell_of_children_python_looks_for_them(tmp_path: Path) -> None:
    library = tmp_path / "kill.so"
    if not _made(["-fPIC", "-shared"], [SOURCES / "kill.c"], library):
        pytest.skip("no C compiler")
    done = subprocess.run([sys.executable, "-ISc", WITHOUT_PROC, library], capture_output=True, text=True, check=False)
    if "not permitted" in done.stderr:
        pytest.skip("no mounts here")
    assert (done.stdout, done.stderr) == ("False (0, 0)\n", "")
