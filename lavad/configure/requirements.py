"""The resource requirements of lsb.queues, lsb.applications and lsb.resources: one that does not read would ask for nothing."""

from __future__ import annotations

from collections.abc import Iterator

from config.model.cluster import ClusterConfig
from lavad.core.lang.resreq import text as resreq
from lavad.core.lang.resreq.text import ResReqError


def wrong_requirements(config: ClusterConfig) -> Iterator[str]:
    """What is wrong with them, a line each that names file, section and parameter."""
    for queue in config.queues:
        conditions = (("RES_REQ", queue.res_req), ("STOP_COND", queue.stop_cond), ("RESUME_COND", queue.resume_cond))
        for name, text in conditions:
            yield from _wrong(f"lsb.queues: queue {queue.name}: {name}", text)
    for app in config.applications:
        yield from _wrong(f"lsb.applications: profile {app.name}: RES_REQ", app.res_req)
    for pool in config.pools:
        if pool.res_select:
            yield from _wrong(f"lsb.resources: guaranteed resource pool {pool.name}: RES_SELECT", f"select[{pool.res_select}]")


def _wrong(where: str, text: str) -> Iterator[str]:
    try:
        if text and (missing := resreq.unsupported(resreq.parse(text))):
            yield f"{where}: {missing} is not supported by lava"
    except ResReqError as error:
        yield f"{where}: {error}"
