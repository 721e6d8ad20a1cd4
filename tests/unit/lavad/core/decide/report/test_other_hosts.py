"""A report is about the part on the host that sends it: of every kind, none of another host changes anything."""

from __future__ import annotations

from typing import Any

import pytest

from lavad.core.decide.report.report import decide_report
from lavad.core.job import reports
from lavad.core.job.endpoint import Endpoint
from lavad.core.job.job import End
from lavad.core.job.reports import PartReport
from tests.support.worlds.bench import Bench


def _kinds(kind: type[PartReport]) -> list[type[PartReport]]:
    return [found for below in kind.__subclasses__() for found in (below, *_kinds(below))]


FIELDS: dict[type[PartReport], dict[str, Any]] = {
    reports.PreparedReport: {"endpoint": Endpoint(), "attach_address": ""},
    reports.StartedReport: {"pid": 7, "started": 1.0, "cwd": "/"},
    reports.EndedReport: {"end": End(status=0, at=1.0), "gone": True},
    reports.RefusedReport: {"code": "bad", "why": "forged"},
    reports.StoppedReport: {"stopped": True},
    reports.GrantedReport: {"number": 1, "ok": True, "why": ""},
    reports.CheckpointReport: {"generation": 5},
    reports.ResizeReport: {"number": 1, "ok": True, "why": ""},
    reports.TaskStartReport: {"rank": 0, "number": 0, "pid": 7},
    reports.TaskEndReport: {"rank": 0, "number": 0, "status": 9},
}
ABSTRACT = {reports.TaskReport}
KINDS = sorted(set(_kinds(PartReport)) - ABSTRACT, key=lambda kind: kind.__name__)
CHANGES = {reports.EndedReport, reports.GoneReport, reports.RefusedReport, reports.StoppedReport, reports.CheckpointReport}
"""Those that change a plain job that runs, where its own host sends them."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_report_of_another_host_changes_nothing(kind: type[PartReport]) -> None:
    bench = Bench()
    key = bench.placed()
    (host,) = bench.running()[key]
    for other in {"h1", "h2", "h3", "nowhere"} - {host}:
        report = kind(host=other, key=key, attempt=1, uid=bench.uid(key), **FIELDS.get(kind, {}))
        assert decide_report(bench.cluster, report, bench.now) == []
    own = kind(host=host, key=key, attempt=1, uid=bench.uid(key), **FIELDS.get(kind, {}))
    assert bool(decide_report(bench.cluster, own, bench.now)) == (kind in CHANGES)
