"""Scripts of megabytes: over the limit they are refused, below it arrays of them run, and no daemon ends of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster

NAMES = ("lavad", "agent-host1", "agent-host2", "starter-host1", "starter-host2")

pytestmark = pytest.mark.cluster(hosts=2, slots=8, conf={"lsf.conf": "LAVA_MAX_SCRIPT=11\n"})


@pytest.fixture(autouse=True)
def _daemons_live_on(cluster: Cluster) -> Iterator[None]:
    before = {name: cluster.pid(name) for name in NAMES}
    assert all(before.values())
    yield
    assert {name: cluster.pid(name) for name in NAMES} == before


def script(path: Path, size: int, letter: str = "x") -> Path:
    """One that takes so many bytes and says hello."""
    head = "#!/bin/sh\necho hello\nexit 0\n"
    line = "#" + letter * (98 // len(letter.encode())) + "\n"
    path.write_text(head + line * ((size - len(head)) // len(line.encode())))
    return path


def test_a_script_over_the_limit_is_refused_with_one_line(cluster: Cluster, tmp_path: Path) -> None:
    large = script(tmp_path / "large.sh", 14 << 20)
    done = cluster.run(f"bsub < {large}", ok=False)
    assert (done.returncode, done.stdout) == (255, "")
    assert done.stderr == "The job script is larger than 11 MB (LAVA_MAX_SCRIPT). Job not submitted.\n"


@pytest.mark.parametrize("letter", ["x", "\u20ac", "\U0001f600", "\\"])
def test_an_array_of_a_large_script_runs_on_two_hosts(cluster: Cluster, tmp_path: Path, letter: str) -> None:
    """Whatever a letter takes in JSON: twice or thrice its bytes."""
    large = script(tmp_path / "large.sh", (10 if letter == "x" else 4) << 20, letter)
    job = cluster.submit(f"-J 'a[1-20]' -o a.%J.%I < {large}", cwd=tmp_path, timeout=120)
    small = cluster.submit("-o small.out echo small", cwd=tmp_path)
    assert cluster.wait_end(job, timeout=120) == ["DONE"] * 20
    cluster.wait_for(small, "DONE")
    for index in range(1, 21):
        text = (tmp_path / f"a.{job}.{index}").read_text()
        assert text.count("\nhello\n") == 1
        assert len(text) < 100_000  # of the script only its beginning is in the report


def test_different_large_scripts_on_one_host_at_once(cluster: Cluster, tmp_path: Path) -> None:
    """More than a message or a frame could hold together."""
    jobs = [cluster.submit(f"-m host1 -o o.{n} < {script(tmp_path / f'{n}.sh', 10 << 20)}", cwd=tmp_path) for n in range(16)]
    for job in jobs:
        assert cluster.wait_end(job, timeout=120) == ["DONE"]
