"""The method by which a job is checkpointed: ``auto`` becomes what the job and the hosts can do; ``criu`` needs certain hosts.

Rule: a job that its method cannot checkpoint is refused with the reason, so that nobody finds out only when a host is lost.
"""

from __future__ import annotations

from msgspec.structs import replace

from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.containers import image_of
from lavad.core.decide.base.draft import JobDraft
from lavad.core.job.spec import JobText, Spec
from lavad.core.lang.asks import Refused
from lavad.core.lang.resreq import text as resreq
from lavad.core.rules.checkpoint_folder import hosts_for
from lavad.core.rules.copy_hosts import why_nowhere

APP, AUTO, CRIU = "app", "auto", "criu"
_HOSTS = f"select[{CRIU}]"
_ONE_HOST = "span[hosts=1]"


def settle_method(cluster: Cluster, draft: JobDraft) -> None:
    """Choose where the method is ``auto``, and ask for hosts that can; raises Refused for what cannot be checkpointed so."""
    checkpoint = draft.spec.checkpoint
    if checkpoint is None:
        return
    method = checkpoint.method
    if method == AUTO and not cluster.conf.params.lsb_echkpnt_method:
        method = CRIU if _picks_criu(cluster, draft.spec, draft.text) else APP
        draft.set_spec(checkpoint=replace(checkpoint, method=method))
        draft.notices = [*draft.notices, f"Job will be checkpointed by method {method}"]
    if method == CRIU:
        why = _why_not(cluster, draft.spec, draft.text)
        if why:
            raise Refused(f"{CRIU}: {why}")
        _require(draft, resreq.parse(_HOSTS))
    _settle_stage(cluster, draft)


def _settle_stage(cluster: Cluster, draft: JobDraft) -> None:
    """A job whose checkpoints are on its hosts' own disks is on one host, or on several of so many slots each.

    Raises Refused for what cannot be.
    """
    spec = draft.spec
    if spec.checkpoint is None or not spec.checkpoint.copied:
        return
    if spec.checkpoint.to_hosts and (why := why_nowhere(cluster, spec)):
        raise Refused(f"-k: stage names no folder (stage=DIR), the cluster has none (LAVA_CHKPNT_STAGE_DIR), and {why}")
    if spec.roles or spec.resizable:
        what = "several roles" if spec.roles else "a size that changes"
        raise Refused(f"-k: stage: a job of {what} writes its checkpoints where all of its hosts see them")
    if _may_be_on_one_host(spec):
        _require(draft, resreq.ResReq())
    elif why := _why_not_over_hosts(spec, cluster.conf.params.lsb_echkpnt_method):
        raise Refused(f"-k: stage: {why}")


def _why_not_over_hosts(spec: Spec, of_site: str) -> str:
    """Why a job's generations cannot be on the disks of several hosts, "" where they can. ``of_site``: LSB_ECHKPNT_METHOD."""
    assert spec.checkpoint is not None
    if spec.checkpoint.to_hosts:
        return "copies on other hosts (LAVA_CHKPNT_COPY_DIR) are of jobs on one host: name a shared folder (stage=DIR)"
    method = spec.checkpoint.method
    if (of_site or APP if method in ("", AUTO) else method) not in (APP, "default"):
        return "a job on several hosts writes its checkpoints itself (method=app)"
    req = resreq.parse(spec.resreq)
    fixed = req.span is not None and (req.span.kind, req.span.gtile) == ("ptile", "") and req.span.n > 0 and not req.span.by_type
    if req.alternatives or req.compound or not fixed or spec.slots != spec.max_slots:
        return "a job on several hosts needs -n SLOTS and span[ptile=SLOTS], as a restart needs the same number on each host"
    return ""


def _picks_criu(cluster: Cluster, spec: Spec, text: JobText) -> bool:
    """Whether ``auto`` is ``criu``: one of its hosts can, and neither hosts nor network of the job change for it."""
    able = any(CRIU in host.facts.resources for host in hosts_for(cluster, spec))
    one = _may_be_on_one_host(spec, asked=True)
    return able and one and not spec.launch and not _why_not(cluster, spec, text)


def _why_not(cluster: Cluster, spec: Spec, text: JobText) -> str:
    """Why CRIU cannot checkpoint a job, "" where it may."""
    if spec.roles:
        return "a job with several roles writes its checkpoints itself (method=app)"
    if spec.launch not in ("", "mpi"):
        return f"the tasks of -a {spec.launch.split()[0]} are not one process tree: they write their checkpoints (method=app)"
    if text.label or text.rank_files:
        return "the ranks of the job write to one output, as they are (no -label, no -rankfiles)"
    if spec.gpu is not None:
        return "lava cannot restore the state of GPUs"
    if spec.resizable:
        return "the job is on one host, and cannot be resized"
    if container := image_of(cluster, spec, text.software):
        return f"the processes of container {container[:80]} are its runner's"
    if not _may_be_on_one_host(spec):
        return "it dumps and restores the processes of one host: -n needs span[hosts=1]"
    return ""


def _may_be_on_one_host(spec: Spec, asked: bool = False) -> bool:
    """Whether all slots can be on one host; ``asked``: whether the requirement, each alternative of it, says so."""
    if max(spec.slots, spec.max_slots) == 1:
        return True
    req = resreq.parse(spec.resreq)
    ways = [part for part, _ in req.alternatives] or [req]
    spans = [way.span for way in ways]
    compound = any(way.compound for way in ways)
    return not compound and all((span.kind, span.n) == ("hosts", 1) if span is not None else not asked for span in spans)


def _require(draft: JobDraft, hosts: resreq.ResReq) -> None:
    """Put one host, and ``hosts``, before the job's requirement, which stays as it was written where it says so already."""
    spec = draft.spec
    own = resreq.parse(spec.resreq)
    one = resreq.parse(_ONE_HOST if max(spec.slots, spec.max_slots) > 1 else "")
    wanted = resreq.combine(one, hosts, own)
    if wanted != own:
        draft.set_spec(resreq=wanted.text)
