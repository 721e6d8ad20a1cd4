"""Where a page of lava is served: ``[HOST:]PORT`` of LAVA_WEB_ADDRESS and LAVA_METRICS_ADDRESS."""

from __future__ import annotations

import ipaddress

from proto.numbers import find_number


def split_address(text: str) -> tuple[str, int]:
    """``[HOST:]PORT``, without a host loopback; port 0 is any that is free. Raises ValueError."""
    host, _, number = text.rpartition(":")
    if find_number(number, 0, 65535) is None:
        raise ValueError(f"{text}: [HOST:]PORT is expected")
    return host.strip("[]") or "127.0.0.1", int(number)


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect there."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
