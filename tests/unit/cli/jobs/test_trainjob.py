"""TrainJob of Kubeflow Trainer: what its runtime and its trainer say, as roles."""

from __future__ import annotations

import pytest

from cli.client.context import Fail
from cli.jobs.model import JobFile
from cli.jobs.run import jobs_of
from cli.submit.yaml_text import read_yaml

pytest.importorskip("yaml")
OWN = """
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: own}
spec:
  mlPolicy: {numNodes: 3, POLICY}
  podGroupPolicy: {coscheduling: {scheduleTimeoutSeconds: 90}}
  template:
    metadata: {labels: {a: b}}
    spec:
      network: {publishNotReadyAddresses: true}
      FAILURES
      replicatedJobs:
      - name: dataset-initializer
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: dataset-initializer}}
          spec: {template: {spec: {containers: [{name: d, command: [fetch]}]}}}
      - name: pool
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec:
            backoffLimit: 2
            template:
              spec:
                restartPolicy: Never
                containers:
                - {name: node, image: old, command: [a, b], args: [c], env: [{name: A, value: "1"}, {name: B, value: "2"}],
                   resources: {limits: {cpu: 4}}}
"""


def steps(name: str, trainer: str, runtime: str = "", more: str = "") -> list[JobFile]:
    text = f"""
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {{name: x, annotations: {{scheduling.volcano.sh/queue-name: night}}}}
spec: {{runtimeRef: {{name: {name}, kind: TrainingRuntime}}, managedBy: x, {more} trainer: {{{trainer}}}}}
"""
    return jobs_of(read_yaml("job.yaml", f"{runtime}\n---\n{text}" if runtime else text), "job.yaml")


def read(name: str, trainer: str, runtime: str = "", more: str = "") -> JobFile:
    """The job of the nodes."""
    return steps(name, trainer, runtime, more)[-1]


def own(policy: str, failures: str = "") -> str:
    return OWN.replace("POLICY", policy).replace("FAILURES", failures)


def test_nodes_of_torchrun() -> None:
    """A runtime that Kubeflow ships; a process for each GPU, else for each CPU of a node, unless the job has a number."""
    job = read("torch-distributed", "numNodes: 4, command: [torchrun, t.py], resourcesPerNode: {limits: {nvidia.com/gpu: 2}}")
    (node,) = job.roles
    assert (node.name, node.count, node.gpus, node.command, node.restart) == ("node", 4, 2, "torchrun t.py", "OnFailure")
    assert (job.policy.framework, job.policy.success, job.policy.nproc) == ("pytorch", "all", 2)
    assert job.options == {"J": "x", "q": "night", "r": True}
    assert read("torch-distributed", "command: [a], resourcesPerNode: {requests: {cpu: 3}}").policy.nproc == 3
    assert read("torch-distributed", "command: [a], numProcPerNode: 5").policy.nproc == 5
    assert read("torch-distributed", "command: [a], numProcPerNode: gpu").policy.nproc == 1
    held = read("jax-distributed", "command: [a]", more="suspend: true, activeDeadlineSeconds: 90, initializer: {dataset: {}},")
    assert (held.options["H"], held.options["W"], held.ignored) == (True, "2", ["initializer.dataset"])


def test_the_trainer_stands_before_a_runtime_of_the_site() -> None:
    """Image, command, resources and variables of the job; what it does not give is the runtime's."""
    job = read("own", "env: [{name: B, value: '3'}], resourcesPerNode: {limits: {cpu: 2}}", own("torch: {numProcPerNode: cpu}"))
    (node,) = job.roles
    assert (node.name, node.count, node.slots, node.command) == ("pool", 3, 2, "a b c")
    assert (node.env, node.restart, job.policy.backoff, job.policy.nproc) == ({"A": "1", "B": "3"}, "OnFailure", 2, 2)
    assert job.options["r"] is True, "the pods of a Job are replaced backoffLimit times, whatever their own restartPolicy"
    assert (job.images, job.options["ptl"]) == ({"pool": ("old", "")}, "2")
    job = read("own", "image: new, command: [z], args: [y]", own("torch: {}"))
    assert (job.roles[0].command, job.images["pool"][0], job.policy.nproc) == ("z y", "new", 4)
    assert read("own", "command: [z]", own("jax: {}")).roles[0].command == "z"
    assert read("own", "args: [z]", own("jax: {}")).roles[0].command == "a b z"


def test_data_is_fetched_before_the_nodes_start() -> None:
    """A job of its own, with what the trainer's job says of it; the nodes' is behind it."""
    dataset = "dataset: {storageUri: 's3://b/d', env: [{name: A, value: '2'}], secretRef: {name: s}}"
    more = f"initializer: {{{dataset}, model: {{storageUri: /m}}}}, suspend: true,"
    first, last = steps("own", "command: [z]", own("torch: {}"), more)
    (fetch,) = first.roles
    assert (fetch.name, fetch.command, fetch.env, fetch.backoff) == (
        "dataset-initializer",
        "fetch",
        {"A": "2", "STORAGE_URI": "s3://b/d"},
        6,
    )
    assert (first.options, first.policy.framework, first.policy.success) == (
        {"J": "x-dataset-initializer", "q": "night", "H": True, "ptl": "2", "r": True},
        "",
        "all",
    )
    assert (last.options, last.policy.framework, last.before) == (
        {"J": "x", "q": "night", "ti": True, "ptl": "2", "r": True},
        "pytorch",
        [("done", first)],
    )
    assert [role.name for role in last.roles] == ["pool"]
    assert first.ignored == ["initializer.dataset.secretRef", "initializer.model"]
    image = own("jax: {}").replace("command: [fetch]", "image: fetcher")
    alone = read("own", "command: [z]", image)
    assert ([role.name for role in alone.roles], alone.ignored) == (
        ["pool"],
        ["replicatedJobs dataset-initializer (it has no command)"],
    )


def test_torchruns_nodes_may_be_fewer() -> None:
    policy = (
        "torch: {numProcPerNode: 2, elasticPolicy: {minNodes: 2, maxNodes: 5, maxRestarts: 7, metrics: [{type: Resource}], x: 1}}"
    )
    job = read("own", "", own(policy))
    assert (job.roles[0].least, job.roles[0].count, job.env) == (2, 5, {"PET_MAX_RESTARTS": "7"})
    assert job.elastic
    said = steps("own", "", own(policy))[0].ignored
    assert {"elasticPolicy.metrics (workers are added and taken by the room that there is)", "elasticPolicy.x"} <= set(said)


def test_all_starts_again_where_the_runtime_says_so() -> None:
    job = read("own", "", own("jax: {}", "failurePolicy: {maxRestarts: 3, rules: []}"))
    assert (job.policy.backoff, job.policy.actions) == (3, [("TaskFailed", "RestartJob", -1)])
    assert "failurePolicy.rules" in steps("own", "", own("jax: {}", "failurePolicy: {maxRestarts: 3, rules: []}"))[0].ignored


def test_the_launcher_of_mpi_is_one_of_the_nodes() -> None:
    """runLauncherAsNode: it runs the trainer's command, and its node has ranks too; without, it is beside the nodes."""
    trainer = "numNodes: 3, numProcPerNode: 2, command: [mpirun, a], resourcesPerNode: {limits: {nvidia.com/gpu: 2}}"
    job = read("deepspeed-distributed", trainer)
    assert [(role.name, role.kind, role.count, role.slots, role.gpus, role.command) for role in job.roles] == [
        ("launcher", "launcher_worker", 1, 2, 2, "mpirun a"),
        ("node", "hold", 2, 2, 2, ""),
    ]
    assert (job.policy.framework, job.policy.success, job.policy.nproc) == ("mpi", "launcher", 2)
    alone = read("deepspeed-distributed", "command: [a], resourcesPerNode: {limits: {nvidia.com/gpu: 4}}")
    assert [(role.name, role.slots) for role in alone.roles] == [("launcher", 4)]
    beside = read("own", "command: [a]", own("mpi: {mpiImplementation: MPICH, numProcPerNode: 2}"))
    assert [(role.name, role.kind, role.count, role.slots) for role in beside.roles] == [
        ("launcher", "launcher", 1, 1),
        ("node", "hold", 3, 2),
    ]
    assert beside.policy.framework == "mpich"


@pytest.mark.parametrize(
    ("name", "trainer", "runtime", "why"),
    [
        ("mine", "command: [a]", "", "job.yaml.spec.runtimeRef.name: mine: give its ClusterTrainingRuntime as a document too; "),
        ("torch-distributed", "", "", "job.yaml.spec.trainer.command: there is none, and the runtime has none"),
        ("mlx-distributed", "", "", "job.yaml.spec.trainer.command: there is none, and the runtime has none"),
        ("torch-distributed", "command: [a], numNodes: 0", "", "job.yaml.spec.trainer.numNodes: 0 nodes are no job"),
        ("torch-distributed", "command: [a], numProcPerNode: x", "", "job.yaml.spec.trainer.numProcPerNode: x: it is auto, gpu"),
        ("mlx-distributed", "command: [a], numProcPerNode: 0", "", "job.yaml.spec.trainer.numProcPerNode: 0 is not between"),
        ("own", "", own("flux: {}"), "own.spec.mlPolicy.flux: not supported by lava"),
        ("own", "", own("torch: {}, mpi: {}"), "own.spec.mlPolicy.mpi: a runtime has one of these, and there is torch"),
        ("own", "", own("mpi: {mpiImplementation: X}"), "own.spec.mlPolicy.mpi.mpiImplementation: X: it is one of OpenMPI"),
    ],
)
def test_what_cannot_run_is_refused(name: str, trainer: str, runtime: str, why: str) -> None:
    with pytest.raises(Fail) as failed:
        read(name, trainer, runtime)
    assert failed.value.text.replace("job.yaml: document 2", "job.yaml").startswith(why)


def test_a_runtime_alone_is_no_job() -> None:
    with pytest.raises(Fail, match="there is no job in it"):
        jobs_of(read_yaml("r.yaml", own("jax: {}")), "r.yaml")
    assert jobs_of(read_yaml("r.yaml", own("jax: {}")), "r.yaml", alone=False) == []


def test_what_the_nodes_wait_for() -> None:
    """Those that fetch data are a job before them, whatever the runtime says; any other order is named as ignored."""
    runtime = own("jax: {}").replace("- name: pool\n", "- name: pool\n        dependsOn: [{name: OTHER, status: Complete}]\n")
    runtime = runtime.replace(
        "backoffLimit: 2\n", "backoffLimit: 2\n            completionMode: Indexed\n            parallelism: 1\n"
    )
    assert [job.ignored for job in steps("own", "", runtime.replace("OTHER", "dataset-initializer"))] == [[], []]
    assert steps("own", "", runtime.replace("OTHER", "log"))[0].ignored == ["replicatedJobs pool: dependsOn log"]


def test_a_deadline_is_the_time_of_all_of_it() -> None:
    """With its restarts; the run limit is what others are planned by."""
    job = read("torch-distributed", "command: [a]", more="activeDeadlineSeconds: 90,")
    assert (job.policy.time_limit, job.options["W"]) == (90, "2")
