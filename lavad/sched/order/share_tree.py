"""Share trees: which share a user has of a queue (or queues, or host partition), and the priority that follows from it now.

At each level of the tree LSF's dynamic priority decides ("Fairshare scheduling" in LSF's Administration guide):

    shares / (cpu_time * CPU_TIME_FACTOR + (run_time + historical_run_time) * RUN_TIME_FACTOR
              + (committed_run_time - run_time) * COMMITTED_RUN_TIME_FACTOR
              + (1 + job_slots) * RUN_JOB_FACTOR + gpu_run_time * GPU_RUN_TIME_FACTOR)

With DOMINANT_RESOURCES (lava's own) it is shares over the dominant share: the largest of the fractions that the user has of
the cluster's slots, memory and GPUs (DRF, Ghodsi et al. 2011), level by level (H-DRF).

Rule: a group counts what all below it use. Sums are made in the order of accounts, never in that of a dict's history, so that
a replica and a restarted master come to the very same numbers.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping

from config.model.values import SHARE_KEYWORDS, FairShare, Shares
from lavad.core.job.user_group import left_out, named_group
from lavad.core.site.conf import Conf

Step = tuple[str, int, int]
"""Name, shares and place among its siblings of a node on the way from the root."""
Path = tuple[Step, ...]
_LEAST = 0.01
"""The smallest denominator of the formula, as in LSF."""


class _Level:
    """Shares side by side, of which there may be one for each of thousands of users."""

    def __init__(self, shares: Shares, groups: Container[str]) -> None:
        self.shares = shares
        self.places: dict[str, list[int]] = {}
        """Where each name is."""
        for at, (name, _) in enumerate(shares):
            self.places.setdefault(name, []).append(at)
        self.of_many = [at for at, (name, _) in enumerate(shares) if name in SHARE_KEYWORDS or _bare(name) in groups]
        """Where those are that several users may have."""


class Policy:
    """A share tree as configured. ``number``: its place among all; ``queues``: those under it, the one that defines it first."""

    def __init__(self, number: int, name: str, queues: tuple[str, ...], share: FairShare, conf: Conf) -> None:
        self.number = number
        self.name = name
        self.queues = queues
        self.share = share
        self.shares: Shares = share.shares or (("default", 1),)
        self._groups = conf.groups_of_users.members
        self._group_shares = dict(conf.group_shares)
        self._members = {name: conf.groups_of_users.users(name) for name in self._named_groups(self.shares, set())}
        self._levels: dict[str, _Level] = {}
        self._paths: dict[tuple[str, str], Path | None] = {}

    def _named_groups(self, shares: Shares, seen: set[str]) -> set[str]:
        for name, _ in shares:
            group = _bare(name)
            if group in self._groups and group not in seen:
                seen.add(group)
                self._named_groups(self._group_shares.get(group, ()), seen)
        return seen

    def find_path(self, user: str, group: str) -> Path | None:
        """The path to a user's leaf; None: the user has no share.

        It leads through the group that the job was submitted for (-G), else to the user's own share, else through the first
        group that has the user, else to ``default`` or ``others``; never through a group that -G leaves out.
        """
        key = (user, group)
        if key not in self._paths:
            found = sorted(self._ways(self._level("", self.shares), user, left_out(group)), key=lambda way: way[:2])
            named = named_group(group)
            wanted = [way for _, way, groups in found if named in groups] if named else []
            self._paths[key] = next(iter(wanted or [way for _, way, _ in found]), None)
        return self._paths[key]

    def _level(self, group: str, shares: Shares) -> _Level:
        """The shares that a group has; "": those at the root."""
        if group not in self._levels:
            self._levels[group] = _Level(shares, self._groups)
        return self._levels[group]

    def _ways(self, level: _Level, user: str, above: frozenset[str]) -> Iterator[tuple[tuple[int, ...], Path, frozenset[str]]]:
        """(rank, path, groups that it leads through) of all paths to a user.

        At each level the user's own share ranks first, then groups, default, others. The path has no step for ``group@``.
        It leads through no group of ``above``.
        """
        for at in level.places.get(user, ()):
            yield (0, at), ((user, level.shares[at][1], at),), above
        for at in level.of_many:
            name, count = level.shares[at]
            group = _bare(name)
            if name == user:
                continue
            if name in SHARE_KEYWORDS:
                yield (2 + SHARE_KEYWORDS.index(name), at), ((user if name == "default" else name, count, at),), above
            elif group not in above and user in self._members[group]:
                if name.endswith("@"):
                    yield (1, at), ((user, count, at),), above | {group}
                elif inner := self._group_shares.get(group):
                    for rank, way, groups in self._ways(self._level(group, inner), user, above | {group}):
                        yield (1, at, *rank), ((group, count, at), *way), groups
                else:
                    yield (1, at), ((group, count, at),), above | {group}

    def entries(self) -> Iterator[Path]:
        """The paths to all that the configuration names, so that listings show them even where nobody uses them."""
        yield from self._entries(self.shares, frozenset())

    def _entries(self, shares: Shares, above: frozenset[str]) -> Iterator[Path]:
        for at, (name, count) in enumerate(shares):
            group = _bare(name)
            if name == "default":
                continue
            if name.endswith("@") and group in self._members:
                users = sorted(user for user in self._members[group].users if user not in self._groups)
                yield from (((user, count, at),) for user in users)
                continue
            step = (group if group in self._groups else name, count, at)
            yield (step,)
            inner = self._group_shares.get(group, ()) if group in self._groups and group not in above else ()
            yield from ((step, *way) for way in self._entries(inner, above | {group}))


def _bare(name: str) -> str:
    return name.rstrip("@/")


class Node:
    """A user, group or ``others``: its use is the sum of all below it. Times in seconds (as decayed), memory in KB."""

    __slots__ = (
        "at",
        "children",
        "committed",
        "cpu",
        "gpu",
        "gpus",
        "hist_gpu",
        "hist_run",
        "mem",
        "name",
        "parent",
        "reserved",
        "run",
        "shares",
        "slots",
        "started",
    )

    def __init__(self, name: str, shares: int, at: int, parent: Node | None) -> None:
        self.name = name
        self.shares = shares
        self.at = at
        self.parent = parent
        self.children: dict[tuple[int, str], Node] = {}
        self.cpu = self.run = self.gpu = self.hist_run = self.hist_gpu = self.committed = 0.0
        self.slots = self.reserved = self.started = self.gpus = self.mem = 0

    def add(self, **amounts: float) -> None:
        """Add to this node and all above it."""
        node: Node | None = self
        while node is not None:
            for name, amount in amounts.items():
                setattr(node, name, getattr(node, name) + amount)
            node = node.parent

    def charge(self, slots: int, gpus: int, mem: int) -> None:
        """A job starts: it counts for this node and all above it."""
        node: Node | None = self
        while node is not None:
            node.slots += slots
            node.gpus += gpus
            node.mem += mem
            node = node.parent


class Tree:
    """One policy's tree in one cycle. ``totals``: what all hosts have of each resource that dominant shares are fractions of."""

    def __init__(self, policy: Policy, totals: Mapping[str, float]) -> None:
        self.policy = policy
        self.totals = totals
        self.root = Node(policy.name, 1, 0, None)
        self.changes = 0
        """Grows with every start: keys made before are too small, or right."""
        self._leaves: dict[tuple[str, str], Node | None] = {}
        self._keys: dict[Node, tuple[int, tuple[float, ...]]] = {}

    def leaf(self, user: str, group: str) -> Node | None:
        """The node that jobs of this user count for; None: the user has no share."""
        key = (user, group)
        if key not in self._leaves:
            path = self.policy.find_path(user, group)
            self._leaves[key] = None if path is None else self.node(path)
        return self._leaves[key]

    def node(self, path: Path) -> Node:
        """The node at the end of a path, made if it is not there yet."""
        node = self.root
        for name, shares, at in path:
            child = node.children.get((at, name))
            if child is None:
                child = node.children[at, name] = Node(name, shares, at, node)
            node = child
        return node

    def charge(self, node: Node, slots: int, gpus: int, mem: int) -> None:
        """A job of this node starts; the priorities of its path fall. ``mem`` in KB."""
        node.charge(slots, gpus, mem)
        self.changes += 1

    def priority(self, node: Node) -> float:
        """The dynamic priority of a node among its siblings, by LSF's formula or by its dominant share."""
        share = self.policy.share
        if share.dominant_resources:
            return node.shares / max(self.dominant(node), 1e-9)
        return node.shares / max(self.used(node), _LEAST)

    def used(self, node: Node) -> float:
        """The denominator of LSF's formula; times count in hours."""
        share = self.policy.share
        run = node.run + node.hist_run
        hours = node.cpu * share.cpu_time_factor + run * share.run_time_factor
        if share.committed_run_time_factor:
            hours += max(0.0, node.committed - node.run) * share.committed_run_time_factor
        if share.gpu_run_time_factor:
            hours += (node.gpu + node.hist_gpu) * share.gpu_run_time_factor
        return hours / 3600 + (1 + node.slots + node.reserved) * share.run_job_factor

    def dominant(self, node: Node) -> float:
        """The node's dominant share, 0.0 to 1.0."""
        return max((self.fraction(node, name) for name in self.policy.share.dominant_resources), default=0.0)

    def fraction(self, node: Node, name: str) -> float:
        """The fraction of all that the cluster has of a resource that the node has."""
        total = self.totals.get(name, 0.0)
        has = {"slots": node.slots + node.reserved, "mem": node.mem / 1024, "gpus": node.gpus}[name]
        return has / total if total else 0.0

    def key(self, node: Node) -> tuple[float, ...]:
        """The node's place among all leaves, smallest first: at each level its priority, then its place in the configuration."""
        known = self._keys.get(node)
        if known is not None and known[0] == self.changes:
            return known[1]
        key: tuple[float, ...] = (-self.priority(node),)
        above = node.parent
        while above is not None and above.parent is not None:
            key = (-self.priority(above), above.at, *key)
            above = above.parent
        self._keys[node] = (self.changes, key)
        return key
