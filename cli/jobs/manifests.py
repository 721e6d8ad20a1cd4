"""Kubernetes' manifests of jobs: those of kubeflow.org and of Kubeflow Trainer, Volcano's Job, JobSet,
LeaderWorkerSet, RayJob and RayCluster, SparkApplication, and its own.

Rule: a job runs as its manifest says, without containers; a field that means nothing here is named, one that is wrong refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from cli.jobs import flow, jobset, leader_worker, pods, ray, spark
from cli.jobs.batch import read_batch
from cli.jobs.fields import Fields
from cli.jobs.identity import Hosts, of_pod
from cli.jobs.levels import split
from cli.jobs.model import JobFile, Policy, Role, minutes_of
from cli.jobs.pytorch import read_elastic, read_processes
from cli.jobs.trainer import MPI_LIBRARIES, RUNTIMES, read_trainjob, runtimes_of
from cli.jobs.volcano import read_volcano
from proto.roles import LAUNCHERS, MAX_TASKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.client.frames import Json

_VERSIONS = {
    "MPIJob": ("v1", "v2beta1", "v1alpha2", "v1alpha1"),
    "PyTorchJob": ("v1", "v1beta2"),
    "TFJob": ("v1", "v1beta2"),
    "JAXJob": ("v1",),
    "XGBoostJob": ("v1", "v1alpha1"),
    "PaddleJob": ("v1",),
    "MXJob": ("v1", "v1beta1"),
}
NAMED = (*RUNTIMES, flow.TEMPLATE)
"""Kinds that are no jobs, but are named by some."""
REFUSED = {
    "CronJob": "lava repeats no jobs: let cron run `lava run` of a Job with what its jobTemplate has",
    "RayCronJob": "lava repeats no jobs: let cron run `lava run` of a RayJob with what its jobTemplate has",
    "ScheduledSparkApplication": "lava repeats no jobs: let cron run `lava run` of a SparkApplication with what its template has",
}
"""Kinds of jobs that have no counterpart, and what to do instead."""
KINDS = (*_VERSIONS, "TrainJob", jobset.KIND, leader_worker.KIND, ray.JOB, ray.CLUSTER, spark.KIND, flow.KIND, "Job")
KNOWN = f"{', '.join(KINDS[:-1])} and Job (of Volcano, or batch/v1)"
_QUEUE, _PRIORITY = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class"
_VOLCANO_QUEUE = "scheduling.volcano.sh/queue-name"
"""An annotation of jobs of other kinds that Volcano schedules."""
_CLEAN = {"Running": "running", "All": "all", "None": "none"}
_KEPT_BY_KUBERNETES = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")
"""What `kubectl get -o yaml` adds to what was asked for."""
_UNBUFFERED = ("PyTorchJob", "JAXJob", "XGBoostJob")
"""Kinds whose operator has Python write each line at once, so that it can be followed."""
_DISCOVERY, _HOSTFILE = "/etc/mpi/discover_hosts.sh", "/etc/mpi/hostfile"
"""Files of the operator. The first is a program that Horovod asks again and again."""
_OF_THEIR_OWN = ("Job", jobset.KIND, leader_worker.KIND)
"""Kinds that say by other fields what becomes of pods whose node is lost."""
_ORDER = ("Launcher", "Chief", "Master", "Scheduler", "PS", "Server", "Worker", "Evaluator")


def unfolded(documents: list[Json], name: str) -> list[Json]:
    """Documents with what each List (``kubectl get -o yaml`` of several) has in its place. Raises Fail where that is no list."""
    found: list[Json] = []
    for one in documents:
        if isinstance(one, dict) and one.get("kind") == "List":
            found += unfolded(Fields(one, f"{name}: List").rows("items"), name)
        else:
            found.append(one)
    return found


def named_of(documents: list[Json]) -> dict[str, Json]:
    """What manifests may name among documents, to its spec: runtimes and templates."""
    return runtimes_of(documents) | flow.templates_of(documents)


def read_manifest(value: Json, name: str, named: Mapping[str, Json]) -> list[JobFile]:
    """A manifest as a job, or as several of which some wait for others. ``named``: as of ``named_of``."""
    top = Fields(value, name)
    kind = top.text("kind")
    group, _, version = top.text("apiVersion").rpartition("/")
    job = JobFile()
    meta = top.part("metadata")
    if title := meta.text("name") or meta.text("generateName"):
        job.options["J"] = title.replace("[", "(").replace("]", ")")
    if (namespace := meta.text("namespace")) and namespace != "default":
        job.options["P"] = namespace  # whom it is accounted to, and what limits of lsb.resources count
    spec = top.part("spec")
    known = _versions(kind)
    if (group, version) not in known:
        words = ", ".join(f"{one}/{number}" for one, number in known)
        raise top.fail("apiVersion", f"{f'{group}/{version}'.lstrip('/')[:128]}: a {kind} is read of {words}")
    if kind == flow.KIND:
        jobs = flow.read_flow(top, title, namespace, named, lambda one, place: read_manifest(one, place, named)[0])
        top.any("status")
        jobs[0].ignore(*(f"metadata.{name}" for name in meta.others(_KEPT_BY_KUBERNETES)), *top.others())
        return jobs
    if group == "batch.volcano.sh":
        read_volcano(spec, job)
    elif kind == "TrainJob":
        read_trainjob(spec, job, named)
    elif kind in _READERS:
        _read_replicas(kind, version, spec, job)
    else:
        _SETS[kind](spec, meta, job, title, namespace)
    if kind not in _OF_THEIR_OWN:
        job.outlive_hosts()
    job.check_names(spec.where)
    pods.refuse_images_own(spec, job)
    _labels(meta, job)
    job.share_gpus(spec.where)
    top.any("status")
    job.ignore(*spec.unread(), *(f"metadata.{name}" for name in meta.others(_KEPT_BY_KUBERNETES)), *top.others())
    return split(job, spec)


def _versions(kind: str) -> list[tuple[str, str]]:
    """(group, version) of each form of a kind that is read."""
    match kind:
        case "Job":
            return [("batch.volcano.sh", "v1alpha1"), ("batch", "v1")]
        case "TrainJob":
            return [("trainer.kubeflow.org", "v1alpha1")]
        case jobset.KIND:
            return [(jobset.GROUP, "v1"), (jobset.GROUP, "v1alpha2")]
        case leader_worker.KIND:
            return [(leader_worker.GROUP, "v1")]
        case flow.KIND:
            return [(flow.GROUP, "v1alpha1")]
        case ray.JOB | ray.CLUSTER:
            return [(ray.GROUP, "v1"), (ray.GROUP, "v1alpha1")]
        case spark.KIND:
            return [(spark.GROUP, "v1beta2")]
    return [("kubeflow.org", version) for version in _VERSIONS[kind]]


def _labels(meta: Fields, job: JobFile) -> None:
    """Kueue's labels: the queue and the priority class, and Volcano's annotation; other labels mean nothing here.

    What names a queue of Kueue is suspended until Kueue admits it, which is for the queue here: it is not held.
    """
    labels = meta.part("labels")
    if queue := labels.text(_QUEUE):
        job.options.setdefault("q", queue)
        job.options.pop("H", None)
    job.priority_class = job.priority_class or labels.text(_PRIORITY)
    if labels.others():
        job.ignore("metadata.labels")
    annotations = meta.part("annotations")
    if queue := annotations.text(_VOLCANO_QUEUE):
        job.options.setdefault("q", queue)
    if annotations.others():
        job.ignore("metadata.annotations")


def _read_replicas(kind: str, version: str, spec: Fields, job: JobFile) -> None:
    """A kind of which each role says how many there are, or a Job of batch/v1."""
    _READERS[kind](spec, job)
    for role in job.roles if kind in _UNBUFFERED else ():
        role.env.setdefault("PYTHONUNBUFFERED", "1")
    if kind == "MPIJob" and version != "v1":
        _retry_launcher(job)
    if job.together:
        job.start_together(job.together, f"{spec.where}: minAvailable")
        if not job.elastic:
            job.say_spare()


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
    _find_each_other({name: specs.part(given).number("replicas", 1) for name, given in names.items()}, job)
    for name in _ORDER:
        if name.lower() not in names:
            continue
        one = specs.part(names[name.lower()])
        count = one.number("replicas", 1)
        if count == 0:
            one.skip()
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
    if not found:
        raise spec.fail(field, "no role has a replica")
    return found


def _find_each_other(counts: dict[str, int], job: JobFile) -> None:
    """The host names of the pods in commands and variables are addresses: ``x-worker-0``, ``x-worker-0.team.svc``."""
    name, namespace = str(job.options.get("J", "job")), str(job.options.get("P", "default"))
    hosts = Hosts()
    for role, count in counts.items():
        hosts.tasks |= {f"{name}-{role}-{index}": (role, index) for index in range(min(count, MAX_TASKS))}
    if counts.get("launcher"):
        hosts.tasks[f"{name}-launcher"] = "launcher", 0
    hosts.find(name, namespace)
    for role in counts:
        job.identities[role] = replace(of_pod(name, namespace, role), hosts=hosts)


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
        where.any("backoffLimit")
        pods.read_deadline(where, job)
        if "schedulingPolicy" in where:
            _scheduling(where.part("schedulingPolicy"), job)
    job.ignore(*(f"runPolicy.{name}" for name in inner.others()))


def _scheduling(policy: Fields, job: JobFile) -> None:
    """schedulingPolicy: queue, priority class, how many tasks start together at least, how long they should wait."""
    if queue := policy.text("queue"):
        job.options["q"] = queue
    job.priority_class = policy.text("priorityClass")
    if "minAvailable" in policy:
        job.together = policy.number("minAvailable", 1)
    if seconds := policy.number("scheduleTimeoutSeconds", 0):
        job.options["ptl"] = minutes_of(seconds)
    job.ignore(*(f"schedulingPolicy.{name}" for name in policy.others()))


def _mpi(spec: Fields, job: JobFile) -> None:
    slots = spec.number("slotsPerWorker", 1)
    if not 1 <= slots <= 100_000:
        raise spec.fail("slotsPerWorker", f"{slots} is not between 1 and 100000")
    job.policy = Policy(framework="mpi", nproc=slots)
    _run_policy(spec, job)
    library = spec.text("mpiImplementation", "OpenMPI")
    if library not in MPI_LIBRARIES:
        raise spec.fail("mpiImplementation", f"{library[:40]}: it is one of {', '.join(MPI_LIBRARIES)}")
    job.policy.framework = MPI_LIBRARIES[library]
    for field in ("sshAuthMountPath", "launcherCreationPolicy", "mainContainer"):
        spec.any(field)  # lava starts the launcher when the workers are there, without ssh
    kind = "launcher_worker" if spec.flag("runLauncherAsWorker") else "launcher"
    found = _replicas(spec, "mpiReplicaSpecs", job, ("Launcher", "Worker"), "Never")
    if "launcher" not in found:
        raise spec.fail("mpiReplicaSpecs", "there is no Launcher")
    for role in job.roles:
        if role.name == "launcher":
            role.kind = kind
        else:
            pods.hold(role, job)
        if role.kind != "launcher":
            role.slots = max(role.slots, slots)
        if _DISCOVERY in job.bare[role.name]:
            raise spec.fail("mpiReplicaSpecs", f"{role.name}: {_DISCOVERY}: the workers of a job do not change: give {_HOSTFILE}")
    job.policy.success = "launcher"


def _retry_launcher(job: JobFile) -> None:
    """The launcher is a Job of batch/v1, which puts another pod in the place of one that failed, also with ``Never``."""
    for role in job.roles:
        if role.kind in LAUNCHERS and role.restart == "Never":
            role.restart = "OnFailure"


def _pytorch(spec: Fields, job: JobFile) -> None:
    job.policy = Policy(framework="pytorch")
    _run_policy(spec, job)
    found = _replicas(spec, "pytorchReplicaSpecs", job, ("Master", "Worker"), "OnFailure")
    elastic = spec.part("elasticPolicy")
    text = elastic.text("nProcPerNode") or spec.text("nprocPerNode")
    spec.any("nprocPerNode")
    if text:
        job.policy.nproc = read_processes(spec, "nprocPerNode", text, job)
    if elastic.names():
        job.policy.nproc = job.policy.nproc or 1
        if "maxRestarts" in elastic:
            job.env["PET_MAX_RESTARTS"] = str(elastic.number("maxRestarts", 0))
        for field in ("rdzvBackend", "rdzvPort", "rdzvHost", "rdzvId"):
            elastic.any(field)  # the rendezvous is lava's: c10d at the first task, on a port that is free there
        read_elastic(elastic, job)
    job.policy.success = "master" if "master" in found else "worker[0]"


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


def _jax(spec: Fields, job: JobFile) -> None:
    job.policy = Policy(framework="jax", success="worker")
    _run_policy(spec, job)
    _replicas(spec, "jaxReplicaSpecs", job, ("Worker",), "Never")


def _xgboost(spec: Fields, job: JobFile) -> None:
    """XGBoost and LightGBM: the master has rank 0, and decides."""
    job.policy = Policy(framework="xgboost", success="master")
    _run_policy(spec, job)
    found = _replicas(spec, "xgbReplicaSpecs", job, ("Master", "Worker"), "Never")
    if "master" not in found:
        raise spec.fail("xgbReplicaSpecs", "there is no Master")


def _paddle(spec: Fields, job: JobFile) -> None:
    """With masters, which are parameter servers, or workers alone (collective)."""
    job.policy = Policy(framework="paddle")
    _run_policy(spec, job)
    found = _replicas(spec, "paddleReplicaSpecs", job, ("Master", "Worker"), "OnFailure")
    elastic = spec.part("elasticPolicy")
    if elastic.names():
        if "maxRestarts" in elastic:
            job.env["PADDLE_MAX_RESTART"] = str(elastic.number("maxRestarts", 0))
        read_elastic(elastic, job)
    job.policy.success = "master" if "master" in found else "worker"


def _mxnet(spec: Fields, job: JobFile) -> None:
    job.policy = Policy(framework="mxnet", success="worker")
    _run_policy(spec, job)
    mode = spec.text("jobMode", "MXTrain")
    if mode != "MXTrain":
        raise spec.fail("jobMode", f"{mode[:40]}: lava runs MXTrain")
    found = _replicas(spec, "mxReplicaSpecs", job, ("Scheduler", "Server", "Worker"), "Never")
    if "worker" not in found:
        raise spec.fail("mxReplicaSpecs", "there is no Worker")


_READERS: dict[str, Callable[[Fields, JobFile], None]] = {
    "MPIJob": _mpi,
    "PyTorchJob": _pytorch,
    "TFJob": _tensorflow,
    "JAXJob": _jax,
    "XGBoostJob": _xgboost,
    "PaddleJob": _paddle,
    "MXJob": _mxnet,
    "Job": read_batch,
}
_SETS: dict[str, Callable[[Fields, Fields, JobFile, str, str], None]] = {
    jobset.KIND: jobset.read_jobset,
    leader_worker.KIND: leader_worker.read_set,
    ray.JOB: ray.read_job,
    ray.CLUSTER: ray.read_cluster,
    spark.KIND: spark.read_application,
}
"""Those whose pods know who they are: spec, metadata, job, name and namespace."""
