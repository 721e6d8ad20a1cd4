"""The pure scheduling cycle: classes of one job, and arrays, on many hosts. One JSON object a line; milliseconds.

``first`` is a cycle with an empty memory (it reads every requirement), ``warm`` one that knows the classes, ``after``
the one after the plan, ``idle`` one in which nothing changed, ``accept`` the master's re-check of the plan. Where jobs end while
others wait (``ends``), ``warm`` is the cycle after such an end.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import msgspec

from config.model.cluster import Limit
from config.model.guarantees import Amount, Goal, Pool, ServiceClass
from config.model.queue import FOR_EVER, QueueConfig
from config.model.values import FairShare, Preemption
from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.placement.placement import accept_plan
from lavad.core.events.apply import apply
from lavad.core.job.spec import Role, Spec
from lavad.core.lang.gpureq import GpuReq, merge, parse
from lavad.core.lang.ids import key_of
from lavad.core.lang.ranges import Ranges
from lavad.core.lang.states import JobState
from lavad.core.plan.volatile import Soft
from lavad.core.site.conf import Conf, Params
from lavad.core.site.host import Facts, Gpu
from lavad.sched.cycle.cycle import schedule
from lavad.sched.state.scheduler_cache import SchedulerCache

NOW = 1_000_000.0
LOCAL = (1, 43_200)


def make(hosts: int, slots: int) -> tuple[Cluster, Soft]:
    """A cluster of idle hosts."""
    cluster, soft = Cluster(), Soft()
    conf = Conf(queues=(QueueConfig(name="normal"),), params=Params(parallel_sched_by_slot=True))
    apply(cluster, ev.Configured(at=NOW, conf=conf))
    for at in range(hosts):
        name = f"host{at:05d}"
        apply(cluster, ev.HostJoined(at=NOW, host=name, facts=Facts(ncpus=slots, max_mem=64_000)))
        apply(cluster, ev.HostUp(at=NOW, host=name))
        soft.load[name] = {"r15s": (at * 7919 % 100) / 50, "pg": 0.0, "ut": 0.1, "mem": 60_000.0, "tmp": 9_000.0}
    return cluster, soft


def submit(cluster: Cluster, number: int, spec: Spec, elements: int = 0) -> None:
    """One job, or an array, of its own class."""
    apply(cluster, ev.SpecAdded(at=NOW, spec=number, value=spec))
    indices = Ranges.span(1, elements) if elements else None
    apply(cluster, ev.JobSubmitted(at=NOW, key=number, spec=number, name="job", indices=indices))


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Milliseconds and result."""
    start = time.perf_counter()
    result = call()
    return (time.perf_counter() - start) * 1000, result


def run(name: str, cluster: Cluster, soft: Soft, **about: Any) -> None:
    """Measure a cluster with pending jobs and print the line."""
    cache = SchedulerCache()
    first, plan = timed(lambda: schedule(cluster, soft, NOW, LOCAL, cache))
    warm, plan = min((timed(lambda: schedule(cluster, soft, NOW, LOCAL, cache)) for _ in range(3)), key=lambda t: t[0])
    accept, events = timed(lambda: accept_plan(cluster, plan, NOW, "seed"))
    for event in events:
        apply(cluster, event)
    after, _ = timed(lambda: schedule(cluster, soft, NOW, LOCAL, cache))
    idle, _ = min((timed(lambda: schedule(cluster, soft, NOW, LOCAL, cache)) for _ in range(3)), key=lambda t: t[0])
    times = {"first_ms": first, "warm_ms": warm, "accept_ms": accept, "after_ms": after, "idle_ms": idle}
    line = {"benchmark": f"cycle_{name}", **about, "placed": len(plan.placements)}
    print(json.dumps(line | {key: round(value, 3) for key, value in times.items()}), flush=True)


def classes_of_one(count: int, hosts: int) -> None:
    """``count`` classes of one job each, all different in their memory."""
    cluster, soft = make(hosts, 16)
    for number in range(1, count + 1):
        submit(cluster, number, Spec(user=f"u{number % 50}", queue="normal", resreq=f"rusage[mem={100 + number}]"))
    run("classes", cluster, soft, classes=count, hosts=hosts)


def blocked_classes(count: int, hosts: int) -> None:
    """Classes that fit nowhere: more memory than any host has."""
    cluster, soft = make(hosts, 16)
    for number in range(1, count + 1):
        submit(cluster, number, Spec(user="u", queue="normal", resreq=f"rusage[mem={100_000 + number}]"))
    run("blocked", cluster, soft, classes=count, hosts=hosts)


def full_cluster(count: int, hosts: int) -> None:
    """Classes that wait for a nearly full cluster."""
    cluster, soft = make(hosts, 1)
    submit(cluster, 1, Spec(user="u", queue="normal"), elements=hosts)
    for event in accept_all(cluster, soft):
        apply(cluster, event)
    for number in range(2, count + 2):
        submit(cluster, number, Spec(user="u", queue="normal", resreq=f"rusage[mem={100 + number}]"))
    run("full", cluster, soft, classes=count, hosts=hosts)


WAITING = {
    "never": (8, "select[maxmem>{}]"),
    "load": (8, "select[mem>{}]"),
    "compound": (8, "1*{{select[mem>{}]}}+7*{{span[ptile=2]}}"),
    "slots": (0, "select[maxmem<{}]"),
    "same": (0, "select[maxmem<{}] same[type]"),
    "gpus": (1, "select[maxmem<{}] rusage[mem=1]"),
    "pool": (0, "select[maxmem<{}]"),
    "owner": (0, "select[maxmem<{}]"),
    "reserving": (4, "select[maxmem<{}] rusage[mem=61000] span[hosts=1]"),
    "goal": (1, "select[maxmem<{}]"),
}
"""What jobs wait for: (slots, 0 for as many as there are in all; a requirement that is another for each)."""
_SLOTS = Params(parallel_sched_by_slot=True)
_NORMAL = QueueConfig(name="normal")
SITES = {
    "pool": Conf(
        queues=(_NORMAL,),
        params=_SLOTS,
        service_classes=(ServiceClass(name="gold"),),
        pools=(Pool(name="pool", type="slots", distribution=(("gold", Amount(100)),)),),
    ),
    "owner": Conf(queues=(_NORMAL, QueueConfig(name="owner", weight=1, guarantee=50)), params=_SLOTS),
    "reserving": Conf(queues=(QueueConfig(name="normal", slot_reserve=FOR_EVER),), params=_SLOTS),
    "goal": Conf(
        queues=(_NORMAL,),
        params=_SLOTS,
        service_classes=(
            ServiceClass(name="goal", goals=(Goal("deadline", 0, "8:00-18:00"), Goal("velocity", 1, "11:00-13:00"))),
        ),
    ),
}
"""Where they wait, if not in one plain queue: beside a guaranteed pool or a queue that owns slots, with SLOT_RESERVE, in a
service class whose goals need one at once."""
ENDS = 5


def jobs_that_end(what: str, count: int, hosts: int) -> None:
    """``count`` classes of WAITING wait, of which the end of another job makes room for none (by goals: for one)."""
    cluster, soft = make(hosts, 8)
    if what in SITES:
        apply(cluster, ev.Configured(at=NOW, conf=SITES[what]))
    gpu = merge(parse("num=1:j_exclusive=yes"), GpuReq()) if what == "gpus" else None
    for name in list(cluster.hosts.rows) if gpu else ():
        facts = Facts(ncpus=8, max_mem=64_000, gpus=(Gpu(f"{name}.0", 0, "H200", 140_000),))
        apply(cluster, ev.HostJoined(at=NOW, host=name, facts=facts))
    submit(cluster, 1, Spec(user="u", queue="normal", resreq="span[ptile=1]", slots=hosts, max_slots=hosts, gpu=gpu))
    submit(cluster, 2, Spec(user="u", queue="normal"), elements=ENDS)
    for event in accept_all(cluster, soft):
        apply(cluster, event)
    slots, resreq = WAITING[what]
    for number in range(3, count + 3):
        spec = Spec(user="u", queue="normal", resreq=resreq.format(100_000 + number), slots=slots or 8 * hosts, gpu=gpu)
        if what == "goal":
            spec = msgspec.structs.replace(spec, service_class="goal")
        submit(cluster, number, msgspec.structs.replace(spec, max_slots=spec.slots))
    cache = SchedulerCache()
    first, _ = timed(lambda: schedule(cluster, soft, NOW, LOCAL, cache))
    times = []
    for index in range(1, ENDS + 1):
        apply(cluster, ev.JobFinished(at=NOW, key=key_of(2, index), state=JobState.DONE))
        host = f"host{index:05d}"
        soft.load[host] = dict(soft.load[host])
        times.append(timed(lambda: schedule(cluster, soft, NOW, LOCAL, cache))[0])
    line = {"benchmark": f"cycle_ends_{what}", "classes": count, "hosts": hosts, "first_ms": round(first, 3)}
    print(json.dumps(line | {"warm_ms": round(statistics.median(times), 3)}), flush=True)


def roles_of(workers: int, gpus: int = 0, mem: int = 100) -> dict[str, Any]:
    """Fields of the spec of a job with a master and so many workers, each with a slot and ``gpus`` GPUs."""
    master = Role(name="master", gpus=gpus, resreq=f"rusage[mem={mem}]")
    roles = (master, Role(name="worker", count=workers, least=workers, gpus=gpus))
    gpu = merge(parse("num=1:j_exclusive=yes"), GpuReq()) if gpus else None
    return {"roles": roles, "slots": workers + 1, "max_slots": workers + 1, "gpu": gpu}


def jobs_with_roles(count: int, hosts: int, gpus: int) -> None:
    """``count`` small jobs with roles, of which all fit, and as many large ones on hosts that are nearly full, which wait."""
    cluster, soft = make(hosts, 8)
    for name in list(cluster.hosts.rows) if gpus else ():
        cards = tuple(Gpu(f"{name}.{at}", at, "H200", 140_000) for at in range(8))
        apply(cluster, ev.HostJoined(at=NOW, host=name, facts=Facts(ncpus=8, max_mem=64_000, gpus=cards)))
    for number in range(1, count + 1):
        submit(cluster, number, Spec(user=f"u{number % 50}", queue="normal", **roles_of(2, gpus, number)))
    run("roles", cluster, soft, classes=count, hosts=hosts, gpus=gpus)
    for number in range(count + 1, 2 * count + 1):
        submit(cluster, number, Spec(user=f"u{number % 50}", queue="normal", **roles_of(4 * hosts, gpus, number)))
    run("roles_waiting", cluster, soft, classes=count, hosts=hosts, gpus=gpus)


TOGETHER = {
    "pool": SITES["pool"],
    "limit": Conf(queues=(_NORMAL,), params=_SLOTS, limits=(Limit(name="most", hosts=("all",), slots=1_000),)),
}


def bound_together(count: int, hosts: int) -> None:
    """``count`` jobs with roles, of which most wait for what a pool or a limit leaves of several hosts."""
    for what, conf in TOGETHER.items():
        cluster, soft = make(hosts, 8)
        apply(cluster, ev.Configured(at=NOW, conf=conf))
        for number in range(1, count + 1):
            submit(cluster, number, Spec(user=f"u{number % 50}", queue="normal", **roles_of(20, mem=number)))
        run(f"roles_{what}", cluster, soft, classes=count, hosts=hosts)


def jobs_with_gpus(count: int, hosts: int) -> None:
    """``count`` jobs of a GPU each that all differ in their memory, and as many of 32 GPUs on 4 hosts, of which few fit."""
    for what, spec in (
        ("one", Spec(user="u", queue="normal", gpu=merge(parse("num=1:j_exclusive=yes"), GpuReq()))),
        ("many", Spec(user="u", queue="normal", slots=4, max_slots=4, gpu=merge(parse("num=8:j_exclusive=yes"), GpuReq()))),
    ):
        cluster, soft = make(hosts, 16)
        for name in list(cluster.hosts.rows):
            cards = tuple(Gpu(f"{name}.{at}", at, "H200", 140_000) for at in range(8))
            apply(cluster, ev.HostJoined(at=NOW, host=name, facts=Facts(ncpus=16, max_mem=64_000, gpus=cards)))
        for number in range(1, count + 1):
            submit(cluster, number, msgspec.structs.replace(spec, resreq=f"span[ptile=1] rusage[mem={100 + number}]"))
        run(f"gpu_{what}", cluster, soft, classes=count, hosts=hosts)


def limited(count: int, elements: int, hosts: int) -> None:
    """``count`` arrays by a limit of the slots on each host: what is left over of a host is no class's."""
    cluster, soft = make(hosts, 16)
    limit = Limit(name="each", per_host=True, slots=10)
    conf = Conf(queues=(QueueConfig(name="normal"),), limits=(limit,), params=Params(parallel_sched_by_slot=True))
    apply(cluster, ev.Configured(at=NOW, conf=conf))
    for number in range(1, count + 1):
        submit(
            cluster, number, Spec(user=f"u{number % 50}", queue="normal", resreq=f"rusage[mem={100 + number}]"), elements=elements
        )
    run("limited", cluster, soft, classes=count, elements=elements, hosts=hosts)


def preempting(count: int, hosts: int) -> None:
    """``count`` jobs for which preempting others, who would keep their memory, makes no room."""
    cluster, soft = make(hosts, 16)
    low, high = QueueConfig(name="low"), QueueConfig(name="high", priority=60, preemption=Preemption(preemptive=True))
    apply(cluster, ev.Configured(at=NOW, conf=Conf(queues=(low, high), params=Params(parallel_sched_by_slot=True))))
    submit(cluster, 1, Spec(user="u", queue="low", resreq="rusage[mem=3900]"), elements=hosts * 15)
    for event in accept_all(cluster, soft):
        apply(cluster, event)
    for number in range(2, count + 2):
        submit(cluster, number, Spec(user=f"u{number % 50}", queue="high", resreq=f"rusage[mem={4_000 + number}]"))
    run("preempting", cluster, soft, classes=count, hosts=hosts)


def accept_all(cluster: Cluster, soft: Soft) -> list[ev.Event]:
    """What a first cycle starts."""
    return accept_plan(cluster, schedule(cluster, soft, NOW, LOCAL, SchedulerCache()), NOW, "fill")


def arrays(count: int, elements: int, hosts: int) -> None:
    """``count`` arrays of ``elements`` each."""
    cluster, soft = make(hosts, 16)
    for number in range(1, count + 1):
        submit(cluster, number, Spec(user=f"u{number}", queue="normal", resreq="rusage[mem=100]"), elements=elements)
    run("arrays", cluster, soft, classes=count, elements=elements, hosts=hosts)


def fair_share(users: int, classes: int, hosts: int, fair: bool = True, elements: int = 0) -> None:
    """``users`` with ``classes`` each in one queue, by fair share (or, to compare, first come, first served)."""
    cluster, soft = make(hosts, 16)
    share = FairShare(shares=(("default", 1),)) if fair else None
    conf = Conf(queues=(QueueConfig(name="normal", share=share),), params=Params(parallel_sched_by_slot=True))
    apply(cluster, ev.Configured(at=NOW, conf=conf))
    for number in range(users * classes):
        spec = Spec(user=f"u{number % users}", queue="normal", resreq=f"rusage[mem={100 + number // users}]")
        submit(cluster, number + 1, spec, elements)
    about = {"users": users, "classes": users * classes, "hosts": hosts, "elements": elements}
    run("fair_share" if fair else "fcfs", cluster, soft, **about)


def gpu_jobs(count: int, hosts: int) -> None:
    """``count`` jobs of 1 to 8 GPUs of 50 users on hosts of 8 GPUs in two islands, and some over several hosts."""
    cluster, soft = make(hosts, 64)
    links = ["".join("X" if a == b else "N" if a // 4 == b // 4 else "S" for b in range(8)) for a in range(8)]
    for name in list(cluster.hosts.rows):
        cards = (Gpu(f"{name}.{at}", at, "H200", 140_000, links=row, numa=at // 4) for at, row in enumerate(links))
        apply(cluster, ev.HostJoined(at=NOW, host=name, facts=Facts(ncpus=64, max_mem=64_000, gpus=tuple(cards))))
    for number in range(1, count + 1):
        gpus, slots = ((1, 1), (1, 1), (2, 1), (4, 1), (8, 1), (8, 4))[number % 6]
        gpu = merge(parse(f"num={gpus}:j_exclusive=yes"), GpuReq())
        spec = Spec(user=f"u{number // 6 % 50}", queue="normal", slots=slots, max_slots=slots, gpu=gpu, resreq="span[ptile=1]")
        known = cluster.spec_numbers.get(spec) or cluster.next_spec
        if known not in cluster.specs.rows:
            apply(cluster, ev.SpecAdded(at=NOW, spec=known, value=spec))
        apply(cluster, ev.JobSubmitted(at=NOW, key=number, spec=known, name="job"))
    run("gpus", cluster, soft, classes=len(cluster.specs.rows), hosts=hosts, jobs=count)


def many_users(count: int, hosts: int) -> None:
    """Two arrays of each of many users, each with a share and a limit by name, and in one of a hundred groups of equal shares."""
    users = [f"u{number}" for number in range(count)]
    groups = [(f"g{at}", tuple(users[at::100])) for at in range(100)]
    by_name = FairShare(shares=tuple((user, 1 + at % 5) for at, user in enumerate(users)))
    by_group = FairShare(shares=tuple((name, 1) for name, _ in groups))
    conf = Conf(
        queues=(QueueConfig(name="normal", share=by_name), QueueConfig(name="teams", share=by_group)),
        params=Params(parallel_sched_by_slot=True),
        user_groups=tuple(groups),
        group_shares=tuple((name, (("default", 1),)) for name, _ in groups),
        limits=tuple(Limit(name=f"of_{user}", users=(user,), slots=3) for user in users),
    )
    cluster, soft = make(hosts, 8)
    apply(cluster, ev.Configured(at=NOW, conf=conf))
    for at, user in enumerate(users):
        for place, queue in enumerate(("normal", "teams")):
            submit(cluster, 1 + 2 * at + place, Spec(user=user, queue=queue), elements=20)
    run("users", cluster, soft, classes=2 * count, hosts=hosts)


def one_host() -> None:
    """The cycle that runs hundreds of times a second on a laptop: one host, one array."""
    cluster, soft = make(1, 64)
    submit(cluster, 1, Spec(user="u", queue="normal"), elements=100_000)
    run("one_host", cluster, soft, classes=1, elements=100_000, hosts=1)


def main() -> int:
    """Run all, or a small set with --quick."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    one_host()
    gpu_jobs(1_000 if quick else 10_000, 50 if quick else 500)
    for hosts in (50,) if quick else (50, 1_000):
        for fair in (False, True):
            fair_share(100, 100, hosts, fair)
            fair_share(100, 10, hosts, fair, elements=1_000)
    for hosts in (1_000,) if quick else (1_000, 10_000):
        classes_of_one(1_000, hosts)
        classes_of_one(1_000 if quick else 10_000, hosts)
        blocked_classes(1_000, hosts)
        full_cluster(1_000 if quick else 10_000, hosts)
        arrays(100, 10_000, hosts)
    for what in WAITING:
        jobs_that_end(what, 200 if quick else 2_000, 300)
    for gpus in (0, 1):
        jobs_with_roles(100 if quick else 1_000, 50 if quick else 500, gpus)
    bound_together(100 if quick else 1_000, 50 if quick else 500)
    jobs_with_gpus(100 if quick else 1_000, 50 if quick else 500)
    hosts, count = (100, 200) if quick else (500, 2_000)
    limited(count, 50, hosts)
    many_users(500 if quick else 5_000, hosts)
    preempting(count, hosts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
