"""RayJob and RayCluster of KubeRay: the head and groups of workers as roles, and how Ray is started in each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.client.context import Fail
from cli.jobs.model import JobFile
from cli.jobs.run import jobs_of
from cli.submit.yaml_text import read_yaml

pytest.importorskip("yaml")


def pod(container: str = "", limits: str = "cpu: 2") -> str:
    return f"{{spec: {{containers: [{{name: ray, {container} resources: {{limits: {{{limits}}}}}}}]}}}}"


def group(name: str = "small", counts: str = "replicas: 2,", params: str = "", template: str = "") -> str:
    return f"{{groupName: {name}, {counts} rayStartParams: {{{params}}}, template: {template or pod()}}}"


def cluster(*groups: str, head: str = "", params: str = "", more: str = "") -> str:
    groups = groups or (group(),)
    leads = f"{{rayStartParams: {{{params}}}, template: {head or pod()}}}"
    return f"{more} headGroupSpec: {leads}, workerGroupSpecs: [{', '.join(groups)}]"


def read_job(spec: str = "", more: str = "", entry: str = "python a.py") -> JobFile:
    text = (
        "apiVersion: ray.io/v1\nkind: RayJob\nmetadata: {name: x}\n"
        f"spec: {{entrypoint: '{entry}', {more} rayClusterSpec: {{{spec or cluster()}}}}}\n"
    )
    (job,) = jobs_of(read_yaml("job.yaml", text), "job.yaml")
    return job


def read_cluster(spec: str, meta: str = "") -> JobFile:
    text = f"apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {{name: x, {meta}}}\nspec: {{{spec}}}\n"
    (job,) = jobs_of(read_yaml("job.yaml", text), "job.yaml")
    return job


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Programs named ray and python that write the words they are given, and the environment of Ray."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("ray", "python", "prepare", "own"):
        script = folder / name
        script.write_text(
            f'#!/bin/sh\nfor word in {name} "$@"; do printf "%s\\0" "$word"; done >>"$WORDS"\nprintf "\\n" >>"$WORDS"\n'
        )
        if name == "python":  # what finds ports is run
            words = script.read_text().removeprefix("#!/bin/sh\n")
            script.write_text(f'#!/bin/sh\ncase "$2" in *create_server*) exec {sys.executable} "$@";; esac\n{words}')
        script.chmod(0o755)
    return folder


def started(programs: Path, job: JobFile, role: int, at: str = "10.0.0.1:20100") -> list[list[str]]:
    """The programs that a task runs, each with its words. ``at``: where the head is reached."""
    words = programs.parent / f"words.{role}"
    words.unlink(missing_ok=True)
    counts = {f"LAVA_COUNT_{one.name.upper()}": str(one.count) for one in job.roles}
    env = {
        "PATH": f"{programs}:/usr/bin:/bin",
        "WORDS": str(words),
        "LAVA_PORT": "20100",
        "LAVA_PEER_HEAD_0": at,
        "LAVA_INDEX": "1",
        **counts,
    }
    subprocess.run(["/bin/sh", "-c", job.roles[role].command], env=env, check=True)
    found = [line.split("\0")[:-1] for line in words.read_text().split("\0\n")[:-1] for line in [line + "\0"]]
    for line in found:
        for word in line:
            if word.startswith("--temp-dir=/tmp/ray."):
                os.rmdir(word.partition("=")[2])
    return found


CHOSEN = ("--temp-dir=/tmp/ray.", "--dashboard-port=", "--ray-client-server-port=")


def fixed(words: list[str]) -> list[str]:
    """Without a folder and ports that are others each time."""
    return [word for word in words if not word.startswith(CHOSEN)]


HEAD_WORDS = ["ray", "start", "--head", "--port=20100", "--node-ip-address=10.0.0.1"]
LISTEN = "--dashboard-agent-listen-port=0"


def test_the_head_submits_once_all_have_joined(programs: Path) -> None:
    """The entrypoint is run by Ray as KubeRay has it run; the cluster's end is the job's."""
    job = read_job(cluster(group("a"), group("b", "replicas: 3,")))
    assert [(role.name, role.count, role.after) for role in job.roles] == [
        ("head", 1, []),
        ("a", 2, ["head"]),
        ("b", 3, ["head"]),
    ]
    assert (job.policy.success, job.policy.backoff, job.policy.actions) == ("head", 0, [("TaskFailed", "RestartJob", -1)])
    head, wait, submit = started(programs, job, 0)
    assert fixed(head) == [*HEAD_WORDS, "--num-cpus=2", LISTEN, "--disable-usage-stats"]
    assert (wait[:2], wait[3:]) == (["python", "-c"], ["10.0.0.1:20100", "6"])
    assert submit == ["ray", "job", "submit", "--address=10.0.0.1:20100", "--", "python", "a.py"]
    (worker,) = started(programs, job, 2)
    assert fixed(worker) == [
        *("ray", "start", "--address=10.0.0.1:20100", "--block", "--num-cpus=2", LISTEN, "--disable-usage-stats"),
    ]
    assert [role.restart for role in job.roles] == ["Never", "Always", "Always"]


def test_nodes_of_one_host_have_folders_of_their_own(programs: Path) -> None:
    job = read_job()
    folders = {word for _ in range(2) for line in started(programs, job, 1) for word in line if word.startswith("--temp-dir=")}
    assert len(folders) == 2


def test_heads_on_one_host_listen_on_ports_of_their_own(programs: Path) -> None:
    """Ray ends, or takes no jobs, where a port is in use."""
    words = [word for _ in range(2) for word in started(programs, read_job(), 0)[0]]
    ports = [int(word.partition("=")[2]) for word in words if word.startswith(CHOSEN[1:])]
    assert len(set(ports)) == 4
    assert min(ports) > 1024
    job = read_job(cluster(params="dashboard-port: '8265'"))
    assert [word for word in started(programs, job, 0)[0] if "dashboard-port" in word] == ["--dashboard-port=8265"]


@pytest.mark.parametrize(
    ("at", "words"), [("[fd00::1]:20100", ["--node-ip-address=fd00::1"]), ("127.0.0.1:20100", []), ("127.0.1.1:20100", [])]
)
def test_the_heads_address_is_the_one_that_workers_are_given(programs: Path, at: str, words: list[str]) -> None:
    """Ray looks for a route to the Internet, and takes 127.0.0.1 without one; of one host it may."""
    (line, *_) = started(programs, read_job(), 0, at)
    assert [word for word in line if "node-ip" in word] == words


def test_what_is_submitted_with_the_entrypoint(programs: Path) -> None:
    more = (
        "jobId: one, metadata: {a: b}, entrypointNumCpus: 0.5, entrypointNumGpus: 1, entrypointResources: '{\"r\": 1}',"
        ' runtimeEnvYAML: "pip: [x]\\nenv_vars: {A: \\"1\\"}", backoffLimit: 2, activeDeadlineSeconds: 61, suspend: true,'
        " shutdownAfterJobFinishes: true, ttlSecondsAfterFinished: 9, submitterConfig: {}, submissionMode: HTTPMode,"
    )
    job = read_job(more=more, entry='python a.py && echo "b c"')
    words = started(programs, job, 0)[-1]
    given = dict(word[2:].split("=", 1) for word in words if "=" in word)
    assert json.loads(given.pop("runtime-env-json")) == {"pip": ["x"], "env_vars": {"A": "1"}}
    assert json.loads(given.pop("metadata-json")) == {"a": "b"}
    assert given == {
        "address": "10.0.0.1:20100",
        "submission-id": "one",
        "entrypoint-num-cpus": "0.5",
        "entrypoint-num-gpus": "1",
        "entrypoint-resources": '{"r": 1}',
    }
    assert words[-5:] == ["python", "a.py", "&&", "echo", "b c"]
    assert (job.options, job.policy.backoff, job.ignored) == ({"J": "x", "W": "2", "H": True, "r": True}, 2, [])
    assert read_job(more="shutdownAfterJobFinishes: false,").ignored == [
        "shutdownAfterJobFinishes (the cluster is the job, and ends with it)"
    ]


@pytest.mark.parametrize(
    ("params", "limits", "words"),
    [
        ("num-cpus: '0'", "cpu: 3", ["--num-cpus=0"]),
        ("", "cpu: 3, nvidia.com/gpu: 2", ["--num-cpus=3", "--num-gpus=2"]),
        ("", "cpu: 1, memory: 1Gi", ["--num-cpus=1", f"--memory={(1 << 30) - (1 << 30) * 3 // 10}",
                                     f"--object-store-memory={(1 << 30) * 3 // 10}"]),
        ("object-store-memory: '78643200'", "cpu: 1, memory: 100Mi",
         ["--num-cpus=1", f"--memory={20 << 20}", "--object-store-memory=78643200"]),
        ("port: '6379', block: 'true', address: x", "cpu: 1", ["--num-cpus=1"]),
        ("no-monitor: 'true', resources: '{\"a b\": 1}'", "cpu: 1", ["--num-cpus=1", "--no-monitor", '--resources={"a b": 1}']),
        ("temp-dir: /t", "cpu: 1", ["--num-cpus=1", "--temp-dir=/t"]),
        ("resources: '\"{\\\"a b\\\": 1}\"', labels: '\"a'", "cpu: 1", ["--num-cpus=1", '--resources={"a b": 1}', '--labels="a']),
        ("node-name: $LAVA_PORT, labels: '${LAVA_INDEX}', system-config: $(id)", "cpu: 1",
         ["--num-cpus=1", "--node-name=20100", "--labels=1", "--system-config=$(id)"]),
    ],
)  # fmt: skip
def test_options_of_ray_start(programs: Path, params: str, limits: str, words: list[str]) -> None:
    """Those of the manifest stand before what the container's limits say; where the head is, lava says."""
    job = read_job(cluster(group(params=params, template=pod(limits=limits))))
    (line,) = started(programs, job, 1)
    expected = ["ray", "start", "--address=10.0.0.1:20100", "--block", *words, LISTEN, "--disable-usage-stats"]
    assert sorted(fixed(line)) == sorted(expected)


@pytest.mark.parametrize(
    ("counts", "scales", "bounds"),
    [
        ("replicas: 3, minReplicas: 1, maxReplicas: 5,", "false", (0, 3)),
        ("replicas: 3, minReplicas: 1, maxReplicas: 5,", "true", (1, 5)),
        ("replicas: 3, minReplicas: 0, maxReplicas: 5,", "true", (1, 5)),
        ("replicas: 3, minReplicas: 5, maxReplicas: 5,", "true", (0, 5)),
        ("replicas: 9, minReplicas: 1, maxReplicas: 5,", "false", (0, 5)),
        ("minReplicas: 2,", "false", (0, 2)),
        ("replicas: 2, numOfHosts: 4,", "true", (0, 8)),
    ],
)
def test_how_many_workers(counts: str, scales: str, bounds: tuple[int, int]) -> None:
    """Ray's autoscaler would add some when they are needed; here they are there at the start, as far as there is room."""
    job = read_job(cluster(group(counts=counts), more=f"enableInTreeAutoscaling: {scales},"))
    assert (job.roles[1].least, job.roles[1].count) == bounds


def test_a_group_without_workers_is_none(programs: Path) -> None:
    job = read_job(cluster(group("a", "replicas: 0,"), group("b")))
    assert [role.name for role in job.roles] == ["head", "b"]
    assert started(programs, job, 0)[1][-1] == "3"


def test_a_cluster_goes_on(programs: Path) -> None:
    """Until it is killed, or its head ends."""
    job = read_cluster(cluster(more="suspend: true, rayVersion: '2.60.0', autoscalerOptions: {},"))
    assert (job.policy.success, job.ignored) == ("head", ["autoscalerOptions"])
    assert job.options == {"J": "x", "H": True, "r": True}
    assert [role.restart for role in job.roles] == ["Never", "Always"]
    (head,) = started(programs, job, 0)
    assert "--block" in head


def test_what_a_container_runs_before_ray(programs: Path) -> None:
    head = pod('command: [prepare], args: ["$(RAY_CLUSTER_NAME)", x-head-svc.default.svc.cluster.local],')
    lines = started(programs, read_cluster(cluster(head=head)), 0)
    assert (lines[0], lines[1][:2]) == (["prepare", "x", "10.0.0.1"], ["ray", "start"])
    own = pod('command: [sh, -c, "own $KUBERAY_GEN_RAY_START_CMD"],')
    lines = started(programs, read_cluster(cluster(head=own), 'annotations: {ray.io/overwrite-container-cmd: "true"}'), 0)
    assert fixed(lines[0]) == ["own", *HEAD_WORDS, "--block", "--num-cpus=2", LISTEN, "--disable-usage-stats"]


def test_fields_of_the_pod_are_known() -> None:
    env = "env: [{name: A, valueFrom: {fieldRef: {fieldPath: \"metadata.labels['ray.io/group']\"}}}],"
    command = read_job(cluster(group(template=pod(env)))).roles[1].command
    assert 'export A="small"; ' in command


@pytest.mark.parametrize(
    ("spec", "more", "why"),
    [
        ("", "clusterSelector: {a: b},", "clusterSelector: a Ray cluster that runs already"),
        ("", "schedule: '* * * * *',", "schedule: lava repeats no jobs"),
        (
            "",
            "submissionMode: InteractiveMode,",
            "submissionMode: InteractiveMode: lava submits the entrypoint itself; a RayCluster runs",
        ),
        ("", "runtimeEnvYAML: a,", "runtimeEnvYAML: this is no mapping of fields"),
        ("workerGroupSpecs: []", "", "rayClusterSpec.headGroupSpec: there is none"),
        (cluster(group("a"), group("a")), "", "rayClusterSpec.workerGroupSpecs[1].groupName: a is there twice"),
        (cluster(group(counts="replicas: -1,")), "", "rayClusterSpec.workerGroupSpecs[0].replicas: less than none"),
        (cluster(group(counts="numOfHosts: 0,")), "", "rayClusterSpec.workerGroupSpecs[0].numOfHosts: less than none"),
        (
            cluster(group(counts="minReplicas: 2, maxReplicas: 1,")),
            "",
            "rayClusterSpec.workerGroupSpecs[0].minReplicas: 2 is more",
        ),
    ],
)
def test_what_cannot_be_followed_is_refused_by_its_name(spec: str, more: str, why: str) -> None:
    with pytest.raises(Fail) as failed:
        read_job(spec, more)
    assert failed.value.text.removeprefix("job.yaml.spec.").startswith(why)


@pytest.mark.parametrize(("entry", "why"), [("", "there is none"), ('python "a', "a quote in it is not closed")])
def test_an_entrypoint_that_is_none(entry: str, why: str) -> None:
    with pytest.raises(Fail, match=rf"job\.yaml\.spec\.entrypoint: {why}"):
        read_job(entry=entry)


def test_a_suspended_group_has_no_nodes() -> None:
    job = read_job(cluster(group("a"), group("b", counts="replicas: 3, suspend: true,")))
    assert ([role.name for role in job.roles], job.ignored) == (["head", "a"], [])


def test_a_submitter_of_its_own_is_named() -> None:
    submitter = "submitterPodTemplate: {spec: {containers: [{name: s, command: [own]}]}},"
    assert read_job(more=submitter).ignored == ["submitterPodTemplate (the head submits)"]
