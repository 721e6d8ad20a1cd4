"""badmin gpuopen and gpuclose: what runs on a GPU that is closed goes on, and no new job gets it."""

from __future__ import annotations

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.base.decisions import decides
from lavad.core.decide.report.gpus import closed_gpu
from lavad.core.lang.asks import Caller, Gpus, Refused
from lavad.core.site.host import Gpu, Host
from lavad.core.site.rights import why_not_switch
from proto.answers import Result
from proto.numbers import find_number


@decides(Gpus)
def switch_gpus(cluster: Cluster, ask: Gpus, caller: Caller, now: float) -> Decided:
    """badmin gpuopen and gpuclose; as with hosts, a name that is not known refuses all."""
    decided = Decided(answer={"results": []})
    for name in dict.fromkeys(ask.gpus):
        host, _, ids = name.partition(":")
        row = cluster.hosts.rows.get(host)
        if row is None:
            raise Refused(f"{host}: Bad host name, host group name or cluster name")
        if not ids:
            raise Refused(f"{name}: No GPU is named; say HOST:ID[,ID ...], an ID is an index or a UUID")
        why = why_not_switch(cluster.conf, host, caller)
        for word in dict.fromkeys(ids.split(",")):
            if not why:
                decided.events += _switch(cluster, row, word, ask, caller, now)
            result: Result = {"gpu": f"{host}:{word}", "ok": not why, "why": why}
            decided.answer["results"].append(result)
    return decided


def _switch(cluster: Cluster, host: Host, word: str, ask: Gpus, caller: Caller, now: float) -> list[ev.Event]:
    gpu = _find(host, word)
    if not gpu:
        raise Refused(f"{host.name}:{word}: No such GPU on host <{host.name}>")
    if not ask.close and closed_gpu(cluster, host.name, gpu) is None:
        return []
    return [ev.GpuSwitched(at=now, host=host.name, gpu=gpu, closed=ask.close, by=caller.user, comment=ask.comment)]


def _find(host: Host, word: str) -> str:
    """The UUID that an index or UUID names, "" for none; also of one that is closed and no longer there."""

    index = find_number(word)

    def is_it(gpu: Gpu) -> bool:
        return gpu.uuid == word or (gpu.index == index and not gpu.parent)

    known = (*(gpu.uuid for gpu in host.facts.gpus if is_it(gpu)), *(gpu.uuid for gpu in host.closed_gpus if gpu.uuid == word))
    return next(iter(known), "")
