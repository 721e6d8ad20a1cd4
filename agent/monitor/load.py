"""The load indices of this host, with LSF's names and units.

Rule: r15s r1m r15m are run queue lengths; ut is 0..1 (``lsload`` shows percent); pg pages/s; io KB/s; ls login users;
it minutes; tmp swp mem are free MB. Means are exponential, as LSF's: over 15 s for r15s, a minute for ut, pg and io.
"""

from __future__ import annotations

import math
import os
import time

import psutil

from config.model.values import LOAD_INDICES

MB = 1 << 20
_SHORTEST = 0.2
"""Seconds between looks at counters: over less, a rate is noise."""


class LoadSampler:
    """Keeps the running means; call ``sample`` every few seconds from one thread. ``tmp``: the folder of that index."""

    def __init__(self, tmp: str = "/tmp") -> None:
        self._tmp = tmp
        self._at = time.monotonic()
        self._queue_at: float | None = None
        self._counters = _read_counters()
        self._means: dict[str, float] = {}
        self._r15s = 0.0

    def sample(self) -> dict[str, float]:
        """All indices now. Before the first rates are known ut is guessed from the run queue; pg and io are 0."""
        now = time.monotonic()
        r1m, _, r15m = psutil.getloadavg()
        self._count_queue(now, r1m)
        self._count_rates(now)
        memory = psutil.virtual_memory()
        users = _find_users()
        values = {
            "r15s": self._r15s,
            "r1m": r1m,
            "r15m": r15m,
            "ut": self._means.get("ut", min(1.0, r1m / (psutil.cpu_count() or 1))),
            "pg": self._means.get("pg", 0.0),
            "io": self._means.get("io", 0.0),
            "ls": len({name for name, _ in users}),
            "it": _idle_minutes([tty for _, tty in users]),
            "tmp": _free_tmp(self._tmp),
            "swp": psutil.swap_memory().free / MB,
            "mem": memory.available / MB,
        }
        return {name: round(float(values[name]), 4) for name in LOAD_INDICES}

    def _count_queue(self, now: float, r1m: float) -> None:
        """r15s: the mean of the run queues seen; the sampling thread itself is not counted."""
        if self._queue_at is None:
            self._r15s = r1m
        else:
            keep = math.exp(-max(0.0, now - self._queue_at) / 15)
            self._r15s = self._r15s * keep + _run_queue() * (1 - keep)
        self._queue_at = now

    def _count_rates(self, now: float) -> None:
        passed = now - self._at
        if passed < _SHORTEST:
            return
        new, old = _read_counters(), self._counters
        self._at, self._counters = now, new
        used = {name: max(0.0, new[name] - old[name]) for name in new}
        cpu = used["busy"] + used["idle"]
        rates = {"pg": used["pages"] / passed, "io": used["kb"] / passed}
        if cpu > 0:
            rates["ut"] = used["busy"] / cpu
        keep = math.exp(-passed / 60)
        for name, rate in rates.items():
            self._means[name] = self._means[name] * keep + rate * (1 - keep) if name in self._means else rate


def _read_counters() -> dict[str, float]:
    """Ever-growing sums: CPU seconds busy and idle, pages swapped, KB of disk."""
    cpu = psutil.cpu_times()
    idle = cpu.idle + getattr(cpu, "iowait", 0.0)
    # guest time is in user time already
    busy = cpu.user + cpu.nice + cpu.system + getattr(cpu, "irq", 0.0) + getattr(cpu, "softirq", 0.0)
    swap = psutil.swap_memory()
    disk = psutil.disk_io_counters()
    page = os.sysconf("SC_PAGE_SIZE")
    return {
        "busy": busy + getattr(cpu, "steal", 0.0),
        "idle": idle,
        "pages": (swap.sin + swap.sout) / page,
        "kb": (disk.read_bytes + disk.write_bytes) / 1024 if disk is not None else 0.0,
    }


def _run_queue() -> float:
    try:
        with open("/proc/loadavg", encoding="ascii") as f:
            running = f.read().split()[3].partition("/")[0]
    except (OSError, IndexError):
        return 0.0
    return max(0.0, float(running) - 1)


def _find_users() -> list[tuple[str, str]]:
    """(name, terminal) of each login; empty where the system keeps no such record."""
    try:
        return [(user.name, user.terminal or "") for user in psutil.users()]
    except (OSError, RuntimeError):
        return []


def _idle_minutes(terminals: list[str]) -> float:
    """Since a key was last pressed in any login; since boot when nobody is logged in."""
    last = psutil.boot_time()
    for terminal in terminals:
        try:
            last = max(last, os.stat(os.path.join("/dev", terminal)).st_atime)
        except OSError:
            continue
    return max(0.0, time.time() - last) / 60


def _free_tmp(folder: str) -> float:
    try:
        return psutil.disk_usage(folder).free / MB
    except OSError:
        return 0.0
