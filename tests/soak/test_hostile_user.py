"""One user floods the master with asks of every kind from two hosts; another's commands are answered, and its memory is bounded.

LAVA_HOSTILE_SECONDS: how long (60). It prints how long the other's commands took, and the memory of the master's processes.
"""

from __future__ import annotations

import json
import os
import pwd
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.soak import hostile
from tests.support.live.captured import make_users
from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until

SECONDS = float(os.environ.get("LAVA_HOSTILE_SECONDS", "60"))
KINDS = os.environ.get("LAVA_HOSTILE_KINDS", " ".join(hostile.KINDS)).split()
MOST = 400.0
"""MB that the master's processes may grow by: what is kept of texts, answers and environments (some 60), the jobs of the flood in
three processes, and what is being answered. It is some 250 after 30 seconds and 300 after 120."""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to run commands as two users")


@pytest.fixture(params=["sqlite", "postgres"])
def flooded(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cluster]:
    make_users()
    options = ("--database", "postgres") if request.param == "postgres" else ()
    tmp_path.chmod(0o755)
    with Cluster(tmp_path / "cluster", hosts=2, options=options) as cluster:
        yield cluster


def pss(pid: int) -> float:
    """MB of a process: its own, and its share of what it shares."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def memory(cluster: Cluster) -> dict[str, float]:
    """MB of lavad and each of its processes by name, forks of the query process together."""
    found: Counter[str] = Counter()
    tree = [cluster.pid("lavad")]
    for pid in tree:
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            tree += [int(word) for word in task.read_text().split()]
    for pid in tree:
        try:
            name = Path(f"/proc/{pid}/comm").read_text().strip()
        except OSError:
            continue
        found[name] += round(pss(pid))
    return {name: size for name, size in found.items() if name.startswith("lava")}


def flood(cluster: Cluster) -> list[tuple[str, subprocess.Popen[str]]]:
    """Every kind, from the sockets of the master and of both agents in turn; nice, as they would come from other machines."""
    sockets = sorted(str(path) for path in cluster.folder.run.glob("*.sock") if path.name.startswith(("lavad", "agent")))
    script = str(Path(hostile.__file__))
    alice = pwd.getpwnam("alice")
    return [
        (
            kind,
            subprocess.Popen(
                ["nice", sys.executable, script, kind, sockets[at % len(sockets)], str(SECONDS)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                user=alice.pw_uid,
                group=alice.pw_gid,
                extra_groups=[],
                cwd="/",
            ),
        )
        for at, kind in enumerate(KINDS)
    ]


def commands(cluster: Cluster, user: int, seconds: float) -> dict[str, list[float]]:
    """What another user's commands take, one after the other, once at least."""
    times: dict[str, list[float]] = {"bsub": [], "bjobs": [], "bkill": []}
    until = time.monotonic() + seconds
    while not times["bkill"] or time.monotonic() < until:
        for command, words in (("bsub", "-H sleep 1"), ("bjobs", ""), ("bkill", "0")):
            begun = time.monotonic()
            done = cluster.run(f"{command} {words}", ok=False, user=user, cwd=Path("/"), timeout=120)
            times[command].append(time.monotonic() - begun)
            assert done.returncode == 0, (command, done.stderr)
    return times


def told(what: str, times: list[float]) -> str:
    ordered = sorted(times)
    late, most = ordered[int(len(times) * 0.95)], ordered[-1]
    return f"{what}: {len(times)} times, median {statistics.median(times):.2f} s, 95 % {late:.2f} s, most {most:.2f} s"


def test_a_hostile_user_harms_no_other(flooded: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    bob = pwd.getpwnam("bob").pw_uid
    flooded.run("bsub sleep 1", user=bob, cwd=Path("/"))
    flooded.run("bjobs", user=bob, cwd=Path("/"))
    master = flooded.pid("lavad")
    before = memory(flooded)
    alone = commands(flooded, bob, SECONDS / 10)
    times: dict[str, list[float]] = {}
    peak: dict[str, float] = {}
    users = flood(flooded)
    try:
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            for command, taken in commands(flooded, bob, 0.0).items():
                times.setdefault(command, []).extend(taken)
            now = memory(flooded)
            peak = max(peak, now, key=lambda sizes: sum(sizes.values()))
        outputs = {kind: user.communicate(timeout=120) for kind, user in users}
    finally:
        for _, user in users:
            user.kill()
    assert flooded.pid("lavad") == master
    answers = {kind: json.loads(out or "{}") for kind, (out, _) in outputs.items()}
    with capsys.disabled():
        for command, taken in times.items():
            print(f"\n{told(command, taken)}; before it {told(command, alone[command])}", end="")  # noqa: T201
        print(f"\nMB before: {before}, at the peak: {peak}, after: {memory(flooded)}")  # noqa: T201
        for kind, counts in answers.items():
            print(f"  {kind}: {counts}")  # noqa: T201
    assert not any("INTERNAL ERROR" in counts for counts in answers.values()), flooded.logs()
    wait_until(lambda: not flooded.run("bjobs -u bob -noheader", user=bob, cwd=Path("/")).stdout, 60, "bob's jobs to end")
    assert sum(peak.values()) - sum(before.values()) < MOST, (before, peak)
