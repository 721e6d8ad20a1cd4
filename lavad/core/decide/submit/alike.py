"""Submissions that differ in little, of one request or one after the other: what they have in common is read and checked once.

Rule: of what is kept, nothing depends on the name, command and files of a job, nor on jobs that were submitted since.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from config.model.queue import QueueConfig
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.draft import JobDraft
from lavad.core.events import Event
from lavad.core.job.spec import JobText, Spec
from lavad.core.lang.asks import Caller, OptionValue, Submit
from lavad.core.lang.role_asks import PolicyAsk
from lavad.core.rules.pending import Waiting

OWN = frozenset(("J", "Jd", "o", "oo", "e", "eo"))
"""Options whose readers set what no other reader and no check but their own looks at."""
_APART = frozenset(("a", "w"))
"""Options of which each submission has to be decided by itself: they look at its command, or at jobs before it."""
Common = tuple[JobDraft, QueueConfig, Waiting]
"""A draft, its queue, and how many jobs and slots its user may have pending."""
Alike = dict[bytes, Common]
"""By what submissions have in common."""
MOST = 64
"""Drafts that are kept of submissions one after the other: each knows the names of all hosts."""
_encode = msgspec.msgpack.Encoder().encode
_NO_POLICY = PolicyAsk()


def split_options(options: Mapping[str, OptionValue]) -> tuple[Mapping[str, OptionValue], Mapping[str, OptionValue]]:
    """-> (those that jobs have in common, those that each job has of its own)."""
    if options.keys() <= OWN:
        return {}, options
    common: dict[str, OptionValue] = {}
    own: dict[str, OptionValue] = {}
    for name, value in options.items():
        (own if name in OWN else common)[name] = value
    return common, own


def key_of(ask: Submit, caller: Caller, common: Mapping[str, OptionValue]) -> bytes | None:
    """What another submission has to have in common with it; None: its draft is of no use for another."""
    if ask.roles or ask.policy != _NO_POLICY or "a" in common:
        # the ways to start tasks look at the command
        return None
    return _encode(
        (common, caller, ask.cwd, ask.home, ask.umask, ask.shell, ask.checkpoint_folder, ask.checkpoint_mount, ask.esub)
    )


def runs_with(first: Submit, ask: Submit) -> bool:
    """Whether a submission may be decided together with the first of its request and environment, which may be itself."""
    if ask.roles or ask.restart_of or ask.checkpoint_folder or ask.policy != _NO_POLICY or ask.cwd != first.cwd:
        return False
    if ask.esub != first.esub:
        return False
    if ask.options is not first.options and split_options(ask.options)[0] != split_options(first.options)[0]:
        return False
    return _APART.isdisjoint(ask.options) and "[" not in str(ask.options.get("J", ""))


class Run:
    """Submissions of one caller that are decided together: what those before have added, which the cluster has not got yet.

    Rule: they differ in OWN options alone, are no arrays, and have no condition, which might name one of them.
    """

    __slots__ = ("_numbers", "_spec", "events", "jobs", "next_job", "slots", "texts", "units")

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.texts: list[tuple[int, JobText]] = []
        self.slots = self.units = 0
        """That are pending, of records."""
        self.jobs: set[int] = set()
        """Their ids."""
        self.next_job = 0
        """0: there is none before."""
        self._numbers: dict[Spec, int] = {}
        self._spec: tuple[Spec | None, int] = None, 0

    def number_of(self, spec: Spec) -> int | None:
        """That of the class of a job before; None: there is none."""
        if spec is not self._spec[0]:
            number = self._numbers.get(spec) if self._numbers else None
            if number is None:
                return None
            self._spec = spec, number
        return self._spec[1]

    def has(self, spec: Spec, number: int) -> None:
        """A job of this class was added."""
        self._numbers[spec] = number
        self._spec = spec, number


class Lately:
    """What submissions of the same second have in common, while nothing of the site has changed."""

    def __init__(self) -> None:
        self._stands: tuple[object, ...] = ()
        self._alike: Alike = {}

    def find(self, cluster: Cluster, now: float) -> Alike:
        """For a decision on this state."""
        # a draft is read by conf, hosts, states of queues and reservations, and the time of day
        stands = (int(now), cluster.hosts.moves, cluster.queues.moves, cluster.reservations.moves, cluster.conf)
        if stands != self._stands or len(self._alike) >= MOST:
            self._stands = stands
            self._alike = {}
        return self._alike


def own_draft(common: JobDraft, ask: Submit) -> JobDraft:
    """A draft with what the submission itself says of its work."""
    return replace(common, text=replace(common.text, command=ask.command, script=ask.script, env=ask.env_hash))
