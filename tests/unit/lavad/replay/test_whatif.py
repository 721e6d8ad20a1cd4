"""`lava whatif` as a user calls it: figures, table, picture, faults; and the shared trace against a second simulator."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from lavad.replay.main import main
from lavad.replay.measures import bounded_slowdown, jain, measure, percentiles
from lavad.replay.simulate import simulate
from lavad.replay.swf import TraceJob, parse
from tests.unit.lavad.replay.naive import naive, promised_once

ROOT = Path(__file__).parents[4]
LUBLIN = ROOT.parent / "shared/traces/lublin_256.swf"

# five slots; the example by hand of test_simulate
JOBS = [(1, 0, 3, 10, 1), (2, 1, 4, 5, 2), (3, 2, 1, 20, 1), (4, 3, 1, 20, 2), (5, 3, 1, 7, 3), (6, 4, 6, 7, 3)]


@pytest.fixture
def trace(tmp_path: Path) -> str:
    lines = [f"{n} {at} -1 {run} {slots} -1 -1 -1 -1 -1 1 {user} -1 -1 -1 -1 -1 -1" for n, at, slots, run, user in JOBS]
    (tmp_path / "five.swf").write_text("; MaxProcs: 5\n" + "\n".join(lines) + "\n")
    return str(tmp_path / "five.swf")


def call(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_one_object(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    """EASY starts at 0 10 2 15 3: waits 0 9 0 12 0, last end 35; the job of six slots is left out and counted."""
    found = call(capsys, "--trace", trace, "--hosts", "1", "--slots", "5", "--policy", "easy")
    assert found["jobs"] == 5
    assert found["skipped"] == {"larger than the machine": 1}
    assert found["mean_wait"] == 21 / 5
    assert found["mean_bounded_slowdown"] == pytest.approx((1 + 14 / 10 + 1 + 32 / 20 + 1) / 5)
    assert found["makespan"] == 35
    assert found["utilization"] == pytest.approx((30 + 20 + 20 + 20 + 7) / (5 * 35))
    assert (found["policy"], found["users"]) == ("easy", 3)


def test_hosts_are_one_pool(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Three hosts of two slots, or one and two more, hold the job of six."""
    for hosts in (["--hosts", "3"], ["--add-hosts", "2"]):
        found = call(capsys, "--trace", trace, *hosts, "--slots", "2", "--policy", "fcfs")
        assert (found["hosts"], found["slots"], found["jobs"], found["skipped"]) == (3, 6, 6, {})


def test_several_policies(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    """All three if none is named; slots are those the trace names; users on demand."""
    found = call(capsys, "--trace", trace, "--users")
    assert [part["policy"] for part in found["policies"]] == ["fcfs", "easy", "conservative"]
    assert found["slots"] == 5
    assert [user["jobs"] for user in found["policies"][1]["users"]] == [2, 2, 1]


def test_table_and_picture(trace: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A column a policy; the picture is well-formed and nothing of it lies outside."""
    picture = tmp_path / "a & b.svg"
    assert main(["--trace", trace, "--policy", "easy,fcfs", "--users", "--plot", str(picture)]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows[1] == "left out: larger than the machine: 1"
    assert rows[2].split() == ["easy", "fcfs"]
    assert rows[3].split() == ["jobs", "5", "5"]
    assert rows[4].split() == ["mean", "wait", "(s)", "4.2", "8.2"]
    assert rows[-1].startswith("3 (1 jobs)")
    root = ET.parse(picture).getroot()
    lines = root.findall(".//{*}polyline")
    assert len(lines) == 6
    for line in lines:
        for point in line.attrib["points"].split():
            x, y = map(float, point.split(","))
            assert 0 <= x <= float(root.attrib["width"])
            assert 0 <= y <= float(root.attrib["height"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--trace", "nothing.swf"], "lava whatif: nothing.swf: No such file or directory\n"),
        (["--trace", "/dev/null"], "lava whatif: /dev/null: names no machine (MaxProcs); say --slots\n"),
        (["--trace", "/dev/null", "--slots", "4"], "lava whatif: /dev/null: no job to simulate\n"),
        (
            ["--trace", "x", "--policy", "best"],
            "lava whatif: argument --policy: 'best' is not a policy (fcfs, easy, conservative)\n",
        ),
        (["--config", "/no/such"], "lava whatif: argument --config: '/no/such' is not a folder\n"),
        (["--trace", "x", "--slots", "0"], "lava whatif: argument --slots: '0' is not a number from 1 to 10000000\n"),
        (["--hosts", "2"], "lava whatif: argument --hosts: only with --trace\n"),
        (["--trace", "x", "--remove-hosts", "h1"], "lava whatif: argument --remove-hosts: not with --trace\n"),
        (
            ["--policy", "lottery"],
            "lava whatif: argument --policy: 'lottery' is not a policy (fcfs, fairshare, easy, conservative)\n",
        ),
        (["--queue-priority", "night"], "lava whatif: argument --queue-priority: 'night' is not QUEUE=PRIORITY\n"),
    ],
)
def test_faults_are_one_line(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 1 and what was wrong."""
    try:
        status = main(words)
    except SystemExit as ended:
        status = int(str(ended.code))
    out, err = capsys.readouterr()
    assert (status, out, err) == (1, "", said)


def test_a_picture_that_cannot_be_written(trace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file and why."""
    picture = tmp_path / "nowhere" / "x.svg"
    assert main(["--trace", trace, "--plot", str(picture)]) == 1
    assert capsys.readouterr().err == f"lava whatif: {picture}: cannot write the plot: No such file or directory\n"


def test_the_command(trace: str) -> None:
    """`lava whatif …` becomes the simulator; what stands in the current folder is not imported."""
    folder = Path(trace).parent
    (folder / "lavad.py").write_text("raise SystemExit('not this one')\n")
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from cli.lava import main; sys.exit(main())"
    words = [sys.executable, "-I", "-c", code, "whatif", "--trace"]
    good = subprocess.run(
        [*words, "five.swf", "--slots", "5", "--policy", "easy", "--json"],
        cwd=folder,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert json.loads(good.stdout)["jobs"] == 5
    bad = subprocess.run([*words, "six.swf"], cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert (bad.returncode, bad.stderr) == (1, "lava whatif: six.swf: No such file or directory\n")


def test_measures_of_edges() -> None:
    """A run without length, percentiles by rank, even and uneven shares."""
    nothing = measure(simulate([TraceJob(1, 1, 5, 0, 1, 0, 1)], 1, "easy"), 1)
    assert (nothing.makespan, nothing.utilization, nothing.mean_bounded_slowdown) == (0, 0, 1)
    assert percentiles([3, 1, 2]) == {"50": 2, "90": 3, "95": 3, "99": 3, "100": 3}
    assert (jain([2, 2, 2]), jain([1, 0, 0, 0])) == (1, 0.25)
    assert (bounded_slowdown(0, 3), bounded_slowdown(17, 3), bounded_slowdown(60, 30)) == (1, 2, 3)
    with pytest.raises(ValueError, match="nothing ran"):
        measure([], 4)


@pytest.mark.skipif(not LUBLIN.exists(), reason="the trace is not part of lava")
@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
def test_the_model_trace(policy: str) -> None:
    """Its first 2,000 jobs: the same start for each as in a second simulator."""
    with LUBLIN.open() as file:
        jobs = parse(islice(file, 2007), "lublin").jobs
    assert len(jobs) == 2000
    found = {run.job.line: run.start for run in simulate(jobs, 256, policy)}
    assert found == (promised_once(jobs, 256) if policy == "conservative" else naive(jobs, 256, policy))
