"""Reports of agents in few words."""

from __future__ import annotations

from typing import Any

from lavad.core.job import reports
from lavad.core.job.endpoint import parse_endpoint
from lavad.core.job.reports import PartReport

_KINDS: dict[str, type[PartReport]] = {
    "prepared": reports.PreparedReport,
    "started": reports.StartedReport,
    "ended": reports.EndedReport,
    "gone": reports.GoneReport,
    "refused": reports.RefusedReport,
    "stopped": reports.StoppedReport,
    "granted": reports.GrantedReport,
    "checkpointed": reports.CheckpointReport,
    "resized": reports.ResizeReport,
    "task_started": reports.TaskStartReport,
    "task_ended": reports.TaskEndReport,
}
_ABOUT = len(PartReport.__struct_fields__)


def report_of(what: str, key: int, uid: str, host: str, *values: Any) -> PartReport:
    """A report of one kind; ``values``: its own fields in their order, an endpoint as the text that is stored of it."""
    kind = _KINDS[what]
    fields = dict(zip(kind.__struct_fields__[_ABOUT:], values, strict=False))
    if "endpoint" in fields:
        fields["endpoint"] = parse_endpoint(fields["endpoint"])
    return kind(host=host, key=key, uid=uid, **fields)
