"""``lava run`` of Kubernetes' Jobs over two real hosts: what ends all of a Job before all of its pods have ended."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster
from tests.support.live.job_files import lava_run, nothing_left
from tests.support.wait import wait_until

pytest.importorskip("yaml")
pytestmark = pytest.mark.cluster(hosts=2, slots=2)

FAILS = """\
apiVersion: batch/v1
kind: Job
metadata: {name: fails}
spec:
  completions: 8
  parallelism: 4
  completionMode: Indexed
  podFailurePolicy:
    rules:
    - {action: FailJob, onExitCodes: {operator: In, values: [42]}}
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, command: [sh, -c, 'test $JOB_COMPLETION_INDEX = 1 && exit 42; exec sleep 600']}]
"""
ENOUGH = """\
apiVersion: batch/v1
kind: Job
metadata: {name: enough}
spec:
  completions: 8
  parallelism: 4
  completionMode: Indexed
  successPolicy: {rules: [{succeededIndexes: "1-3", succeededCount: 2}]}
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, command: [sh, -c, 'test $JOB_COMPLETION_INDEX = 0 && exec sleep 600; exit 0']}]
"""
LATE = """\
apiVersion: batch/v1
kind: Job
metadata: {name: late}
spec:
  completions: 8
  parallelism: 4
  completionMode: Indexed
  activeDeadlineSeconds: 3
  template: {spec: {restartPolicy: Never, containers: [{name: main, command: [sleep, "600"]}]}}
"""
GANG = """\
apiVersion: v1
kind: Service
metadata: {name: net}
spec: {clusterIP: None, selector: {job-name: gang}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: gang}
spec:
  completions: 3
  parallelism: 3
  completionMode: Indexed
  successPolicy: {rules: [{succeededIndexes: "0,2"}]}
  template:
    spec:
      subdomain: net
      restartPolicy: Never
      containers:
      - name: main
        env: [{name: LEADER, value: gang-0.net}]
        command: [sh, -c, 'echo $JOB_COMPLETION_INDEX follows $LEADER; test $JOB_COMPLETION_INDEX = 1 && exec sleep 600; exit 0']
"""
ANY = """\
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: any}
spec:
  successPolicy: {operator: Any, targetReplicatedJobs: [w]}
  replicatedJobs:
  - name: w
    replicas: 2
    template:
      spec:
        parallelism: 2
        completions: 2
        template:
          spec:
            restartPolicy: Never
            containers: [{name: main, command: [sh, -c, 'test $JOB_INDEX = 0 && exec sleep 600; exit 0']}]
"""


def run(cluster: Cluster, folder: Path, text: str) -> int:
    path = folder / "job.yaml"
    path.write_text(text)
    found = re.search(r"Job <(\d+)>", cluster.run(f"lava run -o out.%I {path}", cwd=folder).stdout)
    assert found is not None
    return int(found[1])


def states(cluster: Cluster, job: int) -> list[str]:
    return cluster.run(f"bjobs -a -noheader -o 'stat' {job}").stdout.split()


def test_an_exit_code_fails_the_whole_job(cluster: Cluster, tmp_path: Path) -> None:
    """Those that run are ended, those that wait never run, and each says why."""
    job = run(cluster, tmp_path, FAILS)
    cluster.run(f"bwait -w 'ended({job})'", timeout=90)
    assert states(cluster, job) == ["EXIT"] * 8
    for index in (1, 8):
        why = cluster.run(f"lava why '{job}[{index}]'").stdout
        assert re.search(r"Element 2 failed: pod\[0\] on \S+ ended with exit code 42", why), why
        assert "element 2 failed" in cluster.run(f"bhist -l '{job}[{index}]'").stdout.replace("\n" + " " * 21, "")
    nothing_left(cluster, "600")


def test_all_of_a_job_ends_at_its_deadline(cluster: Cluster, tmp_path: Path) -> None:
    """Counted from its first start, also by a lavad that came meanwhile; what waits never runs."""
    job = run(cluster, tmp_path, LATE)
    wait_until(lambda: states(cluster, job).count("RUN") == 4, 60, "four pods")
    cluster.kill("lavad")
    cluster.up()
    cluster.run(f"bwait -w 'ended({job})'", timeout=90)
    assert states(cluster, job) == ["EXIT"] * 8
    why = cluster.run(f"bhist -l '{job}[8]'").stdout
    assert "all of the array had 3 seconds from the start of its first element" in why.replace("\n" + " " * 21, "")
    nothing_left(cluster, "600")


def test_a_job_that_starts_again_and_again_ends_at_its_deadline(cluster: Cluster, tmp_path: Path) -> None:
    """A single pod, of which each attempt is short; the deadline is in seconds."""
    one = (
        LATE.replace("completions: 8", "completions: 1")
        .replace("parallelism: 4", "backoffLimit: 100")
        .replace("Indexed", "NonIndexed")
    )
    job = run(cluster, tmp_path, one.replace('[sleep, "600"]', '[sh, -c, "sleep 1; exit 3"]'))
    assert cluster.wait_end(job, timeout=60) == ["EXIT"]
    why = cluster.run(f"bhist -l {job}").stdout.replace("\n" + " " * 21, "")
    assert "the job had 3 seconds from its first start" in why
    assert why.count("Restarting the whole job") >= 1


def test_indexes_that_are_enough_complete_the_job(cluster: Cluster, tmp_path: Path) -> None:
    """What still runs is ended, and all of it is done: who waits for it starts."""
    job = run(cluster, tmp_path, ENOUGH)
    cluster.run(f"bwait -w 'done({job})'", timeout=90)
    assert states(cluster, job) == ["DONE"] * 8
    assert "enough elements of the array have succeeded" in " ".join(cluster.run(f"bhist -l '{job}[1]'").stdout.split())
    nothing_left(cluster, "600")


def test_pods_that_know_each_other_are_one_job(cluster: Cluster, tmp_path: Path) -> None:
    """They start together, each with the address of the first, and those that are enough end the third."""
    path = tmp_path / "gang.yaml"
    path.write_text(GANG)
    job = lava_run(cluster, tmp_path, f"-o out {path}")
    assert cluster.wait_end(job, timeout=90) == ["DONE"]
    wait_until(lambda: "Resource usage summary" in (tmp_path / "out").read_text(), 30, "the report")
    told = sorted(line for line in (tmp_path / "out").read_text().splitlines() if line[1:].startswith(" follows "))
    assert [line.partition(" 127.")[0] for line in told] == [f"{index} follows" for index in range(3)]
    nothing_left(cluster, "600")


def test_one_job_of_a_jobset_is_enough(cluster: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "any.yaml"
    path.write_text(ANY)
    assert cluster.wait_end(lava_run(cluster, tmp_path, f"-o out {path}"), timeout=90) == ["DONE"]
    nothing_left(cluster, "600")
