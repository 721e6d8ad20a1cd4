"""Where a test can see that daemons go before jobs (``proto.daemon.cpu_precedence``)."""

from __future__ import annotations

from pathlib import Path

import pytest

AUTOGROUP = Path("/proc/self/autogroup")
"""Reads as nothing in a session that nobody has called setsid(2) for since the host started."""
_CAP_SYS_NICE = 23


def _may_go_before() -> bool:
    """Root has no right to it in a container without CAP_SYS_NICE (capabilities(7))."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return any(line.startswith("CapEff:") and int(line.split()[1], 16) >> _CAP_SYS_NICE & 1 for line in lines)


needs_autogroups = pytest.mark.skipif(not AUTOGROUP.exists(), reason="this kernel has no autogroups")
needs_precedence = pytest.mark.skipif(
    not (AUTOGROUP.exists() and _may_go_before()), reason="needs autogroups, and the right to go before others"
)
