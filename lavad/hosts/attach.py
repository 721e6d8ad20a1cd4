"""Address and keys for the user of an interactive job; only for the owner of the job."""

from __future__ import annotations

from lavad.core.cluster.cluster import Cluster
from lavad.core.lang.asks import Attach, Caller, Refused
from lavad.core.lang.states import PartState
from lavad.hosts.joblink import credentials, token
from proto.answers import Answer


def find_attach_address(cluster: Cluster, ask: Attach, caller: Caller, secret: bytes) -> Answer | None:
    """Endpoint of the first attempt newer than ``ask.after``; None while there is none. Raises Refused for other callers."""
    job = cluster.find_job(ask.job)
    if job is None:
        return None
    if cluster.specs.rows[job.spec].user != caller.user:
        raise Refused(f"Job <{ask.job}>: User permission denied")
    run = job.run
    if run is None or run.number <= ask.after or not run.parts[0].attach_address:
        return None
    first = run.parts[0]
    if first.end is not None or first.state not in (PartState.PREPARED, PartState.STARTING, PartState.RUNNING):
        return None
    key, cert = credentials(secret, run.uid)
    return {
        "state": job.state.name,
        "attempt": run.number,
        "host": first.host,
        "door": first.attach_address,
        "near": first.host == caller.host,
        "token": token(secret, run.uid),
        "cert": cert.decode(),
        "key": key.decode(),
    }
