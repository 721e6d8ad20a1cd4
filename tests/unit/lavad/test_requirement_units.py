"""A plain amount of memory in a requirement: MB where a site says nothing, else in LSF_UNIT_FOR_LIMITS, and once only."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.read.load import load
from lavad.configure.resolve import resolve
from lavad.sched.needs.needs import Need
from tests.support.worlds.bench import Bench

QUEUES = """
Begin Queue
QUEUE_NAME = normal
RES_REQ    = rusage[mem=2]
End Queue
Begin Queue
QUEUE_NAME = plain
End Queue
"""


@pytest.mark.parametrize(("lsf_conf", "mb"), [("", 1), ("LSF_UNIT_FOR_LIMITS=MB\n", 1), ("LSF_UNIT_FOR_LIMITS=GB\n", 1024)])
def test_amounts_of_jobs_and_queues_count_in_the_sites_unit(tmp_path: Path, lsf_conf: str, mb: int) -> None:
    (tmp_path / "lsf.conf").write_text(lsf_conf)
    (tmp_path / "lsb.queues").write_text(QUEUES)
    conf = resolve(load(str(tmp_path)).config)
    bench = Bench()
    bench.configure(params=conf.params, queues=conf.queues)

    def reserved(**options: str) -> float:
        spec = bench.spec_of(**options)
        queue = next(queue for queue in conf.queues if queue.name == spec.queue)
        return dict(Need.of(0, spec, queue, bench.cluster.conf).per_host)["mem"]

    assert reserved(q="plain", R="rusage[mem=3]") == 3 * mb
    assert reserved(q="plain", R="rusage[mem=3M]") == 3
    assert reserved(q="normal") == 2 * mb
    assert reserved(q="normal", R="rusage[mem=1]") == mb
