"""One sentence about what a job asked for and did not use, in the words of its report, of bjobs -l and of lava stats."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from proto import gpu_waste

LEAST = 60.0
"""Seconds of run time below which nothing is said of slots, memory and time: a short job tells nothing of the next."""
_GB = 1 << 20
"""KB."""
_ROOM = 1.25
"""What is advised, as a multiple of what was used."""
_IDLE = 0.02
"""CPUs per slot below which a host of a job did nothing."""


class Use(NamedTuple):
    """What a job asked for and used: times in seconds, memory in KB (0: nothing asked, or not known)."""

    ran: float
    slots: int
    cpu: float
    max_mem: int = 0
    asked_mem: float = 0.0
    run_limit: float = 0.0
    succeeded: bool = False
    held: float = 0.0
    """Slots times seconds of a job that grew or shrank; 0: it had all its slots for all of its time."""
    hosts: Sequence[tuple[str, int, float]] = ()
    """Of each its name, slots and CPU time; () where they are not known apart."""
    gpus: Sequence[tuple[float, float]] = ()
    """Of each the seconds of known use and those in which it was idle."""

    @property
    def slot_seconds(self) -> float:
        """For how long it had how many slots."""
        return self.held or self.ran * self.slots

    @property
    def cpu_share(self) -> float:
        """Of its slots, 0 to 1 and above."""
        held = self.slot_seconds
        return self.cpu / held if held else 0.0

    @property
    def mem_share(self) -> float:
        """Of the memory that it asked for; 0: none was asked."""
        return self.max_mem / self.asked_mem if self.asked_mem else 0.0

    @property
    def time_share(self) -> float:
        """Of its run limit; 0: it has none."""
        return self.ran / self.run_limit if self.run_limit else 0.0


def sentence(use: Use) -> str:
    """What to ask for next time, the greatest waste first; "" where nothing to speak of is wasted."""
    said = _of_gpus(use)
    if said or use.ran < LEAST:
        return said
    return _of_hosts(use) or _of_slots(use) or _of_memory(use) or _of_time(use)


def _of_gpus(use: Use) -> str:
    wasted = gpu_waste.sentence(use.gpus)
    if not wasted:
        return ""
    idle = sum(known >= gpu_waste.LEAST and part / known >= gpu_waste.WASTED for known, part in use.gpus)
    left = len(use.gpus) - idle
    return f"{wasted}: {'ask for fewer' if left else 'does the program use GPUs at all? else ask for none'}"


def _of_hosts(use: Use) -> str:
    """Of several hosts, those that did nothing while another worked."""
    still = [name for name, slots, cpu in use.hosts if cpu < _IDLE * slots * use.ran]
    if not still or len(still) == len(use.hosts):
        return ""
    named = ", ".join(still[:3]) + (f" and {len(still) - 3} more" if len(still) > 3 else "")
    which = f"{len(still)} of {len(use.hosts)} hosts did nothing ({named})"
    return f"{which}: start the program on all (-a mpi, blaunch), or ask for one host"


def _of_slots(use: Use) -> str:
    used = use.cpu / use.ran
    if use.slots < 2 or use.cpu_share >= 0.5:
        return ""
    wanted = max(1, math.ceil(used * 1.1))
    if wanted >= use.slots:
        return ""
    return f"it used {used:.1f} of its {use.slots} slots: ask for -n {wanted}, or let the program use them"


def _of_memory(use: Use) -> str:
    if not use.max_mem or not use.asked_mem or use.mem_share >= 0.5 or use.asked_mem - use.max_mem < _GB:
        return ""
    return (
        f"it used {size(use.max_mem)} of the {size(use.asked_mem)} of memory that it reserved: {enough(use.max_mem)} are enough"
    )


def _of_time(use: Use) -> str:
    if not use.succeeded or use.run_limit < 3600 or use.time_share >= 0.25:
        return ""
    minutes = max(10, math.ceil(use.ran * 2 / 600) * 10)
    ran = f"it ran {use.ran / 60:.0f} min of the {use.run_limit / 60:.0f} min of its run limit"
    return f"{ran}: with -W {minutes} such a job may start earlier"


def size(kb: float) -> str:
    """``4.2 GB``, ``900 MB``."""
    if kb >= _GB:
        return f"{kb / _GB:.1f}".removesuffix(".0") + " GB"
    return f"{max(1, round(kb / 1024))} MB" if kb else "0 MB"


def enough(kb: float) -> str:
    """The memory to ask for where so much is needed: ``6GB`` for 4.2 GB."""
    wanted = kb * _ROOM
    return f"{math.ceil(wanted / _GB)}GB" if wanted >= 2 * _GB else f"{100 * max(1, math.ceil(wanted / 102400))}MB"
