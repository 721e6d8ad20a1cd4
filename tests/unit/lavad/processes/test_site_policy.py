"""SCHEDULER of a queue: built-in policies and a site's own module, which never stops scheduling."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from config.model.queue import QueueConfig
from config.model.values import Limits
from config.read.load import load
from lavad.core.site.conf import Params
from lavad.processes.site_policy import SitePolicies
from lavad.sched.order.ranking import Scorer
from tests.support.worlds.world import World


def started(scorer: Scorer | None, *queues: QueueConfig) -> dict[str, list[str]]:
    """The order in which jobs of each queue start."""
    found: dict[str, list[str]] = {}
    for queue in queues:
        world = World()
        world.memory.scorer = scorer
        world.configure(queues=(queue,), params=Params(parallel_sched_by_slot=True))
        world.hosts("h1", slots=4)
        for name, slots, minutes, user in (("a", 2, 60, "ann"), ("b", 4, 10, "bob"), ("c", 1, 0, "ann"), ("d", 3, 30, "cid")):
            world.submit(name=name, slots=slots, user=user, queue=queue.name, limits=Limits(run=minutes * 60 or None))
        order: list[str] = []
        while world.cluster.jobs.rows:
            for key in world.step():
                order.append(world.cluster.jobs.rows[key].name)
                world.finish(key)
        found[queue.name] = order
    return found


def test_queues_with_different_policies(tmp_path: Path) -> None:
    """Two queues with different policies; a user plugin loaded from a file orders jobs."""
    file = tmp_path / "by_name.py"
    file.write_text("def order(job):\n    return -ord(job['name'])\n")
    found = started(
        SitePolicies().score,
        QueueConfig(name="fcfs"),
        QueueConfig(name="short", scheduler="shortest"),
        QueueConfig(name="small", scheduler="smallest"),
        QueueConfig(name="large", scheduler="largest"),
        QueueConfig(name="own", scheduler=str(file)),
    )
    assert {name: order[0] for name, order in found.items()} == {
        "fcfs": "a",
        "short": "b",
        "small": "c",
        "large": "b",
        "own": "d",
    }
    assert found["own"][-1] == "a"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def order(job):\n    return 1 / 0\n", "ZeroDivisionError"),
        ("def order(job):\n    while True:\n        pass\n", "took longer"),
        ("def order(job):\n  while 1:\n    try:\n      while 1: pass\n    except Exception: pass\n", "took longer"),
        ("while True:\n    pass\n", "took longer"),
        ("def order(job):\n    return 'x'\n", "ValueError"),
        ("def order(job):\n    return float('nan')\n", "answered nan"),
        ("x = 1\n", "no function order"),
        ("raise SystemExit(3)\n", "SystemExit"),
    ],
)
def test_a_module_that_fails_does_not_stop_scheduling(tmp_path: Path, text: str, said: str) -> None:
    """It raises or loops: jobs go first come, first served, and it is said."""
    file = tmp_path / "bad.py"
    file.write_text(text)
    policies = SitePolicies(limit=0.05)
    assert started(policies.score, QueueConfig(name="own", scheduler=str(file)))["own"][0] == "a"
    assert said in policies.wrong[str(file)]
    file.write_text("def order(job):\n    return -ord(job['name'])\n")
    policies.forget()
    assert started(policies.score, QueueConfig(name="own", scheduler=str(file)))["own"][0] == "d"


@pytest.mark.skipif(os.geteuid() != 0, reason="what root alone may write has to be root's")
def test_root_runs_no_module_that_others_can_put_another_in_the_place_of(tmp_path: Path) -> None:
    """The folder that it lies in is another user's, whatever the file is."""
    file = tmp_path / "own.py"
    file.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\ndef order(job):\n    return -ord(job['name'])\n")
    policies, queue = SitePolicies(), QueueConfig(name="own", scheduler=str(file))
    assert started(policies.score, queue)["own"][0] == "d"
    (tmp_path / "ran").unlink()
    os.chown(tmp_path, 65534, 65534)
    policies.forget()
    assert started(policies.score, queue)["own"][0] == "a"
    assert policies.wrong[str(file)] == f"PermissionError: {file} is not run as root, as others than root may write it"
    assert not (tmp_path / "ran").exists()


def test_an_unknown_policy_is_refused_with_file_and_line(tmp_path: Path) -> None:
    """Rejected if unknown."""
    (tmp_path / "lsf.conf").write_text("")
    bad = tmp_path / "loose.py"
    bad.write_text("def order(job): return 0\n")
    bad.chmod(0o666)
    wrong = tmp_path / "wrong.py"
    wrong.write_text("def order(job) return 0\n")
    for value, said in (
        ("lottery", "'lottery' is no policy: fcfs, fair"),
        (str(bad), "may write it"),
        (str(wrong), "expected ':'"),
        (f"{tmp_path}/none.py", "No such file"),
    ):
        (tmp_path / "lsb.queues").write_text(f"Begin Queue\nQUEUE_NAME = q\nPRIORITY = 3\nSCHEDULER = {value}\nEnd Queue\n")
        found = [problem for problem in load(str(tmp_path)).problems if problem.fatal]
        assert [(Path(problem.file).name, problem.line) for problem in found] == [("lsb.queues", 4)]
        assert said in found[0].text
