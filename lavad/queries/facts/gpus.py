"""What -gpu adds to bjobs -l, bhist -l and bacct -l: the GPUs that a job asked for and those that it has or had.

Rule: the columns are LSF's; of the MIG slices, the factor and the reserved memory of a GPU lava knows nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lavad.core.job.job import Job, Part
from lavad.core.job.spec import Spec
from lavad.core.lang import gpureq
from lavad.core.site.host import Gpu
from lavad.queries.facts import jobfacts
from lavad.queries.frame.view import View

_HEAD = (
    " HOST             TASK GPU_ID  GI_PLACEMENT/SIZE    CI_PLACEMENT/SIZE    MODEL        MTOTAL  FACTOR MRSV    "
    "SOCKET NVLINK/XGMI                      \n"
)


def requirement(spec: Spec) -> str:
    """The requirement as it was put together from job, application and queue; "" without one."""
    if spec.gpu is None:
        return ""
    text = gpureq.show(spec.gpu)
    return f"\n GPU REQUIREMENT DETAILS:\n Combined: {text}\n Effective: {text}\n"


def allocation(view: View, job: Job) -> str:
    """The table of its GPUs, "" if it has none."""
    rows = "".join(row for part in jobfacts.parts_of(job) for row in _rows(view, part))
    return f"\n GPU_ALLOCATION:\n{_HEAD}{rows}" if rows else ""


def _rows(view: View, part: Part) -> Iterator[str]:
    host = view.cluster.hosts.rows.get(part.host)
    known = {gpu.uuid: gpu for gpu in host.facts.gpus} if host is not None else {}
    mine = [known.get(uuid) or Gpu(uuid=uuid, index=-1) for uuid in part.gpus]
    for at, gpu in enumerate(mine):
        model, socket = gpu.model.replace(" ", "") or "-", str(gpu.numa) if gpu.numa >= 0 else "-"
        yield (
            f" {part.host if not at else '':<16.16} {_task(at, len(mine), part.slots):<4} {gpu.index:<7} {'-':<20} {'-':<20} "
            f"{model:<12.12} {_size(gpu.memory):<7} {0.0:<6} {'0M':<7} {socket:<6} {gpu_links(gpu, mine):<32}\n"
        )


def _task(at: int, gpus: int, tasks: int) -> str:
    """The task of a part that a GPU belongs to; ``-`` where they do not come out even."""
    return str(at // (gpus // tasks)) if gpus >= tasks and gpus % tasks == 0 else "-"


def gpu_links(gpu: Gpu, mine: Sequence[Gpu]) -> str:
    """``-/Y/N``: whether NVLink joins it to each of the job's GPUs on this host."""
    if not gpu.links:
        return "-"
    return "/".join("-" if other is gpu else "Y" if gpu.links[other.index : other.index + 1] == "N" else "N" for other in mine)


def _size(mb: int) -> str:
    return f"{mb / 1024:.1f}".removesuffix(".0") + "G" if mb else "-"
