"""The host files of a resizable job: a set of its own, rewritten whenever its hosts change.

Rule: each file is replaced whole, so that a reader sees the hosts before or after a change and nothing between. Files:
``.hosts`` and ``.ranks`` as LSF has them, ``.mcpu`` as LSB_MCPU_HOSTS, ``.slots`` for Open MPI, and ``.discover``, a program
that prints ``host:slots`` lines (Horovod's host discovery script).
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from proto.whole_file import replace_file

KINDS = ("hosts", "ranks", "mcpu", "slots", "discover")
Hosts = Sequence[tuple[str, int]]


def stem_of(folder: str, job: str, attempt: int) -> str:
    """The files of an attempt, without what tells them apart."""
    return os.path.join(folder, f"job.{job}.{attempt}")


def variables(stem: str) -> dict[str, str]:
    """Where a job finds them."""
    return {
        "LSB_DJOB_HOSTFILE": f"{stem}.hosts",
        "LSB_DJOB_RANKFILE": f"{stem}.ranks",
        "LAVA_MCPU_HOSTFILE": f"{stem}.mcpu",
        "LAVA_DISCOVER_HOSTS": f"{stem}.discover",
        "OMPI_MCA_orte_default_hostfile": f"{stem}.slots",
        "PRTE_MCA_prte_default_hostfile": f"{stem}.slots",
        "LSB_RESIZABLE": "Y",
    }


def write(stem: str, hosts: Hosts) -> None:
    """The hosts are these now."""
    names = [host for host, slots in hosts for _ in range(slots)]
    lines = "".join(f"{name}\n" for name in names)
    first = f"{names[0]}\n" if names else ""
    found = "".join(f"echo {host}:{slots}\n" for host, slots in hosts)
    replace_file(f"{stem}.ranks", first + lines)
    replace_file(f"{stem}.mcpu", "".join(f"{host} {slots} " for host, slots in hosts).rstrip() + "\n")
    replace_file(f"{stem}.slots", "".join(f"{host} slots={slots}\n" for host, slots in hosts))
    replace_file(f"{stem}.discover", "#!/bin/sh\n" + found, 0o755)
    replace_file(f"{stem}.hosts", lines)


def remove(stem: str) -> None:
    """The attempt is over here."""
    for kind in KINDS:
        try:
            os.unlink(f"{stem}.{kind}")
        except OSError:
            continue
