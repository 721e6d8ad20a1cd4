"""Kubernetes' manifests of training jobs: MPIJob, PyTorchJob and TFJob of kubeflow.org, and Volcano's Job.

Rule: a job runs as its manifest says, without containers; a field that means nothing here is named, one that is wrong refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from cli.client.context import Fail
from cli.jobs import pods
from cli.jobs.fields import Fields
from cli.jobs.model import Action, JobFile, Policy, Role

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.client.frames import Json

KINDS = ("MPIJob", "PyTorchJob", "TFJob")
_VERSIONS = {"MPIJob": ("v1", "v2beta1", "v1alpha2", "v1alpha1"), "PyTorchJob": ("v1", "v1beta2"), "TFJob": ("v1", "v1beta2")}
_CLEAN = {"Running": "running", "All": "all", "None": "none"}
_LIBRARIES = {"OpenMPI": "mpi", "Intel": "intelmpi", "MPICH": "mpich"}
_KEPT_BY_KUBERNETES = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")
"""What `kubectl get -o yaml` adds to what was asked for."""
_ORDER = ("Launcher", "Chief", "Master", "PS", "Worker", "Evaluator")


def read_manifest(value: Json, name: str) -> JobFile:
    """A manifest as a job."""
    top = Fields(value, name)
    kind = top.text("kind")
    group, _, version = top.text("apiVersion").partition("/")
    job = JobFile()
    meta = top.part("metadata")
    if title := meta.text("name") or meta.text("generateName"):
        job.options["J"] = title.replace("[", "(").replace("]", ")")
    if (namespace := meta.text("namespace")) and namespace != "default":
        job.options["P"] = namespace  # whom it is accounted to, and what limits of lsb.resources count
    spec = top.part("spec")
    if kind == "Job":
        if group != "batch.volcano.sh":
            raise top.fail("apiVersion", f"{group[:64]}: a Job is read of batch.volcano.sh")
        read_volcano(spec, job)
    else:
        if group != "kubeflow.org" or version not in _VERSIONS[kind]:
            known = ", ".join(f"kubeflow.org/{one}" for one in _VERSIONS[kind])
            raise top.fail("apiVersion", f"{group[:64]}/{version[:64]}: a {kind} is read of {known}")
        _READERS[kind](spec, job)
        if job.together:
            _spread_least(job.together, job)
    top.any("status")
    job.ignore(*spec.others(), *(f"metadata.{name}" for name in meta.others(_KEPT_BY_KUBERNETES)), *top.others())
    return job


# -- kubeflow.org ----------------------------------------------------------------------------------------------------------


def _replicas(spec: Fields, field: str, job: JobFile, known: tuple[str, ...], restart: str) -> dict[str, Fields]:
    """Each role's replica spec; roles are added to the job, in the order of the ranks."""
    specs = spec.part(field)
    names = {name.lower(): name for name in specs.names()}
    unknown = [name for lower, name in names.items() if lower not in {one.lower() for one in known}]
    if unknown:
        raise specs.fail(unknown[0][:64], f"no such role: it is one of {', '.join(known)}")
    if not names:
        raise spec.fail(field, "there is none")
    found = {}
    for name in _ORDER:
        if name.lower() not in names:
            continue
        one = specs.part(names[name.lower()])
        count = one.number("replicas", 1)
        if count == 0:
            continue
        role = Role(name.lower(), count=count)
        template = one.part("template")
        in_pod = template.part("spec").text("restartPolicy")
        role.restart = one.text("restartPolicy", in_pod or restart)
        if in_pod and in_pod != role.restart:
            job.ignore(f"{name}.template.spec.restartPolicy")  # that of the replicas stands before it, as in Kubeflow
        pods.read_template(template, role, job)
        job.ignore(*one.others())
        job.roles.append(role)
        found[name.lower()] = one
    return found


def _run_policy(spec: Fields, job: JobFile) -> None:
    """runPolicy, or the same fields beside it as older versions have them."""
    inner = spec.part("runPolicy")
    for where in (spec, inner):
        if clean := where.text("cleanPodPolicy"):
            if clean not in _CLEAN:
                raise where.fail("cleanPodPolicy", f"{clean[:40]}: it is one of {', '.join(_CLEAN)}")
            job.policy.clean = _CLEAN[clean]
        if "backoffLimit" in where:
            job.policy.backoff = where.number("backoffLimit", 6)
        if "activeDeadlineSeconds" in where:
            job.options["W"] = str(max(1, math.ceil(where.number("activeDeadlineSeconds", 0) / 60)))
        where.any("backoffLimit")
        where.any("activeDeadlineSeconds")
        if where.flag("suspend"):
            job.options["H"] = True
        if "schedulingPolicy" in where:
            _scheduling(where.part("schedulingPolicy"), job)
    job.ignore(*(f"runPolicy.{name}" for name in inner.others()))


def _scheduling(policy: Fields, job: JobFile) -> None:
    """schedulingPolicy: the queue, the priority class and how many tasks start together at least."""
    if queue := policy.text("queue"):
        job.options["q"] = queue
    job.priority_class = policy.text("priorityClass")
    if "minAvailable" in policy:
        job.together = policy.number("minAvailable", 1)
    job.ignore(*(f"schedulingPolicy.{name}" for name in policy.others()))


def _mpi(spec: Fields, job: JobFile) -> None:
    slots = spec.number("slotsPerWorker", 1)
    if not 1 <= slots <= 100_000:
        raise spec.fail("slotsPerWorker", f"{slots} is not between 1 and 100000")
    job.policy = Policy(framework="mpi", nproc=slots)
    _run_policy(spec, job)
    library = spec.text("mpiImplementation", "OpenMPI")
    if library not in _LIBRARIES:
        raise spec.fail("mpiImplementation", f"{library[:40]}: it is one of {', '.join(_LIBRARIES)}")
    job.policy.framework = _LIBRARIES[library]
    for field in ("sshAuthMountPath", "launcherCreationPolicy", "mainContainer"):
        spec.any(field)  # lava starts the launcher when the workers are there, without ssh
    if spec.flag("runLauncherAsWorker"):
        raise spec.fail("runLauncherAsWorker", "not supported by lava: give the launcher's host as one more worker")
    found = _replicas(spec, "mpiReplicaSpecs", job, ("Launcher", "Worker"), "Never")
    if "launcher" not in found:
        raise spec.fail("mpiReplicaSpecs", "there is no Launcher")
    for role in job.roles:
        if role.name == "launcher":
            role.kind = "launcher"
        else:
            role.slots = max(role.slots, slots)
            pods.hold(role)
    job.policy.success = "launcher"


def _pytorch(spec: Fields, job: JobFile) -> None:
    job.policy = Policy(framework="pytorch")
    _run_policy(spec, job)
    found = _replicas(spec, "pytorchReplicaSpecs", job, ("Master", "Worker"), "OnFailure")
    elastic = spec.part("elasticPolicy")
    text = elastic.text("nProcPerNode") or spec.text("nprocPerNode")
    spec.any("nprocPerNode")
    if text:
        job.policy.nproc = _nproc(spec, text, job)
    if elastic.names():
        job.policy.nproc = job.policy.nproc or 1
        worker = next((role for role in job.roles if role.name == "worker"), job.roles[0])
        others = sum(role.count for role in job.roles) - worker.count
        worker.least = max(1, elastic.number("minReplicas", worker.count + others) - others)
        worker.count = max(worker.least, elastic.number("maxReplicas", worker.count + others) - others)
        if "maxRestarts" in elastic:
            job.env["PET_MAX_RESTARTS"] = str(elastic.number("maxRestarts", 0))
        for field in ("rdzvBackend", "rdzvPort", "rdzvHost", "rdzvId"):
            elastic.any(field)  # the rendezvous is lava's: c10d at the first task, on a port that is free there
        job.ignore(*(f"elasticPolicy.{name}" for name in elastic.others()))
    job.policy.success = "master" if "master" in found else "worker[0]"


def _nproc(spec: Fields, text: str, job: JobFile) -> int:
    """auto, gpu, cpu or a number."""
    if text.isdecimal() and len(text) < 6 and int(text):
        return int(text)
    if text not in ("auto", "gpu", "cpu"):
        raise spec.fail("nprocPerNode", f"{text[:40]}: it is auto, gpu, cpu or a number")
    gpus = max(role.gpus for role in job.roles)
    slots = max(role.slots for role in job.roles)
    return slots if text == "cpu" else gpus or (slots if text == "auto" else 1)


def _tensorflow(spec: Fields, job: JobFile) -> None:
    job.policy = Policy(framework="tensorflow")
    _run_policy(spec, job)
    found = _replicas(spec, "tfReplicaSpecs", job, ("PS", "Chief", "Master", "Worker", "Evaluator"), "Never")
    rule = spec.text("successPolicy")
    if rule not in ("", "AllWorkers", "ChiefOnly"):
        raise spec.fail("successPolicy", f'{rule[:40]}: it is "" or AllWorkers')
    lead = next((name for name in ("chief", "master") if name in found), "")
    if lead and rule != "AllWorkers":
        job.policy.success = lead
    elif "worker" in found:
        job.policy.success = "worker" if rule == "AllWorkers" else "worker[0]"
    else:
        job.policy.success = lead or "all"


_READERS: dict[str, Callable[[Fields, JobFile], None]] = {"MPIJob": _mpi, "PyTorchJob": _pytorch, "TFJob": _tensorflow}


# -- batch.volcano.sh --------------------------------------------------------------------------------------------------------

_EVENTS = {
    "TaskFailed": "TaskFailed",
    "PodFailed": "TaskFailed",
    "TaskCompleted": "TaskCompleted",
    "AnyEvent": "Any",
    "*": "Any",
}
_ACTIONS = {
    "RestartJob": "RestartJob",
    "RestartTask": "RestartTask",
    "RestartPod": "RestartTask",
    "AbortJob": "AbortJob",
    "TerminateJob": "AbortJob",
    "CompleteJob": "CompleteJob",
}


def read_volcano(spec: Fields, job: JobFile) -> None:
    """A Job of batch.volcano.sh/v1alpha1."""
    job.policy = Policy(framework="volcano", success="all", backoff=spec.number("maxRetry", 3))
    queue = spec.text("queue")
    if queue and queue != "default":
        job.options["q"] = queue
    job.priority_class = spec.text("priorityClassName")
    plugins = spec.part("plugins")
    for name in plugins.names():
        plugins.any(name)
        if name not in ("ssh", "svc", "env"):
            job.ignore(f"plugins.{name}")
    job.policy.actions = _policies(spec, job)
    for at, row in enumerate(spec.rows("tasks")):
        _task(Fields(row, f"{spec.where}.tasks[{at}]"), job)
    if not job.roles:
        raise spec.fail("tasks", "there is none")
    if any(role.kind == "hold" for role in job.roles):
        for role in job.roles:
            role.kind = role.kind or "launcher"
    _spread_least(spec.number("minAvailable", sum(role.least or role.count for role in job.roles)), job)


def _task(task: Fields, job: JobFile) -> None:
    role = Role(task.text("name") or "task", count=task.number("replicas", 1))
    role.least = task.number("minAvailable", 0)
    template = task.part("template")
    pods.read_template(template, role, job)
    role.restart = template.part("spec").text("restartPolicy", "Never")
    role.actions = _policies(task, job)
    pods.hold(role, only_sshd=True)
    if task.part("dependsOn").names():
        task.any("dependsOn")
        role.kind = role.kind or "launcher"
    job.ignore(*(f"tasks.{name}" for name in task.others()))
    job.roles.append(role)


def _spread_least(together: int, job: JobFile) -> None:
    """How many tasks start together at least (minAvailable): what may be missing, is missing of the last tasks first."""
    spare = max(0, sum(role.least or role.count for role in job.roles) - together)
    for role in reversed(job.roles):
        least = role.least or role.count
        less = min(spare, least - 1)
        if less:
            role.least, spare = least - less, spare - less


def _policies(fields: Fields, job: JobFile) -> list[Action]:
    found: list[Action] = []
    for at, row in enumerate(fields.rows("policies")):
        one = Fields(row, f"{fields.where}.policies[{at}]")
        action = one.text("action")
        events = [*one.words("events"), *([one.text("event")] if "event" in one else [])]
        code = one.number("exitCode", -1)
        if not action or not (events or code >= 0):
            raise Fail(f"{one.where}: a policy is an action and an event or exit code")
        if "PodEvicted" in events and action == "RestartJob":
            job.options["r"] = True  # whoever loses its host runs again
            events.remove("PodEvicted")
        elif action not in _ACTIONS:
            job.ignore(f"policies.{action[:64]}")
            continue
        if code >= 0 and not events:
            events = ["TaskFailed"]
        for event in events:
            if event in _EVENTS:
                found.append((_EVENTS[event], _ACTIONS[action], code))
            else:
                job.ignore(f"policies.{event[:64]}")
        job.ignore(*(f"policies.{name}" for name in one.others(("event", "events", "exitCode"))))
    return found
