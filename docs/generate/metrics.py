"""metrics.md: what /metrics of lavad shows."""

from __future__ import annotations

from prometheus_client.core import CounterMetricFamily

from docs.generate.markdown import cell, table
from lavad.core.cluster.cluster import Cluster
from lavad.services.metrics import BOUNDS, Metrics

_HEAD = f"""\
# Metrics

What lavad serves where LAVA_METRICS_ADDRESS says, for Prometheus ([operations](../operations.md#metrics)). Numbers start at 0
with each master. `kind` is how a job starts its processes: `mpi`, `pytorch`, `tensorflow` and others of `bsub -a`, the framework
of a job with roles, else `parallel` or `serial`. Buckets end at {", ".join(f"{bound:g}" for bound in BOUNDS)} seconds.

"""


def page() -> str:
    rows = []
    for family in Metrics(Cluster()).families():
        name = f"{family.name}_total" if isinstance(family, CounterMetricFamily) else family.name
        labels = getattr(family, "_labelnames", ())
        rows.append((f"`{name}`", family.type, " ".join(f"`{label}`" for label in labels), cell(family.documentation)))
    return _HEAD + table(("Name", "Type", "Labels", ""), rows)
