"""Elastic roles of torchrun as one resizable job: what it asks for, and what is named or refused as it cannot be one."""

from __future__ import annotations

import pytest

from cli.client.context import Fail
from cli.jobs.elastic import make_resizable
from cli.jobs.model import JobFile
from cli.jobs.run import bsub_line, jobs_of
from cli.submit.yaml_text import read_yaml

pytest.importorskip("yaml")
MANIFEST = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
spec:
  elasticPolicy: POLICY
  pytorchReplicaSpecs:
"""
OWN = "options: {ar: true}\nframework: pytorch\nnproc: 2\nroles:\n"


def read(text: str) -> JobFile:
    (job,) = jobs_of(read_yaml("job.yaml", text), "job.yaml")
    make_resizable(job, "job.yaml")
    return job


def replicas(name: str, command: str, limits: str = "", count: int = 2) -> str:
    pod = f"[{{name: pytorch, env: [{{name: A, value: b c}}], command: {command}, resources: {{limits: {{{limits}}}}}}}]"
    return f"    {name}: {{replicas: {count}, template: {{spec: {{containers: {pod}}}}}}}\n"


def manifest(*roles: str, policy: str = "minReplicas: 1, maxReplicas: 3, maxRestarts: 7, nProcPerNode: 1") -> JobFile:
    return read(MANIFEST.replace("POLICY", policy if policy.startswith("{") else f"{{{policy}}}") + "".join(roles))


def test_a_replica_is_a_host_with_one_torchrun() -> None:
    """With all that a replica has there: its slots, processes, GPUs, memory."""
    limits = "nvidia.com/gpu: 4, cpu: 8, memory: 1Gi"
    job = manifest(replicas("Worker", "[torchrun, train.py]", limits), policy="minReplicas: 2, maxReplicas: 3, nProcPerNode: 4")
    assert (job.roles, job.command, job.env, job.ignored) == ([], "torchrun train.py", {"A": "b c", "PYTHONUNBUFFERED": "1"}, [])
    assert job.options == {
        "ar": True,
        "r": True,
        "n": "16,24",
        "Q": "all",
        "a": ["torchrun(nproc=4,requeues=6)"],
        "R": ["rusage[mem=1024MB/host]", "span[ptile=8]"],
        "gpu": "num=4",
        "M": "1048576K",
    }


def test_replicas_of_one_process_may_share_a_host() -> None:
    job = manifest(replicas("Worker", "[torchrun, train.py]", "nvidia.com/gpu: 1"))
    words = ["torchrun(restarts=7,requeues=6)"]
    assert job.options == {"ar": True, "r": True, "n": "1,3", "Q": "all", "a": words, "gpu": "num=1/task"}


@pytest.mark.parametrize(
    ("restart", "run", "found", "words"),
    [
        ("OnFailure", "backoffLimit: 2", "all", "torchrun(requeues=2)"),
        ("Always", "", "all", "torchrun(requeues=6)"),
        ("ExitCode", "", " ".join(map(str, range(128, 256))), "torchrun(requeues=6)"),
        ("Never", "backoffLimit: 2", None, "torchrun"),
        ("OnFailure", "backoffLimit: 0", None, "torchrun"),
    ],
)
def test_what_restarts_a_pod_starts_the_whole_job_again(restart: str, run: str, found: str | None, words: str) -> None:
    """As often as backoffLimit says: a torchrun that fails ends the others, too."""
    role = replicas("Worker", "[torchrun, train.py]").replace("{replicas", f"{{restartPolicy: {restart}, replicas")
    job = manifest(role, policy=f"{{minReplicas: 1, maxReplicas: 3}}\n  runPolicy: {{{run}}}")
    assert (job.options.get("Q"), job.options["a"], job.ignored) == (found, [words], [])


def test_a_job_that_grows_and_has_a_deadline_is_not_started_again() -> None:
    """Each attempt would have all of the time."""
    policy = "{minReplicas: 1, maxReplicas: 3}\n  runPolicy: {activeDeadlineSeconds: 90}"
    job = manifest(replicas("Worker", "[torchrun, train.py]"), policy=policy)
    assert (job.options.get("Q"), job.options["W"], job.options["a"]) == (None, "2", ["torchrun"])
    assert job.ignored == ["restartPolicy OnFailure (the time of the job is that of one attempt)"]


def test_a_master_that_is_as_the_workers_is_the_first_host() -> None:
    both = replicas("Master", "[torchrun, train.py]", count=1) + replicas("Worker", "[torchrun, train.py]")
    job = manifest(both, policy="minReplicas: 2, maxReplicas: 5")
    assert (job.roles, job.options["n"]) == ([], "2,5")


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("[python3, -u, -m, torch.distributed.run, train.py, $(A)]", 'python3 -u -m torch.distributed.run train.py "${A}"'),
        ("[bash, -c, torchrun y]", "torchrun y"),
        ("[sh, -c, exec torchrun y]", "torchrun y"),
        ("[sh, -c, exec torchrun y >z 2>&1]", "torchrun y >z 2>&1"),
        ("[sh, -c, 'cd x && A=b /v/torchrun y']", "cd x && A=b /v/torchrun y"),
        ("[python3, train.py]", ""),
        ("[sh, -c, 'cd x; python torchrun.py']", ""),
        ("[./prog, torchrun]", ""),
    ],
)
def test_what_runs_torchrun(command: str, found: str) -> None:
    job = manifest(replicas("Worker", command))
    assert job.command == found
    why = "role worker does not run torchrun"
    assert job.ignored == ([] if found else [f"elasticPolicy once the job runs ({why})"])
    assert bool(job.roles) == (not found)


def test_one_that_cannot_grow_stays_as_it_was_and_is_named() -> None:
    both = replicas("Master", "[torchrun, lead.py]", count=1) + replicas("Worker", "[torchrun, train.py]")
    job = manifest(both)
    assert [role.name for role in job.roles] == ["master", "worker"]
    assert "ar" not in job.options
    assert job.ignored == ["elasticPolicy once the job runs (its roles are not alike)"]
    fixed = manifest(replicas("Worker", "[torchrun, train.py]"), policy="minReplicas: 2, maxReplicas: 2")
    assert (len(fixed.roles), fixed.ignored) == (1, [])


def test_a_file_of_lavas_own_layout_asks_for_it() -> None:
    more = "cwd: d, software: venv(/v), resreq: 'select[x] rusage[mem=9,lic=1]'"
    role = f"  w: {{count: '2,4', slots: 2, command: torchrun a.py, {more}}}"
    job = read("cwd: /w\n" + OWN + role)
    assert (job.options["n"], job.options["a"], job.options["cwd"]) == ("4,8", ["torchrun", "venv(/v)"], "/w/d")
    assert job.options["R"] == ["select[x] rusage[mem=9/host,lic=1/host]", "span[ptile=2]"]
    assert "-n 4,8" in bsub_line(job)
    assert read(OWN.replace("ar: true", "r: true") + role).roles


@pytest.mark.parametrize("command", ["|\n      exec torchrun a.py", "' exec  torchrun a.py'", '"exec\\ttorchrun a.py"'])
def test_a_command_that_is_written_otherwise_is_the_same(command: str) -> None:
    assert read(OWN + f"  w:\n    count: '2,4'\n    command: {command}\n").command == "torchrun a.py"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (OWN.replace("pytorch", "jax"), "only roles of PyTorch find each other anew, by torchrun"),
        (OWN.replace("nproc: 2", "nproc: 0"), "nproc is not given, with which torchrun starts the processes"),
        (OWN + "  v: {command: torchrun b.py}\n", "its roles are not alike"),
        (OWN + "  v: {count: 2, command: torchrun a.py}\n", "of two roles the first is one task"),
        (OWN.replace("nproc", "on: {Any: RestartJob}\nnproc"), "a job that grows has no on of a role"),
        (OWN.replace("nproc", "success: any\nnproc"), "a job that grows has no success any of a role"),
        (OWN.replace("nproc", "success: least(2)\nnproc"), "a job that grows has no success least(2) of a role"),
        (OWN.replace("nproc", "time_limit: 9\nnproc"), "a job that grows has no time_limit of a role"),
    ],
)
def test_ar_of_other_roles_is_refused(text: str, why: str) -> None:
    with pytest.raises(Fail) as failed:
        read(text + "  w: {count: '2,4', command: torchrun a.py}\n")
    assert failed.value.text == f"job.yaml: -ar: {why}"


@pytest.mark.parametrize(
    "field", ["scratch: true", "kind: launcher", "limits: {c: 5}", "on: {Any: Ignore}", "group: 2", "backoff_each: true"]
)
def test_ar_of_a_role_with_more_than_a_job_has_is_refused(field: str) -> None:
    with pytest.raises(Fail, match=r"^job.yaml: -ar: a job that grows has no \w+ of a role$"):
        read(OWN + f"  w: {{count: '2,4', command: torchrun a.py, {field}}}\n")
