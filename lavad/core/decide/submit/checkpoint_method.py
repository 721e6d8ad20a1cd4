"""The method by which a job is checkpointed: ``auto`` becomes what the job and the hosts can do; ``criu`` needs certain hosts.

Rule: a job that its method cannot checkpoint is refused with the reason, and never found out to be so when a host is lost.
"""

from __future__ import annotations

from msgspec.structs import replace

from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.draft import JobDraft
from lavad.core.job.spec import JobText, Spec
from lavad.core.lang.asks import Refused
from lavad.core.lang.resreq import text as resreq
from lavad.core.rules.checkpoint_folder import hosts_for

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
        why = _why_not(draft.spec, draft.text)
        if why:
            raise Refused(f"{CRIU}: {why}")
        draft.set_spec(resreq=_on_able_hosts(draft.spec))
    _settle_stage(draft)


def _settle_stage(draft: JobDraft) -> None:
    """A job whose checkpoints are on its host's own disk is on one host; raises Refused for what cannot be."""
    spec = draft.spec
    if spec.checkpoint is None or not spec.checkpoint.stage:
        return
    several = max(spec.slots, spec.max_slots) > 1
    if spec.roles or spec.resizable or (several and not _is_on_one_host(spec.resreq)):
        what = "several roles" if spec.roles else "a size that changes" if spec.resizable else "several hosts"
        raise Refused(f"-k: stage: a job of {what} writes its checkpoints where all of its hosts see them")
    if several:
        draft.set_spec(resreq=resreq.combine(resreq.parse(_ONE_HOST), resreq.parse(spec.resreq)).text)


def _picks_criu(cluster: Cluster, spec: Spec, text: JobText) -> bool:
    """Whether ``auto`` is ``criu``: one of its hosts can, and neither hosts nor network of the job change for it."""
    one = max(spec.slots, spec.max_slots) == 1 or "span[hosts=1]" in spec.resreq
    able = any(CRIU in host.facts.resources for host in hosts_for(cluster, spec))
    return able and one and not spec.launch and not _why_not(spec, text)


def _why_not(spec: Spec, text: JobText) -> str:
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
    if container := next((step[1] for step in text.software if step[0] == "container"), ""):
        return f"the processes of container {container[:80]} are its runner's"
    several = max(spec.slots, spec.max_slots) > 1 and not _is_on_one_host(spec.resreq)
    return "it dumps and restores the processes of one host: -n needs span[hosts=1]" if several else ""


def _is_on_one_host(text: str) -> bool:
    """Whether a requirement leaves the number of hosts open, or says that it is one."""
    req = resreq.parse(text)
    ways = [part for part, _ in req.alternatives] or [req]
    return all(not way.compound and (way.span is None or (way.span.kind, way.span.n) == ("hosts", 1)) for way in ways)


def _on_able_hosts(spec: Spec) -> str:
    """The job's requirement, on one host that can."""
    own = resreq.parse(spec.resreq)
    text = f"{_HOSTS} {_ONE_HOST}" if max(spec.slots, spec.max_slots) > 1 else _HOSTS
    return spec.resreq if CRIU in resreq.names_in(own.select) else resreq.combine(resreq.parse(text), own).text
