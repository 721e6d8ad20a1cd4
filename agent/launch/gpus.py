"""Which GPUs of its host a part and each of its tasks see, as variables that CUDA and container runtimes read.

Rule: pure. GPUs are named by UUID, or by the id of a MIG instance, so that a number never means another GPU. A job that was given
none sees none, whatever the submitter's environment says.
"""

from __future__ import annotations

from collections.abc import Sequence

from proto import agent_pb2 as pb

VISIBLE = "CUDA_VISIBLE_DEVICES"
_CONTAINERS = "NVIDIA_VISIBLE_DEVICES"
_NO_GPU = "void"
"""What NVIDIA's container runtime takes for no GPU at all."""


def is_own(name: str) -> bool:
    """Whether a variable says which GPUs are seen: it is set here and never taken from a submission or a caller."""
    return name in (VISIBLE, _CONTAINERS) or (name.startswith(VISIBLE) and name[len(VISIBLE) :].isdecimal())


def seen(uuids: Sequence[str]) -> dict[str, str]:
    """The variables of a process that is to see these."""
    text = ",".join(uuids)
    return {VISIBLE: text, _CONTAINERS: text or _NO_GPU}


def by_task(text: pb.JobText, start: pb.Start) -> list[list[str]]:
    """num=N/task: the GPUs of one task of this host after the other; [] where all its tasks see all that the host gave."""
    here, each = start.hosts[start.place], text.gpus_per_task
    cards = list(here.gpus)
    if not each or len(cards) != each * here.slots:
        return []
    return [cards[at : at + each] for at in range(0, len(cards), each)]


def of_part(text: pb.JobText, start: pb.Start) -> dict[str, str]:
    """The variables of the part: all its GPUs, and for each task LSF's CUDA_VISIBLE_DEVICES<number of the task in the job>."""
    cards = list(start.hosts[start.place].gpus)
    env = seen(cards)
    if cards:
        env["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    first = 1 + sum(host.slots for host in start.hosts[: start.place])
    return env | {f"{VISIBLE}{number}": ",".join(own) for number, own in enumerate(by_task(text, start), first)}


def of_rank(text: pb.JobText, start: pb.Start, local: int) -> dict[str, str]:
    """What a rank has over the part's variables; ``local`` is its number on this host."""
    own = by_task(text, start)
    return seen(own[local]) if own else {}
