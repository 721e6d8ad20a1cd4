"""Job files of ``lava run``: lava's own layout there and back, manifests of four kinds, and files from hostile hands."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cli.client.context import Fail
from cli.client.options import read_command_options
from cli.jobs import own
from cli.jobs.local import use_images, use_secrets
from cli.jobs.model import JobFile, Policy, Role
from cli.jobs.run import bsub_line, jobs_of, shown
from cli.submit.script import command_line
from cli.submit.submit_options import bsub_table, propagated
from cli.submit.yaml_text import read_yaml
from tests.support.examples import examples

pytest.importorskip("yaml")
EXAMPLES = Path(__file__).parents[4] / "examples" / "roles"


def read(text: str) -> JobFile:
    (job,) = jobs_of(read_yaml("job.yaml", text), "job.yaml")
    return job


def example(name: str) -> JobFile:
    return read((EXAMPLES / name).read_text())


def why(text: str) -> str:
    with pytest.raises(Fail) as failed:
        read(text)
    assert "\n" not in failed.value.text
    return failed.value.text


# -- there and back ------------------------------------------------------------------------------------------------------

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1, max_size=20).filter(
    lambda text: text.strip() == text
)
WORD = st.from_regex(r"[a-z][a-z0-9_-]{0,8}", fullmatch=True)
ACTIONS = st.lists(
    st.tuples(st.sampled_from(["TaskFailed", "TaskCompleted"]), st.sampled_from(["RestartJob", "Ignore"]), st.integers(-1, 255)),
    max_size=3,
).map(lambda actions: sorted(actions, key=lambda action: (action[0], action[2])))
"""Those of one event and code beside each other, as a file has them."""
ROLE = st.builds(
    lambda count, least, **fields: Role(count=count, least=min(least, count), **fields),
    count=st.integers(1, 9),
    least=st.integers(0, 9),
    name=WORD,
    command=TEXT,
    slots=st.integers(1, 4),
    gpus=st.integers(0, 3),
    resreq=st.sampled_from(["", "rusage[mem=5]"]),
    limits=st.dictionaries(st.sampled_from("WMv"), WORD, max_size=2),
    env=st.dictionaries(WORD, TEXT, max_size=2),
    cwd=st.sampled_from(["", "/x"]),
    spread=st.booleans(),
    restart=st.sampled_from(["Never", "OnFailure", "Always", "ExitCode"]),
    kind=st.sampled_from(["", "launcher"]),
    actions=ACTIONS,
    after=st.lists(WORD, max_size=2),
    backoff=st.integers(-1, 9),
)
POLICY = st.builds(
    Policy,
    framework=st.sampled_from(["", "mpi", "tensorflow"]),
    success=st.sampled_from(["", "all", "any", "a,b[1]", "any(a,b)"]),
    clean=st.sampled_from(["running", "all", "none"]),
    launcher_start=st.sampled_from(["when_ready", "at_once"]),
    backoff=st.integers(0, 99),
    nproc=st.integers(0, 8),
    actions=ACTIONS,
)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "J": WORD,
        "q": WORD,
        "W": st.sampled_from(["60", "1:30"]),
        "o": TEXT.filter(lambda text: not text.startswith("-")),
        "r": st.just(True),
        "R": st.lists(WORD, min_size=1, max_size=2),
    },
)
ENV = st.dictionaries(st.from_regex(r"[A-Z]{1,5}", fullmatch=True), TEXT.filter(lambda text: "'" not in text), max_size=3)


@settings(max_examples=examples(150))
@given(st.lists(ROLE, min_size=1, max_size=4, unique_by=lambda role: role.name), POLICY, OPTIONS, ENV)
def test_what_dry_run_prints_means_the_same(roles: list[Role], policy: Policy, options: Any, env: dict[str, str]) -> None:
    """Job file to spec to what --dry-run prints, read again: the same spec."""
    job = JobFile(options=options, roles=roles, policy=policy, env=env)
    assert read(shown(job)) == job


@settings(max_examples=examples(150))
@given(OPTIONS, ENV, st.one_of(WORD, st.text(alphabet="ab '\"\\`$();&|<>*#~=-\n", min_size=1, max_size=9).map(str.strip)))
def test_a_job_without_roles_is_a_bsub_line(options: Any, env: dict[str, str], command: str) -> None:
    """Job file to bsub's flags and back: the same options, environment and command, and nothing for the shell to do."""
    assume(command and not command.startswith("-"))
    job = JobFile(options=options, command=command, env=env)
    words = shlex.split(bsub_line(job))
    given, rest = read_command_options(bsub_table(), words[1:])
    assert command_line(rest) == command
    wish = given.pop("env", None)
    assert given == options
    assert propagated({"HOME": "/"}, wish if isinstance(wish, str) else None) == {"HOME": "/"} | env


@pytest.mark.parametrize(
    "command", ["echo a; touch made", "echo $(touch made)", "touch made # x", "echo a &\ntouch made", "ls *"]
)
def test_a_shell_that_is_given_a_bsub_line_runs_nothing_of_its_command(command: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    line = bsub_line(JobFile(command=command))
    show = """bsub() { printf '%s' "$1"; }"""
    done = subprocess.run(["sh", "-c", f"{show}\n{line}"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (done.stdout, [*tmp_path.iterdir()]) == (command, [tmp_path / "file"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("command: !!timestamp abc", "a value is not of the kind that its tag (!!) names"),
        ("command: !!bool abc", "a value is not of the kind that its tag (!!) names"),
        ('command: "\\ud800"', r"\ud800: not a text in UTF-8"),
        ('{command: a, env: {"\\ud800": 1}}', r"\ud800: not a text in UTF-8"),
    ],
)
def test_values_that_are_none_are_named(text: str, said: str) -> None:
    assert why(text) == f"job.yaml: {said}"


def test_lavas_own_layout() -> None:
    """Fields with readable names, options of bsub by theirs, roles as a mapping or a list."""
    job = example("job.yaml")
    assert job.options == {"J": "servers", "o": "servers.%J", "label": True}
    assert [(role.name, role.least, role.count) for role in job.roles] == [("chief", 0, 1), ("ps", 0, 2), ("worker", 1, 3)]
    assert job.roles[2].actions == [("TaskFailed", "RestartJob", -1)]
    listed = read("roles: [{name: a, command: [echo, 'x y'], on: {TaskFailed(3): Ignore}}]")
    assert listed.roles[0].frame() == {"name": "a", "command": "echo 'x y'", "actions": [("TaskFailed", "Ignore", 3)]}
    assert read("success: [a, 'b[0]']\nroles: {a: {command: x, after: b}, b: {command: x}}").policy.success == "a,b[0]"
    assert own.show(read("command: sleep 1\noptions: {n: 4}")) == {"options": {"n": "4"}, "command": "sleep 1"}
    assert shown(read("command: sleep 1\noptions: {n: 4, r: true}")) == "bsub -n 4 -r sleep 1\n"


# -- manifests -----------------------------------------------------------------------------------------------------------


def test_an_mpijob() -> None:
    """Launcher and workers; workers that run an sshd only hold their slots."""
    job = example("mpijob.yaml")
    assert job.options == {"J": "hosts", "r": True}
    assert job.policy == Policy(framework="mpi", success="launcher", nproc=1, backoff=2)
    launcher, worker = job.roles
    assert (launcher.kind, launcher.restart, launcher.limits) == ("launcher", "OnFailure", {"M": "65536K"})
    assert launcher.command.startswith("sh -c 'cat /etc/mpi/hostfile")
    assert (worker.kind, worker.count, worker.slots, worker.command) == ("hold", 4, 1, "")
    assert worker.resreq == "rusage[mem=64MB]"
    assert job.ignored == []
    use_images(job, lambda name: True)
    assert job.ignored == ["image"], "a launcher's tasks run outside of containers"


MPI = """
apiVersion: kubeflow.org/%s
kind: MPIJob
spec:
  slotsPerWorker: 2
%s
  mpiReplicaSpecs:
    Worker:
      replicas: 2
      template: {spec: {containers: [{name: w, command: [sleep, infinity], resources: {limits: {cpu: 1500m}}}]}}
    Launcher: {template: {spec: {containers: [{name: l, command: [mpirun], args: [-np, "4", ./a.out]}]}}}
"""


@pytest.mark.parametrize("version", ["v1", "v2beta1", "v1alpha2"])
@pytest.mark.parametrize("where", ["  %s: None\n  %s: 4", "  runPolicy: {%s: None, %s: 4}"])
def test_each_version_of_an_mpijob(version: str, where: str) -> None:
    """v1, v2beta1, v1alpha2; the fields of the run policy within it or beside it."""
    job = read(MPI % (version, where % ("cleanPodPolicy", "backoffLimit")))
    mpich = MPI % (version, "  mpiImplementation: MPICH")
    assert (job.policy.framework, read(mpich).policy.framework) == ("mpi", "mpich")
    assert (job.policy.clean, job.policy.backoff, job.policy.nproc) == ("none", 4, 2)
    assert [(role.name, role.kind, role.slots) for role in job.roles] == [("launcher", "launcher", 1), ("worker", "hold", 2)]
    assert job.roles[0].command == "mpirun -np 4 ./a.out"


def test_a_pytorchjob() -> None:
    """Master first; OnFailure; $(RANK) is a variable of the task."""
    job = example("pytorchjob.yaml")
    assert [(role.name, role.count) for role in job.roles] == [("master", 1), ("worker", 2)]
    assert {role.restart for role in job.roles} == {"OnFailure"}
    assert job.roles[0].command == 'python3 meet.py --rank="${RANK}"'
    assert (job.policy.framework, job.policy.success, job.policy.nproc) == ("pytorch", "master", 0)


def test_an_elastic_pytorchjob() -> None:
    """Min and max of elasticPolicy, processes of each node; without a master worker 0 decides."""
    job = read("""
apiVersion: kubeflow.org/v1
kind: PyTorchJob
spec:
  elasticPolicy: {rdzvBackend: c10d, minReplicas: 1, maxReplicas: 3, maxRestarts: 7, nProcPerNode: 4}
  pytorchReplicaSpecs:
    Worker:
      replicas: 2
      template: {spec: {containers: [{name: pytorch, command: [torchrun, train.py],
        resources: {limits: {nvidia.com/gpu: 4, cpu: 8, memory: 1Gi}, requests: {cpu: 500m}}}]}}
""")
    worker = job.roles[0]
    assert (worker.least, worker.count, worker.gpus, worker.slots, worker.restart) == (1, 3, 4, 1, "OnFailure")
    assert (job.policy.nproc, job.policy.success, job.env) == (4, "worker[0]", {"PET_MAX_RESTARTS": "7"})


def test_a_tfjob() -> None:
    """Roles in the order of their ranks; the chief decides, or all workers."""
    job = example("tfjob.yaml")
    assert [(role.name, role.restart) for role in job.roles] == [("chief", "OnFailure"), ("ps", "Never"), ("worker", "ExitCode")]
    assert job.policy == Policy(framework="tensorflow", success="chief")
    every = (EXAMPLES / "tfjob.yaml").read_text().replace("  tfReplicaSpecs:", "  successPolicy: AllWorkers\n  tfReplicaSpecs:")
    assert read(every).policy.success == "worker"


@pytest.mark.parametrize("name", ["amd.com/gpu", "gpu.intel.com/i915", "nvidia.com/mig-3g.20gb"])
def test_devices_that_cannot_be_had_are_refused_by_name(name: str) -> None:
    text = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
spec:
  pytorchReplicaSpecs:
    Worker:
      template: {spec: {containers: [{name: pytorch, command: [a], resources: {limits: {NAME: 1}}}]}}
"""
    assert f"{name} cannot be had" in why(text.replace("NAME", name))


def test_a_volcano_job() -> None:
    """Tasks, policies to actions, minAvailable; who only runs an sshd holds slots for the others."""
    job = example("volcano.yaml")
    assert job.ignored == []
    master, worker = job.roles
    assert (master.name, master.kind, master.actions) == ("mpimaster", "launcher", [("TaskCompleted", "CompleteJob", -1)])
    assert (worker.name, worker.kind, worker.count) == ("mpiworker", "hold", 2)
    assert job.policy.framework == "volcano"
    fewer = read("""
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: x}
spec:
  minAvailable: 3
  maxRetry: 5
  queue: night
  policies: [{event: PodEvicted, action: RestartJob}, {event: PodFailed, action: RestartJob}, {exitCode: 3, action: AbortJob}]
  tasks:
  - {name: a, replicas: 2, template: {spec: {containers: [{command: [a]}]}}}
  - {name: b, replicas: 4, template: {spec: {restartPolicy: OnFailure, containers: [{command: [b]}]}}}
""")
    assert [(role.least, role.count, role.restart) for role in fewer.roles] == [(0, 2, "Never"), (1, 4, "OnFailure")]
    assert fewer.policy.actions == [("TaskFailed", "RestartJob", -1), ("TaskFailed", "AbortJob", 3), ("TaskFailed", "Ignore", -1)]
    assert fewer.options == {"J": "x", "q": "night", "r": True}


def test_what_means_nothing_here_is_named() -> None:
    """Images and volumes: one line, not an error."""
    job = read("""
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: x, namespace: y}
spec:
  runPolicy: {activeDeadlineSeconds: 90, ttlSecondsAfterFinished: 5, suspend: true}
  pytorchReplicaSpecs:
    Master:
      template:
        spec:
          volumes: [{name: v}]
          serviceAccountName: s
          containers:
          - {name: pytorch, image: i, command: [p, $(X)$(NOPE)$$(X)], volumeMounts: [{name: v}], workingDir: /w,
             env: [{name: X, value: "1 2"}, {name: S, valueFrom: {secretKeyRef: {name: k}}},
               {name: F, valueFrom: {fieldRef: {fieldPath: p}}}]}
          - {name: sidecar}
""")
    assert job.ignored == [
        "runPolicy.ttlSecondsAfterFinished",
        "further containers",
        "env F (valueFrom)",
        "volumeMounts",
        "volumes",
        "serviceAccountName",
    ]
    assert job.secrets == ["S"]
    assert job.options == {"J": "x", "P": "y", "W": "2", "H": True, "r": True}
    assert job.roles[0].command == "p \"${X}\"'$(NOPE)''$''(X)'"
    assert (job.roles[0].cwd, job.roles[0].env) == ("/w", {"X": "1 2", "PYTHONUNBUFFERED": "1"})


def test_a_file_of_several_documents_is_several_jobs() -> None:
    text = "command: one\n---\nkind: Service\n---\ncommand: two\n"
    first, second = jobs_of(read_yaml("jobs.yaml", text), "jobs.yaml")
    assert (first.command, second.command, first.ignored) == ("one", "two", ["Service"])


def test_secrets_are_those_that_lava_keeps() -> None:
    """SecretKeyRef is the user's own secret of the variable's name; without one it is named."""
    job = JobFile(secrets=["TOKEN", "KEY"], options={"secret": "OTHER"})
    use_secrets(job, lambda name: name == "TOKEN")
    assert job.options == {"secret": "OTHER TOKEN"}
    assert job.ignored == ["env KEY (no lava secret of this name)"]


def test_images_run_where_there_is_a_runner() -> None:
    """Apptainer, podman or none on the submission host; the pull policy goes with the image."""
    text = (EXAMPLES / "pytorchjob.yaml").read_text()
    text = text.replace("image: example", "imagePullPolicy: Never\n            image: example")
    for runner, image in (("apptainer", "docker://example/pytorch"), ("podman", "example/pytorch")):
        job = read(text)
        use_images(job, lambda name, runner=runner: name == runner)  # type: ignore[misc]
        assert {role.software for role in job.roles} == {f"container({image},pull=never)"}
        assert job.ignored == []
    job = read(text)
    use_images(job, lambda name: False)
    assert job.ignored == ["image"]


# -- bad input -----------------------------------------------------------------------------------------------------------

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{b}: &{b} [*{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)
BAD = [
    ("[", "job.yaml: line 1: "),
    ("a: b: c", "job.yaml: line 1: "),
    ("", "job.yaml: there is no job in it"),
    ("- a", "job.yaml: this is no mapping of fields"),
    ("command: x\ncommand: y", "job.yaml: line 2: command is given twice"),
    ("a: &a [*a]", "job.yaml: line 1: found unconstructable recursive node"),
    (BOMB, "job.yaml: more than 50000 values"),
    ("[" * 3000, "job.yaml: line 1: nested deeper than 40 levels"),
    ("x: " + "a" * 300_000, "job.yaml: larger than 262144 characters"),
    ("!!python/object/apply:os.system [id]", "job.yaml: line 1: could not determine a constructor"),
    ("command: !!binary aGk=", "job.yaml.command: this is no text"),
    ("? [a, b]\n: c", "job.yaml: line 1: "),
    ("command: x\nfoo: 1", "job.yaml.foo: no such field"),
    ("roles: {}", "job.yaml.roles: there is none"),
    ("roles: {a: {cmd: x}}", "job.yaml.roles.a.cmd: no such field"),
    ("roles: {a: {count: many}}", "job.yaml.roles.a.count: many is no number of tasks"),
    ("roles: {a: {slots: two}}", "job.yaml.roles.a.slots: two is no whole number"),
    ("roles: {a: {slots: '--5'}}", "job.yaml.roles.a.slots: --5 is no whole number"),
    ("roles: {a: {command: x}}\ncommand: y", "job.yaml.command: each role has a command of its own"),
    ("roles: {a: {command: x}}\noptions: {n: 4}", "job.yaml.options.n: no option of bsub that a job file may have"),
    ("command: x\noptions: {nosuch: 4}", "job.yaml.options.nosuch: no option of bsub that a job file may have"),
    ("command: x\noptions: {I: true}", "job.yaml.options.I: no option of bsub that a job file may have"),
    (
        "kind: Deployment",
        "job.yaml: kind Deployment: it is one of MPIJob, PyTorchJob, TFJob, JAXJob, XGBoostJob, PaddleJob, MXJob, TrainJob,",
    ),
    ("kind: {a: b}", "job.yaml: kind {'a': 'b'}: it is one of MPIJob, "),
    ("kind: MPIJob\napiVersion: kubeflow.org/v9", "job.yaml.apiVersion: kubeflow.org/v9: a MPIJob is read of"),
    ("kind: Job\napiVersion: batch/v2", "job.yaml.apiVersion: batch/v2: a Job is read of batch.volcano.sh/v1alpha1, batch/v1"),
    (
        "kind: MPIJob\napiVersion: kubeflow.org/v1\nspec: {mpiReplicaSpecs: {Boss: {}}}",
        "job.yaml.spec.mpiReplicaSpecs.Boss: no such role",
    ),
    ("kind: MPIJob\napiVersion: kubeflow.org/v1\nspec: {}", "job.yaml.spec.mpiReplicaSpecs: there is none"),
    (
        "kind: TFJob\napiVersion: kubeflow.org/v1\nspec: {tfReplicaSpecs: {Worker: {template: {spec: {}}}}}",
        "job.yaml.spec.tfReplicaSpecs.Worker.template.spec.containers: there is none",
    ),
    ("command: x\n---\nfoo: 1", "job.yaml: document 2: neither a command nor roles"),
]


@pytest.mark.parametrize(("text", "said"), BAD, ids=[text[:30] for text, _ in BAD])
def test_a_bad_file_gives_one_line(text: str, said: str) -> None:
    """Bad input: hostile YAML, unknown fields, kinds and roles: one line that names the file and the place."""
    assert why(text).startswith(said)


@given(st.text(max_size=200))
def test_any_text_is_a_job_or_one_line(text: str) -> None:
    said = ""
    try:
        read(text)
    except Fail as failed:
        said = failed.text
    assert "\n" not in said
