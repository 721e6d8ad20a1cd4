"""Where the page of metrics is: LAVA_METRICS_ADDRESS. Apart from the page, whose library few sites need."""

from __future__ import annotations


def split_address(address: str) -> tuple[str, int]:
    """``PORT`` or ``HOST:PORT``; ValueError for anything else."""
    host, _, port = address.rpartition(":")
    return host.strip("[]") or "127.0.0.1", int(port)


def is_loopback(host: str) -> bool:
    """Whether the address can be reached from this machine only."""
    return host in ("localhost", "::1") or host.startswith("127.")
