"""``lava run`` of sets of jobs over two real hosts: what runs behind what, and what each task knows of itself."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster
from tests.support.live.job_files import EXAMPLES, nothing_left
from tests.support.wait import wait_until

pytest.importorskip("yaml")
pytestmark = pytest.mark.cluster(hosts=2, slots=3)


def run(cluster: Cluster, folder: Path, text: Path | str) -> list[int]:
    """The jobs of a file, in the order in which they were submitted."""
    path = folder / "job.yaml"
    path.write_text(text if isinstance(text, str) else text.read_text())
    done = cluster.run(f"lava run -o out.%J {path}", cwd=folder)
    return [int(number) for number in re.findall(r"Job <(\d+)> is submitted", done.stdout)]


def lines(folder: Path, job: int) -> list[str]:
    """What the tasks of a job wrote, once it is over."""
    out = folder / f"out.{job}"
    wait_until(lambda: out.exists() and "Resource usage summary" in out.read_text(), 60, f"the report of job {job}")
    return sorted(out.read_text().partition("\n-----")[0].splitlines())


def test_a_jobset_runs_step_by_step(cluster: Cluster, tmp_path: Path) -> None:
    """The first replicated job is a job of its own; the workers know who they are and where the server is, and decide."""
    first, last = run(cluster, tmp_path, EXAMPLES / "jobset.yaml")
    assert lines(tmp_path, first) == ["fetched by fetch of sets"]
    told = [line.rpartition(" ") for line in lines(tmp_path, last)]
    assert [words for words, _, _ in told] == [f"worker {job}-{pod} of sets asks" for job in (0, 1) for pod in (0, 1)]
    assert {re.sub(r"127\.[\d.]+:80$", "loopback", where) for _, _, where in told} == {"loopback"}
    assert cluster.wait_end(last, timeout=60) == ["DONE"]
    nothing_left(cluster, "600")


def test_a_step_behind_one_that_failed_does_not_run(cluster: Cluster, tmp_path: Path) -> None:
    text = (EXAMPLES / "jobset.yaml").read_text().replace("echo fetched by", "exit 3; echo")
    first, last = run(cluster, tmp_path, text.replace("maxRestarts: 2", "maxRestarts: 0"))
    assert cluster.wait_end(first, timeout=90) == ["EXIT"]
    assert cluster.wait_end(last, timeout=60) == ["EXIT"]
    assert not (tmp_path / f"out.{last}").exists()


def test_each_group_of_a_leaderworkerset_starts_again_as_a_whole(cluster: Cluster, tmp_path: Path) -> None:
    """Two groups; a worker of one is killed: its leader and the other worker start again with it, the other group stays."""
    text = (EXAMPLES / "leaderworkerset.yaml").read_text().replace('-c, "echo', '-c, "exec >>said.$LSB_JOBINDEX; echo $$$$')
    (job,) = run(cluster, tmp_path, text)

    def told(group: int) -> list[list[str]]:
        path = tmp_path / f"said.{group}"
        return [line.split(" ", 1) for line in path.read_text().splitlines()] if path.exists() else []

    wait_until(lambda: len(told(1)) == len(told(2)) == 3, 60, "two groups of three")
    where = next(words for _, words in told(1) if " at " in words).rpartition(" ")[2]
    group = ["leader 0 of 3", f"worker 1 of 3 at {where}", f"worker 2 of 3 at {where}"]
    assert sorted(words for _, words in told(1)) == group
    pid = next(int(pid) for pid, words in told(2) if words.startswith("worker 2"))
    before = told(1)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: len(told(2)) == 6, 60, "the group once more")
    assert sorted(words.partition(" at ")[0] for _, words in told(2)[3:]) == [words.partition(" at ")[0] for words in group]
    assert told(1) == before
    cluster.run(f"bkill {job}")
    assert cluster.wait_end(job, timeout=60) == ["EXIT", "EXIT"]
    nothing_left(cluster, "600")


TRAINING = """
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: with-data}
spec:
  mlPolicy: {torch: {numProcPerNode: 1}}
  template:
    spec:
      replicatedJobs:
      - name: get
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: dataset-initializer}}
          spec: {template: {spec: {containers: [{name: get, command: [sh, -c, "echo $STORAGE_URI >data; echo got"]}]}}}
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec: {template: {spec: {containers: [{name: node, command: [sh, -c, "echo node $PET_NODE_RANK has $(cat data)"]}]}}}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: trains}
spec: {runtimeRef: {name: with-data}, initializer: {dataset: {storageUri: "s3://b/d"}}, trainer: {numNodes: 2}}
"""


def test_the_nodes_of_a_trainjob_find_what_was_fetched(cluster: Cluster, tmp_path: Path) -> None:
    first, last = run(cluster, tmp_path, TRAINING)
    assert lines(tmp_path, first) == ["got"]
    assert lines(tmp_path, last) == ["node 0 has s3://b/d", "node 1 has s3://b/d"]


def test_a_volcano_job_is_done_once_enough_tasks_are(cluster: Cluster, tmp_path: Path) -> None:
    """Two of three: one fails, one goes on, and one more ends well."""
    pod = "template: {spec: {containers: [{command: [sh, -c, 'test $VC_TASK_INDEX != 1 || exit 4; echo done']}]}}"
    slow = "template: {spec: {containers: [{command: [sleep, '605']}]}}"
    tasks = f"[{{name: quick, replicas: 3, {pod}}}, {{name: slow, {slow}}}]"
    (job,) = run(
        cluster, tmp_path, f"apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nspec: {{minSuccess: 2, tasks: {tasks}}}\n"
    )
    assert lines(tmp_path, job) == ["done", "done"]
    assert cluster.wait_end(job, timeout=60) == ["DONE"]
    nothing_left(cluster, "605")


def test_jobs_of_a_jobflow_run_behind_each_other(cluster: Cluster, tmp_path: Path) -> None:
    """Each finds the files of those that it waits for."""
    jobs = run(cluster, tmp_path, EXAMPLES / "jobflow.yaml")
    assert len(jobs) == 4
    assert lines(tmp_path, jobs[3]) == ["1", "1"]
    assert [cluster.wait_end(job, timeout=60) for job in jobs] == [["DONE"]] * 4


VOLCANO = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: x}}
spec:
  minAvailable: 2
  plugins: {{{plugins}}}
  tasks:
  - name: a
    replicas: {replicas}
    template: {{spec: {{containers: [{{command: [sh, -c, "echo task $VC_TASK_INDEX $POD_NAME; exit {code}"],
      env: [{{name: POD_NAME, valueFrom: {{fieldRef: {{fieldPath: metadata.name}}}}}}]}}]}}}}
"""


def test_all_tasks_of_volcano_run_and_a_failure_ends_none_but_itself(cluster: Cluster, tmp_path: Path) -> None:
    """More tasks than slots, apart from each other; and tasks that know each other, of which half fail."""
    (apart,) = run(cluster, tmp_path, VOLCANO.format(plugins="env: []", replicas=8, code="0"))
    assert cluster.wait_end(apart, timeout=60) == ["DONE"] * 8
    (job,) = run(cluster, tmp_path, VOLCANO.format(plugins="svc: []", replicas=4, code="$((VC_TASK_INDEX % 2))"))
    assert cluster.wait_end(job, timeout=60) == ["DONE"]
    assert lines(tmp_path, job) == [f"task {number} x-a-{number}" for number in range(4)]


def test_the_master_says_whether_it_would_take_the_jobs_of_a_file(cluster: Cluster, tmp_path: Path) -> None:
    """Each of them, by its file; nothing is submitted, and what waits for another is asked about without it."""
    path = tmp_path / "job.yaml"
    job = "---\n{name: %s, queue: %s, roles: {a: {command: 'true', resreq: '%s'}}}\n"
    path.write_text(job % ("x", "normal", "") + job % ("y", "nosuch", "") + job % ("z", "normal", "select[nosuch]"))
    done = cluster.run(f"lava run --dry-run=server {path}", cwd=tmp_path, ok=False)
    assert done.returncode == 255
    assert [line.split(": ", 1)[1] for line in done.stderr.splitlines()] == [
        "nosuch: No such queue. Job would not be submitted.",
        "role a: resreq: unknown resource <nosuch>: Bad resource requirement syntax. Job would not be submitted.",
    ]
    assert done.stdout.count("roles:") == 3
    example = cluster.run(f"lava run --dry-run=server {EXAMPLES / 'jobset.yaml'}", cwd=tmp_path)
    assert "would not" not in example.stderr
    assert cluster.run("bjobs -J x", ok=False).stderr == "Job <x> is not found\n"
