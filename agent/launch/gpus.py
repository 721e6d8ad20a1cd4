"""Which GPUs of its host a part and each of its tasks see, as variables that CUDA and container runtimes read.

Rule: pure. GPUs are named by UUID, or by the id of a MIG instance, so that a number never means another GPU. A job that was given
none sees none, whatever the submitter's environment says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent.starter.protocol.part import CgroupLimits, DeviceRule, MpsSpec, PartSpec
from proto import agent_pb2 as pb

_MAJOR = 195
_CONTROL = 254
"""/dev/nvidiaN has number N; from here on are /dev/nvidia-modeset and nvidiactl, which every CUDA program opens."""
VISIBLE = "CUDA_VISIBLE_DEVICES"
_CONTAINERS = "NVIDIA_VISIBLE_DEVICES"
_OWN = frozenset((VISIBLE, _CONTAINERS, *MpsSpec("", "").variables))
_NO_GPU = "void"
"""What NVIDIA's container runtime takes for no GPU at all."""


def is_own(name: str) -> bool:
    """Whether a variable says which GPUs are seen, or by which MPS: it is set here and never taken from a submission."""
    return name in _OWN or (name.startswith(VISIBLE) and name[len(VISIBLE) :].isdecimal())


def seen(uuids: Sequence[str]) -> dict[str, str]:
    """The variables of a process that is to see these."""
    text = ",".join(uuids)
    return {VISIBLE: text, _CONTAINERS: text or _NO_GPU}


def by_task(text: pb.JobText, start: pb.Start) -> list[list[str]]:
    """The GPUs of one task of this host after the other; [] where all its tasks see all that the host gave.

    num=N/task: as many for each. block=yes, with more tasks than GPUs: one each, the first tasks the first GPU, and so on.
    """
    here, each = start.hosts[start.place], text.gpus_per_task
    cards = list(here.gpus)
    if text.gpu_blocks and 0 < len(cards) < here.slots:
        return [[cards[at * len(cards) // here.slots]] for at in range(here.slots)]
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


def apart(part: PartSpec, text: pb.JobText, start: pb.Start, cards: Sequence[pb.Gpu]) -> PartSpec:
    """The part with the rule that keeps its processes from the device files of other GPUs, where the site wants that.

    ``cards``: all GPUs of this host. Where the number of a GPU that was given is not known there is no rule: it would be shut.
    """
    if not text.enforce_gpu or not cards:
        return part
    minors = {_minor(uuid, cards) for uuid in start.hosts[start.place].gpus}
    if -1 in minors:
        return part
    rule = DeviceRule(_MAJOR, tuple(sorted(minors)), _CONTROL)
    return part._replace(cgroup=(part.cgroup or CgroupLimits())._replace(devices=(rule,)))


def _minor(uuid: str, cards: Sequence[pb.Gpu]) -> int:
    """The N of /dev/nvidiaN: of a MIG instance, that of its GPU; -1: not known."""
    found = next((card for card in cards if card.uuid == uuid), None)
    if found is None:
        return -1
    return _minor(found.parent, cards) if found.parent else found.minor


def alone(text: pb.JobText, start: pb.Start) -> list[str]:
    """The GPUs of this host that must be in exclusive_process mode for the part (mode=exclusive_process)."""
    return list(start.hosts[start.place].gpus) if text.gpu_mode == "exclusive_process" else []


def with_mps(part: PartSpec, text: pb.JobText, start: pb.Start, cards: Sequence[pb.Gpu], folder: str) -> PartSpec:
    """The part with the MPS daemons that it asked for: one, one a socket or one a GPU; ``folder``: where their folders are.

    A task is a client of the daemon that has its first GPU. nocvd: CUDA_VISIBLE_DEVICES is the daemons' alone.
    """
    how, *words = text.gpu_mps.split(",")
    mine = list(start.hosts[start.place].gpus)
    if not mine or how in ("", "no"):
        return part
    sockets = {card.uuid: card.numa for card in cards}
    sets: dict[object, list[str]] = {}
    for uuid in mine:
        sets.setdefault(uuid if how == "per_gpu" else sockets.get(uuid, -1) if how == "per_socket" else None, []).append(uuid)
    stem = f"{folder}/lava-{part.uid[:16]}"  # short, as a socket's path is, and known to nobody before the part is here
    daemons = tuple(MpsSpec(f"{stem}.mps{number}", ",".join(one)) for number, one in enumerate(sets.values()))
    of_gpu = {uuid: daemon.variables for daemon in daemons for uuid in daemon.gpus.split(",")}

    def client(env: Mapping[str, str], own: str) -> dict[str, str]:
        found = {**env, **of_gpu.get(own.partition(",")[0], {})}
        return {name: value for name, value in found.items() if not name.startswith(VISIBLE)} if "nocvd" in words else found

    tasks = part.tasks and tuple(task._replace(env=client(task.env, task.env.get(VISIBLE, ""))) for task in part.tasks)
    return part._replace(env=client(part.env, mine[0]), tasks=tasks, mps=daemons)
