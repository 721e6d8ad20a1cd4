"""Orders for an agent from effects: the text of a job once for each stream, then a small order for each part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.leases import lease_of
from lavad.core.job.checkpoints import holds
from lavad.core.job.job import Array, Attempt, Job
from lavad.core.job.spec import JobText, Spec
from lavad.core.lang.ids import index_of, job_of
from lavad.core.rules.copy_hosts import name_of
from lavad.core.rules.effects import ChangeLimits, Effect, KillPart, StartPart
from lavad.core.rules.run_settings import (
    RunSettings,
    TextSettings,
    are_settled,
    leave_grace,
    limits_on,
    run_settings,
    text_settings,
)
from lavad.core.site.conf import Conf
from lavad.core.site.host import Facts
from lavad.hosts.joblink import credentials, holder_print, holder_token, token
from lavad.hosts.sessions import Session
from lavad.wire import encode
from lavad.wire.encode import OrderMessage, Placement, TextMessage
from lavad.wire.records import Holder, KillOrder, StartOrder, TextOrder

START_EXPIRES = 60.0
"""Seconds after which an agent ignores a start order."""


KEPT_CLASSES = 64
"""Settings of classes that are kept."""


class LastTexts:
    """What is kept of texts from one message to the next, to whichever host: jobs that come one by one are often alike, too."""

    def __init__(self) -> None:
        self._env: tuple[Mapping[str, str] | None, TextMessage] = (None, b"")
        self._conf: Conf | None = None
        self._settings: dict[tuple[Spec, TextSettings], RunSettings] = {}

    def env(self, env: Mapping[str, str]) -> TextMessage:
        """The environment, encoded; the last one, which stays the same object as long as it is cached, is known."""
        if self._env[0] is not env:
            self._env = env, encode.env_text(env)
        return self._env[1]

    def settings(self, cluster: Cluster, spec: Spec, own: TextSettings, host: str) -> RunSettings:
        """As ``run_settings``."""
        if not are_settled(spec):
            return run_settings(cluster, spec, own, host)
        if self._conf is not cluster.conf or len(self._settings) >= KEPT_CLASSES:
            self._conf = cluster.conf
            self._settings.clear()
        found = self._settings.get((spec, own))
        if found is None:
            found = self._settings[spec, own] = run_settings(cluster, spec, own, host)
        return found


class Texts:
    """Makes the texts of jobs that go to one stream together: jobs that are alike follow each other, and what they have in common
    is looked up and encoded once."""

    def __init__(self, cluster: Cluster, session: Session, last: LastTexts) -> None:
        self._cluster = cluster
        self._session = session
        self._last = last
        self._class: tuple[int, TextSettings] | None = None
        self._of_class: tuple[RunSettings, TextMessage]
        """Of ``_class``."""

    def message(self, job: Job, text: JobText, env: Mapping[str, str]) -> TextMessage:
        """The text of a job, under the number that it has on the stream."""
        cluster = self._cluster
        array = cluster.arrays.rows.get(job_of(job.key)) if index_of(job.key) else None
        array_end, array_step = _array_range(array)
        settings, of_class = self._find_class(job.spec, text)
        order = TextOrder(
            id=self._session.texts[text_key(cluster, job)].number,
            job=job_of(job.key),
            name=job.name if array is None else array.spec_text,
            submitted=job.submitted,
            spec=cluster.specs.rows[job.spec],
            text=text,
            settings=settings,
            array_end=array_end,
            array_step=array_step,
        )
        return encode.job_text(order, of_class, self._last.env(env))

    def _find_class(self, number: int, text: JobText) -> tuple[RunSettings, TextMessage]:
        own = text_settings(text)
        if self._class != (number, own):
            spec = self._cluster.specs.rows[number]
            settings = self._last.settings(self._cluster, spec, own, self._session.host)
            self._class, self._of_class = (number, own), (settings, encode.class_text(spec, settings))
        return self._of_class


def _array_range(array: Array | None) -> tuple[int, int]:
    """(LSB_JOBINDEX_END, LSB_JOBINDEX_STEP): the last index and the first step of the array's name; (0, 0) for none."""
    if array is None:
        return 0, 0
    ranges = [word for word in array.spec_text.partition("[")[2].partition("]")[0].split(",") if word]
    ends = [int(number) for word in ranges for number in word.partition(":")[0].split("-") if number.strip().isdecimal()]
    step = ranges[0].partition(":")[2].strip() if ranges else ""
    return max([array.indices.max(), *ends]), int(step) if step.isdecimal() else 1


def text_key(cluster: Cluster, job: Job) -> int:
    """The key of the text on a stream: that of the array, while the element has the array's spec."""
    array = cluster.arrays.rows.get(job_of(job.key)) if index_of(job.key) else None
    return job_of(job.key) if array is not None and array.spec == job.spec else job.key


def placement(cluster: Cluster, run: Attempt) -> Placement:
    """The hosts of all parts of an attempt that stay: the same for each part."""
    rows = cluster.hosts.rows
    staying = enumerate(part for part in run.parts if not part.leaving)
    return encode.placement(
        [
            (part, part.node_index if run.elastic else place, rows[part.host].facts.address if part.host in rows else "")
            for place, part in staying
        ]
    )


def holder(cluster: Cluster, secret: bytes, host: str, name: str, generations: Sequence[int] = ()) -> Holder:
    """How a job reaches a host that holds copies of checkpoints of this name; port 0 where the host is gone."""
    facts = cluster.hosts.rows[host].facts if host in cluster.hosts.rows else Facts(address="")
    token = holder_token(secret, host, name)
    return Holder(host, facts.address, facts.copies_port, holder_print(secret, host), token, tuple(generations))


def holders(cluster: Cluster, secret: bytes, job: Job, spec: Spec) -> tuple[Holder, ...]:
    """Hosts with copies of the job's checkpoints, and with those of the one that it restarts (brestart)."""
    if spec.checkpoint is None and job.checkpoints is None:
        return ()
    own = name_of(job, spec.user)
    of = (spec.checkpoint.of_copies, spec.checkpoint.of_held) if spec.checkpoint is not None else ("", ())
    found = [(name, host, numbers) for name, held in ((own, holds(job.checkpoints).items()), of) for host, numbers in held]
    return tuple(holder(cluster, secret, host, name, numbers) for name, host, numbers in found)


def start_order(
    cluster: Cluster, session: Session, effect: StartPart, job: Job, text: int, hosts: Placement, secret: bytes, now: float
) -> OrderMessage:
    """The order to start (or prepare) a part; ``text``: the number of its text there; ``hosts``: the attempt's ``placement``."""
    run = job.run
    assert run is not None
    session.sequence += 1
    spec = cluster.specs.rows[job.spec]
    linked = effect.two_phase or (spec.interactive and effect.host != spec.from_host)
    key, cert = credentials(secret, run.uid) if linked else (b"", b"")
    order = StartOrder(
        key=effect.key,
        attempt=effect.attempt,
        uid=effect.uid,
        sequence=session.sequence,
        text=text,
        two_phase=effect.two_phase,
        place=hosts.places[effect.host],
        expires=now + START_EXPIRES,
        lease=run.lease or lease_of(cluster, spec),
        restart=job.checkpoint,
        go_back=job.checkpoints is not None and job.checkpoints.go_back,
        restart_count=effect.attempt - 1,
        name=job.name,
        token=token(secret, run.uid),
        chunk=run.chunk,
        key_pem=key,
        cert_pem=cert,
        holders=holders(cluster, secret, job, spec),
    )
    return encode.start(order, hosts, session.unpacks)


def other_order(cluster: Cluster, session: Session, effect: Effect, job: Job | None) -> OrderMessage:
    """The order for an effect that needs no text; ``job`` is None where the attempt is over and its remains must end."""
    if isinstance(effect, KillPart):
        grace = leave_grace(cluster, job) if effect.leaves else 0.0
        name = effect.key, effect.attempt, effect.uid
        return encode.kill(KillOrder(*name, effect.leaves, grace, effect.why, effect.status))
    if isinstance(effect, ChangeLimits) and job is not None:
        effect = replace(effect, limits=limits_on(cluster, cluster.specs.rows[job.spec], effect.limits, effect.host))
    return encode.order(effect, session.unpacks)
