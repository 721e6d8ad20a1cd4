"""What a hostile user does, run as that user: one kind of ask in a loop on one socket, without waiting when told to.

usage: python hostile.py KIND SOCKET SECONDS      prints how many asks got which kind of answer, as JSON
"""

from __future__ import annotations

import json
import os
import random
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

Frame = dict[str, Any]
NAME = "a" * 4000


def submit(**options: Any) -> Frame:
    return {"ask": "submit", "uuid": os.urandom(16).hex(), "command": "sleep 1000", "options": {"H": True, **options}}


def query(command: str, *words: str, **options: Any) -> Frame:
    return {"ask": "query", "command": command, "options": options, "words": list(words)}


def noise() -> Frame:
    kinds = ["kill", "stop", "modify", "post", "requeue", "move", "wait", "judge", "resize", "query", "nosuch"]
    return {"ask": random.choice(kinds), random.choice(["job", "jobs", "uuid", "x"]): random.choice([1, "1", [], {}, "9" * 9000])}


KINDS: dict[str, Callable[[], Frame]] = {
    "submits": submit,
    "classes": lambda: submit(P=f"p{random.random()}"),
    "names": lambda: submit(J=NAME),
    "requirements": lambda: submit(R="select[" + " && ".join(f"mem>{random.randrange(99)}" for _ in range(500)) + "]"),
    "arrays": lambda: submit(J="a[1-1000]"),
    "projects": lambda: submit(P=os.urandom(4000).hex()),
    "scripts": lambda: {**submit(), "script": "#" * (1 << 20)},
    "environments": lambda: {**submit(), "env": {"X": os.urandom(200_000).hex()}},
    "uuids": lambda: {**submit(), "uuid": f"{random.randrange(50)}"},
    "stars": lambda: {"ask": "kill", "jobs": {"name": "*a" * 2000 + "b", "ids": ["0"]}},
    "ids": lambda: {"ask": "kill", "jobs": {"ids": [str(random.randrange(1, 10**6)) for _ in range(20_000)]}},
    "elements": lambda: {"ask": "requeue", "states": ["DONE"], "jobs": {"ids": ["1[1-2147483646]"]}},
    "messages": lambda: {
        "ask": "post",
        "job": str(random.randrange(1, 100)),
        "text": "t" * 500,
        "number": random.randrange(128),
        "body": "b" * 65_000,
    },
    "bacct": lambda: query("bacct", u="all"),
    "bjobs": lambda: query("bjobs", u="all", l=True),
    "own": lambda: query("bjobs"),
    "noise": noise,
}


def read(link: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = link.recv(size - len(data))
        if not piece:
            raise ConnectionError
        data += piece
    return data


def asked(link: socket.socket, frame: Frame) -> str:
    """The kind of the last frame of the answer."""
    body = json.dumps(frame).encode()
    link.sendall(len(body).to_bytes(4, "big") + body)
    while True:
        answer = json.loads(read(link, int.from_bytes(read(link, 4), "big")))
        for last in ("ok", "refused", "exit", "later"):
            if last in answer:
                if "internal error" in str(answer):
                    return "INTERNAL ERROR"
                return "full" if answer.get("retry") else last


def main(kind: str, path: str, seconds: float) -> None:
    counts: Counter[str] = Counter()
    until = time.monotonic() + seconds
    link: socket.socket | None = None
    while time.monotonic() < until:
        try:
            if link is None:
                link = socket.socket(socket.AF_UNIX)
                link.settimeout(30)
                link.connect(path)
            answer = asked(link, KINDS[kind]())
            counts[answer] += 1
            if answer == "later":
                time.sleep(0.02)
        except OSError as error:
            counts[type(error).__name__] += 1
            link = None
            time.sleep(0.05)
    print(json.dumps(counts))  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
