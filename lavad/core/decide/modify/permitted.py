"""What bmod and bswitch let the owner of a waiting job make of it, for those who look for a change that would help it or its
like."""

from __future__ import annotations

from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.draft import JobDraft
from lavad.core.decide.modify.switch import ANY_TIME, spec_in_queue
from lavad.core.decide.submit.defaults import check_against_app
from lavad.core.decide.submit.queue_rules import check_against_queue
from lavad.core.decide.submit.submit import known_names
from lavad.core.job.job import Job
from lavad.core.job.spec import JobText, Spec
from lavad.core.lang.asks import Caller, Refused


class Permitted:
    """``user``: whose job it is."""

    def __init__(self, cluster: Cluster, user: str, has_checkpoint: bool = False) -> None:
        self._cluster = cluster
        self._owner = Caller(user=user, uid=0 if user == "root" else -1, host="")
        self._has_checkpoint = has_checkpoint

    @classmethod
    def of(cls, cluster: Cluster, key: int) -> Permitted:
        """Of a job or element that waits."""
        record = cluster.get(key)
        return cls(cluster, cluster.specs.rows[record.spec].user, isinstance(record, Job) and record.checkpoint >= 0)

    def in_queue(self, spec: Spec, queue: str) -> Spec | None:
        """Its spec once it is in another queue; None: bswitch would refuse that."""
        found = spec_in_queue(self._cluster, spec, queue, self._owner, (False, self._has_checkpoint))
        return None if isinstance(found, str) else found

    def takes(self, spec: Spec) -> bool:
        """Whether its queue and its application profile let it ask for these slots, limits and resources."""
        cluster, queue = self._cluster, self._cluster.queue_conf.get(spec.queue)
        draft = JobDraft(spec=spec, text=JobText(command=""), conf=cluster.conf, local=ANY_TIME, known_hosts=known_names(cluster))
        try:
            check_against_app(draft)
            if queue is not None:
                check_against_queue(draft, queue)
        except Refused:
            return False
        return True
