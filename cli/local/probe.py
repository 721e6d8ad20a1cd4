"""One query to one socket, without waiting for a master: whether it serves, and in which state the hosts are. The address that
signs in by a token got so.
"""

from __future__ import annotations

import json
import socket
from pathlib import Path

from cli.client.frames import pack
from proto.unixpath import connect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.client.frames import Frame
    from proto.answers import Reply

PATIENCE = 5


def ask_once(path: Path, frame: Frame) -> list[Reply]:
    """The frames of an answer; [] if no master serves there within PATIENCE seconds."""
    answers: list[Reply] = []
    with socket.socket(socket.AF_UNIX) as link:
        try:
            connect(link, str(path), PATIENCE)
            link.settimeout(PATIENCE)
            link.sendall(pack(frame))
            with link.makefile("rb") as file:
                while head := file.read(4):
                    answers.append(json.loads(file.read(int.from_bytes(head, "big"))))
                    if "out" not in answers[-1] and "err" not in answers[-1]:
                        break
        except (OSError, ValueError):
            return []
    return [] if any("standby" in answer for answer in answers) else answers


def query(path: Path, command: str, options: Frame) -> str | None:
    """What a query prints on stdout; None if no master serves there."""
    answers = ask_once(path, {"ask": "query", "command": command, "options": options, "words": []})
    return "".join(str(answer["out"]) for answer in answers if "out" in answer) if answers else None


def link(address: str, token: str) -> str:
    """The address of a page that signs in whoever has this token, which a master gave."""
    return f"{address.rstrip('/')}/login?link={token}"
