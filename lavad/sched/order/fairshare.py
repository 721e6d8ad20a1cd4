"""Fair share in one cycle: the share trees of all policies with what is used now, and each class's place by them.

Rule: within a cycle priorities only fall, with each start; so a place worked out earlier is never too far back, and whoever
kept one works it out again before relying on it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from math import fsum

from lavad.core.cluster.accounts import COMMITTED, GPUS, JOBS, MEM, SLOTS, gpu_seconds, run_seconds
from lavad.core.cluster.charge import Account, account_of, decayed, mean_decayed, used_by
from lavad.core.cluster.cluster import Cluster
from lavad.core.job.job import Placed
from lavad.core.job.spec import Spec
from lavad.core.plan.volatile import Soft
from lavad.core.site.conf import Conf
from lavad.sched.order.share_tree import Node, Policy, Tree

LAST = (float("inf"),)
"""The place of users without a share, behind all who have one."""


def queue_policies(conf: Conf) -> dict[str, Policy]:
    """Queue to its fair share policy: its own (FAIRSHARE), or that of the first queue whose FAIRSHARE_QUEUES names it."""
    found: dict[str, Policy] = {}
    for number, queue in enumerate(conf.queues):
        if queue.share is not None:
            names = (queue.name, *(name for name in queue.share.queues if name != queue.name))
            policy = Policy(number, queue.name, names, queue.share, conf)
            found.update({name: policy for name in names if name not in found})
    return found


def partition_policies(conf: Conf) -> list[Policy]:
    """The policies of host partitions (HPART_HOSTS), over all queues without fair share of their own."""
    free = tuple(queue.name for queue in conf.queues if queue.name not in queue_policies(conf))
    first = len(conf.queues)
    return [Policy(first + at, part.name, free, part.share, conf) for at, part in enumerate(conf.partitions)]


def make_tree(policy: Policy, cluster: Cluster, soft: Soft, now: float) -> Tree:
    """A policy's tree with what each account uses now and has used before (decayed by HIST_HOURS)."""
    share = policy.share
    tree = Tree(policy, _totals(cluster) if share.dominant_resources else {})
    ruled = frozenset(policy.queues)
    faded = _decayed_run(cluster, ruled, share.hist_hours, now) if share.run_time_decay else {}
    for account in sorted(account for account in cluster.accounts.rows if account[0] in ruled):
        node = tree.leaf(account[1], account[2])
        if node is not None:
            row = cluster.accounts.rows[account]
            _add_live(node, row, faded.get(account, 0.0) if share.run_time_decay else run_seconds(row, now), now)
    for account, slots in sorted(_held(cluster, ruled).items()):
        node = tree.leaf(account[1], account[2])
        if node is not None:
            node.add(reserved=slots)
    for account in sorted(account for account in cluster.charges.rows if account[0] in ruled):
        charge = cluster.charges.rows[account]
        node = tree.leaf(account[1], account[2])
        if node is not None:
            sums = [decayed(amount, now - charge.at, share.hist_hours) for amount in (charge.cpu, charge.run, charge.gpu)]
            node.add(
                cpu=sums[0],
                hist_run=sums[1] * share.enable_hist_run_time,
                hist_gpu=sums[2] * share.enable_gpu_hist_run_time,
            )
    if not share.round_robin and not share.dominant_resources:
        for account, cpu in sorted(running_cpu(cluster, soft, ruled, share.hist_hours).items()):
            node = tree.leaf(account[1], account[2])
            if node is not None:
                node.add(cpu=cpu)
    return tree


def _add_live(node: Node, row: list[int], run: float, now: float) -> None:
    gpu, committed = gpu_seconds(row, now), row[COMMITTED]
    node.add(run=run, gpu=gpu, committed=committed, slots=row[SLOTS], started=row[JOBS], gpus=row[GPUS], mem=row[MEM])


def _held(cluster: Cluster, queues: frozenset[str]) -> Counter[Account]:
    """Account to the slots that are held for its waiting jobs in these queues."""
    found: Counter[Account] = Counter()
    for key in cluster.promised:
        job = cluster.jobs.rows[key]
        spec = cluster.specs.rows[job.spec]
        if spec.queue in queues:
            found[account_of(spec)] += sum(part.slots for part in job.promised)
    return found


def _decayed_run(cluster: Cluster, queues: frozenset[str], hours: float, now: float) -> dict[Account, float]:
    """Account to the slot seconds of its running jobs in these queues, each decayed as it will be charged at its end."""
    used: defaultdict[Account, list[float]] = defaultdict(list)
    for key in cluster.started:
        job = cluster.jobs.rows[key]
        spec = cluster.specs.rows[job.spec]
        if job.run is not None and job.run.started and spec.queue in queues:
            seconds, _, slots, _ = used_by(job.run, now)
            used[account_of(spec)].append(mean_decayed(slots, seconds, hours))
    return {account: fsum(amounts) for account, amounts in used.items()}


def running_cpu(cluster: Cluster, soft: Soft, queues: frozenset[str], hours: float) -> dict[Account, float]:
    """Account to the CPU seconds that its running jobs in these queues have used so far, decayed by HIST_HOURS."""
    jobs, specs = cluster.jobs.rows, cluster.specs.rows
    used: defaultdict[Account, list[float]] = defaultdict(list)
    for key, hosts in soft.usage.items():
        job = jobs.get(key)
        if job is None or job.run is None:
            continue
        spec = specs[job.spec]
        if spec.queue in queues:
            attempt = job.run
            known = [(usage.cpu, usage.at) for usage in hosts.values() if usage.attempt == attempt.number]
            if known and attempt.spent[2]:
                # of hosts that have left the job
                known.append((attempt.spent[2], max(at for _, at in known)))
            used[account_of(spec)] += [mean_decayed(cpu, at - attempt.started, hours) for cpu, at in known]
    # fsum: the same sum in whatever order the reports came in
    return {account: fsum(amounts) for account, amounts in used.items()}


def _totals(cluster: Cluster) -> dict[str, float]:
    """What all hosts have in slots, memory (MB) and GPUs: dominant shares are fractions of it."""
    slots = mem = gpus = 0
    for name, host in cluster.hosts.rows.items():
        most = cluster.slots_of(name)
        slots += host.facts.ncpus if most < 0 else most
        mem += host.facts.max_mem
        gpus += sum(not gpu.split for gpu in host.facts.gpus)
    return {"slots": float(slots), "mem": float(mem), "gpus": float(gpus)}


class Shares:
    """The share trees of one cycle, each made when it is first asked for."""

    def __init__(self, policies: dict[str, Policy], cluster: Cluster, soft: Soft, now: float) -> None:
        self.policies = policies
        self._cluster, self._soft, self._now = cluster, soft, now
        self._trees: dict[int, Tree] = {}

    def tree(self, policy: Policy) -> Tree:
        tree = self._trees.get(policy.number)
        if tree is None:
            tree = self._trees[policy.number] = make_tree(policy, self._cluster, self._soft, self._now)
        return tree

    def key(self, spec: Spec) -> tuple[float, ...]:
        """The place of a spec's user by fair share, smallest first; () in a queue without fair share."""
        policy = self.policies.get(spec.queue)
        if policy is None:
            return ()
        tree = self.tree(policy)
        node = tree.leaf(spec.user, spec.user_group)
        return (policy.number, *(LAST if node is None else tree.key(node)))

    def priority(self, spec: Spec) -> float:
        """The dynamic priority of a spec's user among its siblings; 0.0 without a share."""
        policy = self.policies.get(spec.queue)
        node = None if policy is None else self.tree(policy).leaf(spec.user, spec.user_group)
        return 0.0 if node is None or policy is None else self.tree(policy).priority(node)

    def charge(self, spec: Spec, parts: tuple[Placed, ...]) -> None:
        """A job of this spec starts: its user's priority falls."""
        policy = self.policies.get(spec.queue)
        if policy is None:
            return
        tree = self.tree(policy)
        node = tree.leaf(spec.user, spec.user_group)
        if node is not None:
            mem = sum(round(amount * 1024) for part in parts for name, amount in part.reserved if name == "mem")
            tree.charge(node, sum(part.slots for part in parts), sum(len(part.gpus) for part in parts), mem)
