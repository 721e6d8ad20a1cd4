"""Tasks that native code starts together: each gets what it gets by Python, which starts what native code does not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.daemons.both_ways import CHANGES, ENV, LIMITS
from tests.support.daemons.shepherds import SHOW, Shepherd
from tests.support.examples import examples

ROOT = Path(__file__).resolve().parents[5]
_CHANGES = re.compile(CHANGES + rb"|\0PMI_FD=\d+", re.M)
"""And the number of its socket."""
BOUND = ["sh", "-c", "grep allowed_list /proc/self/status | cut -f2; cut -d' ' -f2 /proc/self/numa_maps | sort -u"]
PMI = {"kvsname": "k", "size": 3}


def _tasks(one: Shepherd, own: dict[str, str], count: int = 3, **more: Any) -> list[dict[str, Any]]:
    """Ranks, each with an output file of its own."""
    out = str(one.folder / "rank")
    return [{"rank": at, "env": {**own, "RANK": str(at)}, "stdout": {"path": f"{out}{at}"}, **more} for at in range(count)]


def _seen(one: Shepherd, end: dict[str, Any]) -> tuple[Any, ...]:
    """What does not change from one run to the next."""
    tasks = [(task["rank"], task["status"]) for task in end["end"]["tasks"]]
    files = [_CHANGES.sub(b"", (one.folder / f"rank{at}").read_bytes()) for at in range(len(tasks))]
    return files, tasks, end["end"]["status"], end["end"]["first"]


@settings(max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    env=ENV,
    own=ENV,
    limits=LIMITS,
    umask=st.integers(0, 0o777),
    nice=st.integers(0, 3),
)
def test_ranks_have_the_same_by_native_code_and_by_python(
    both: tuple[Shepherd, Shepherd],
    env: dict[str, str],
    own: dict[str, str],
    limits: Any,
    umask: int,
    nice: int,
) -> None:
    fields = {
        "env": {"PATH": "/usr/bin:/bin", **env},
        "argv": SHOW,
        "rlimits": limits,
        "umask": umask,
        "nice": nice,
        "pmi": PMI,
    }
    before = both[0].started_by_python()
    seen = [_seen(one, one.run(one.template(**fields, tasks=_tasks(one, own)), one.part())) for one in both]
    assert seen[0] == seen[1]
    assert both[0].started_by_python() == before or "PATH" in own


@pytest.mark.parametrize(
    ("fields", "own"),
    [
        ({"argv": ["printf", "%s|", "a b", "", "\udcff\u00e9"]}, {}),
        ({"argv": ["no-such-program"]}, {}),
        ({"argv": [""]}, {}),
        ({"argv": ["script"], "env": {"PATH": "/none:SCRIPTS"}}, {}),
        ({"argv": ["sh", "-c", "exit $RANK"]}, {"argv": ["sh", "-c", "echo own"]}),
        ({"argv": ["sh", "-c", "pwd"]}, {"cwd": "/"}),
        ({"argv": BOUND, "bind": {"cpus": [0], "nodes": [0]}}, {}),
        ({"argv": BOUND}, {"bind": {"cpus": [0], "nodes": [0], "only": True}}),
        ({"argv": ["true"], "bind": {"cpus": [1000, 1001], "nodes": [900, 901]}}, {}),
        ({"argv": ["true"]}, {"bind": {"cpus": [5000], "nodes": []}}),
        ({"argv": ["sh", "-c", "test $RANK = 1 || exec sleep 1000; exit 3"]}, {}),
    ],
    ids=[
        "words",
        "missing",
        "empty",
        "script",
        "own program",
        "own folder",
        "bound",
        "only",
        "not bound",
        "no such CPU",
        "failure",
    ],
)
def test_what_cannot_be_started_or_is_for_python_ends_as_ever(
    both: tuple[Shepherd, Shepherd], fields: dict[str, Any], own: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "script").write_text("echo script $RANK")
    (tmp_path / "script").chmod(0o755)
    if env := fields.get("env"):
        fields = {**fields, "env": {"PATH": env["PATH"].replace("SCRIPTS", str(tmp_path))}}
    seen, before = [], both[0].started_by_python()
    for one in both:
        for at in range(3):
            (one.folder / f"rank{at}").write_text("")
        seen.append(_seen(one, one.run(one.template(**fields, pmi=PMI, tasks=_tasks(one, {}, **own)), one.part())))
    # of ranks that all fail, how far those behind the first have come differs
    assert (seen[0][0][0], seen[0][2:]) == (seen[1][0][0], seen[1][2:])
    assert seen[0] == seen[1] or seen[0][2]
    assert fields["argv"] is not BOUND or both[0].started_by_python() == before
