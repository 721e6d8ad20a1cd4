"""How the ports that a part keeps free travel: ``ip:port;tcp=P1,P2`` in a report, all hosts' lists in the word to go.

Rule: pure. ``ip:port`` is the shepherd's own link; a list of a host that keeps none is empty, lists are divided by ``/``.
"""

from __future__ import annotations

from typing import Any

_TCP = ";tcp="


def address_text(found: list[Any] | None) -> str:
    """What the master is told, of a starter's [ip, port, tcp port …]; ip "" where the part has no link."""
    if not found:
        return ""
    link = f"{found[0]}:{found[1]}" if found[0] else ""
    return link + (_TCP + ",".join(map(str, found[2:])) if len(found) > 2 else "")


def root_of(text: str) -> list[Any] | None:
    """What the starter is told, of the master's word: [ip, port], behind them the lists of ports if there are any."""
    link, tcp, lists = text.partition(_TCP)
    host, colon, port = link.rpartition(":")
    found: list[Any] | None = [host, int(port)] if colon and port.isdecimal() else None
    if not tcp:
        return found
    ports = [[int(one) for one in part.split(",") if one.isdecimal()] for part in lists.split("/")]
    return [*(found or ["", 0]), ports]
