"""TrainJob of Kubeflow Trainer: a runtime says how nodes are started, the job what they run and how many there are.

A runtime is a TrainingRuntime or ClusterTrainingRuntime among the documents of the files, or one of those that Kubeflow ships.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy

from cli.jobs import pods
from cli.jobs.fields import Fields
from cli.jobs.model import JobFile, Policy, Role, minutes_of
from cli.jobs.patches import patched
from cli.jobs.pytorch import read_elastic, read_processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.client.frames import Json

KIND = "TrainJob"
GROUP = "trainer.kubeflow.org"
RUNTIMES = ("ClusterTrainingRuntime", "TrainingRuntime")
_STEP = f"{GROUP}/trainjob-ancestor-step"
_INITIALIZERS = {"dataset-initializer": "dataset", "model-initializer": "model"}
"""Steps that come before the trainer, and what the job calls them."""
_MPI: Json = {"mlPolicy": {"mpi": {"runLauncherAsNode": True}}}
_SHIPPED: dict[str, Json] = {
    "torch-distributed": {"mlPolicy": {"torch": {}}},
    "jax-distributed": {"mlPolicy": {"jax": {}}},
    "xgboost-distributed": {"mlPolicy": {"xgboost": {}}},
    "deepspeed-distributed": _MPI,
    "mlx-distributed": _MPI,
}
"""What the runtimes that Kubeflow ships say, without their images. None has a command that trains: that is the job's."""
_OF_SHIPPED = ("node", "launcher")
"""Replicated jobs of these."""
MPI_LIBRARIES = {"OpenMPI": "mpi", "Intel": "intelmpi", "MPICH": "mpich"}
"""mpiImplementation to the framework of a job."""


def runtimes_of(documents: list[Json]) -> dict[str, Json]:
    """Name to spec of each runtime among documents."""
    found: dict[str, Json] = {}
    for one in documents:
        if isinstance(one, dict) and one.get("kind") in RUNTIMES:
            top = Fields(one, str(one["kind"]))
            found[top.part("metadata").text("name")] = top.any("spec")
    return found


def read_trainjob(spec: Fields, job: JobFile, runtimes: Mapping[str, Json]) -> None:
    """A TrainJob of trainer.kubeflow.org/v1alpha1."""
    asked = spec.part("runtimeRef")
    for name in ("apiGroup", "kind"):
        asked.any(name)
    name = asked.text("name")
    if name not in runtimes and name not in _SHIPPED:
        known = ", ".join(_SHIPPED)
        raise asked.fail("name", f"{name[:64]}: give its ClusterTrainingRuntime as a document too; without one there are {known}")
    where, shipped = f"{name}.spec", name not in runtimes
    said = deepcopy(_SHIPPED[name]) if shipped else runtimes[name]
    runtime = Fields(patched(said, where, spec, job, _OF_SHIPPED if shipped else ()), where)
    spec.any("managedBy")
    _pod_group(runtime.part("podGroupPolicy"), job)
    _Nodes(spec.part("trainer"), spec.part("initializer"), runtime, job).read()
    pods.read_deadline(spec, job)
    job.ignore(*(f"runtime.{name}" for name in runtime.unread()))


def _pod_group(policy: Fields, job: JobFile) -> None:
    """podGroupPolicy: every job of lava starts whole or not at all; how long it should wait is ``-ptl``."""
    policy.any("volcano")
    if seconds := policy.part("coscheduling").number("scheduleTimeoutSeconds", 0):
        job.options["ptl"] = minutes_of(seconds)


def _restart(template: Fields) -> str:
    """Pods are those of a Job of batch/v1, which puts another one in the place of one that failed, also with ``Never``."""
    given = template.part("spec").text("restartPolicy", "OnFailure")
    return "OnFailure" if given == "Never" else given


class _Nodes:
    """The roles of a TrainJob: its nodes, with MPI their launcher, and what fetches data before them."""

    def __init__(self, trainer: Fields, initializer: Fields, runtime: Fields, job: JobFile) -> None:
        self.trainer = trainer
        self.initializer = initializer
        self.early: list[Role] = []
        self.policy = runtime.part("mlPolicy")
        self.job = job
        self.count = trainer.number("numNodes", self.policy.number("numNodes", 1))
        if self.count < 1:
            raise trainer.fail("numNodes", f"{self.count} nodes are no job")
        self.container = Fields(
            {name: trainer.any(name) for name in ("image", "command", "args", "env") if name in trainer}
            | ({"resources": trainer.any("resourcesPerNode")} if "resourcesPerNode" in trainer else {}),
            trainer.where,
        )
        self.set_of_jobs = runtime.part("template").part("spec")
        runtime.part("template").any("metadata")

    def read(self) -> None:
        """Fill the job's roles and policy."""
        policy = self.policy
        if "flux" in policy:
            raise policy.fail("flux", "not supported by lava: it starts ranks itself (mpi)")
        kinds = [name for name in ("torch", "mpi", "jax", "xgboost") if policy.any(name) is not None]
        if len(kinds) > 1:
            raise policy.fail(kinds[1], f"a runtime has one of these, and there is {kinds[0]}")
        kind = kinds[0] if kinds else ""
        self.job.policy = Policy(framework={"torch": "pytorch"}.get(kind, kind), success="all")
        if kind == "mpi":
            self._mpi(policy.part("mpi"))
        else:
            self._alike()
            if kind == "torch":
                self._torch(policy.part("torch"))
        self._failures()
        if self.early:
            self.job.levels = [[role.name for role in self.early], [role.name for role in self.job.roles]]
            self.job.roles = [*self.early, *self.job.roles]
        self.job.ignore(*(f"initializer.{name}" for name in self.initializer.others()))
        self.job.ignore(*(f"mlPolicy.{name}" for name in policy.others()))
        self.job.ignore(*(f"trainer.{name}" for name in self.trainer.others()))
        self.job.ignore(*(f"runtime.template.spec.{name}" for name in self.set_of_jobs.others(("network", "successPolicy"))))

    def _rows(self) -> dict[str, Fields]:
        """Name to replicated job of the runtime; those that fetch data become roles of a step before the others."""
        found = {}
        steps = {one.text("name"): self._step(one) for one in self.set_of_jobs.items("replicatedJobs")}
        for one in self.set_of_jobs.items("replicatedJobs"):
            name = one.text("name")
            if step := _INITIALIZERS.get(self._step(one)):
                self._initialize(one, name, step)
            else:
                found[name] = one
                for depends in one.items("dependsOn"):
                    other, status = depends.text("name"), depends.text("status", "Ready")
                    # what fetches data is a job before; a launcher starts when the nodes run
                    if steps.get(other) not in _INITIALIZERS and not (status == "Ready" and "mpi" in self.policy):
                        self.job.ignore(f"replicatedJobs {name[:64]}: dependsOn {other[:64]}")
        return found

    def _initialize(self, row: Fields, name: str, step: str) -> None:
        """What fetches the data set, or the model, that the job names. Without a command it is the image that knows how."""
        asked = self.initializer.part(step)
        env: list[Json] = list(asked.rows("env"))
        if "storageUri" in asked:
            env.append({"name": "STORAGE_URI", "value": asked.text("storageUri")})
        inner = row.part("template").part("spec")
        template = inner.part("template")
        role = Role(name, restart=_restart(template))
        pods.read_template(template, role, self.job, Fields({"env": env} if env else {}, asked.where))
        self.job.ignore(*(f"initializer.{step}.{one}" for one in asked.others()))
        if role.command:
            role.backoff = max(0, inner.number("backoffLimit", 6))
            self.early.append(role)
        else:
            self.job.images.pop(name, None)
            self.job.ignore(f"replicatedJobs {name[:64]} (it has no command)")

    @staticmethod
    def _step(one: Fields) -> str:
        return one.part("template").part("metadata").part("labels").text(_STEP)

    def _role(self, name: str, count: int, row: Fields | None, runs: bool) -> Role:
        """A role of the runtime's pod template. ``runs``: whether it is the one that runs what the trainer says."""
        role = Role(name, count=count)
        container = self.container
        if not runs:
            container = Fields({n: container.any(n) for n in ("resources",) if n in container}, container.where)
        if row is None:
            template = Fields({"spec": {"containers": [{"name": "node"}]}}, self.trainer.where)
        else:
            inner = row.part("template").part("spec")
            template = inner.part("template")
            self.job.policy.backoff = inner.number("backoffLimit", 6)
            for field in ("completionMode", "parallelism", "completions"):
                inner.any(field)  # how many there are is numNodes
        pods.read_template(template, role, self.job, container)
        role.restart = _restart(template)
        self.job.roles.append(role)
        return role

    def _alike(self) -> None:
        """Nodes that are all alike, and whatever else the runtime has."""
        rows = self._rows()
        node = next((name for name, row in rows.items() if self._step(row) == "trainer"), "node")
        role = self._role(node, self.count, rows.pop(node, None), runs=True)
        if not role.command:
            raise self.trainer.fail("command", "there is none, and the runtime has none")
        for name, row in rows.items():
            self._role(name, row.number("replicas", 1), row, runs=False)

    def _torch(self, torch: Fields) -> None:
        """Each node is a launcher of processes (torchrun reads PET_)."""
        where, name = (self.trainer, "numProcPerNode") if "numProcPerNode" in self.trainer else (torch, "numProcPerNode")
        self.job.policy.nproc = read_processes(where, name, where.text(name, "auto"), self.job)
        torch.any(name)
        elastic = torch.part("elasticPolicy")
        if elastic.names():
            if "maxRestarts" in elastic:
                self.job.env["PET_MAX_RESTARTS"] = str(elastic.number("maxRestarts", 0))
            read_elastic(elastic, self.job, "minNodes", "maxNodes")

    def _mpi(self, mpi: Fields) -> None:
        """A launcher, in one of the nodes or beside them; it is what runs the trainer's command."""
        job, rows = self.job, self._rows()
        library = mpi.text("mpiImplementation", "OpenMPI")
        if library not in MPI_LIBRARIES:
            raise mpi.fail("mpiImplementation", f"{library[:40]}: it is one of {', '.join(MPI_LIBRARIES)}")
        job.policy.framework = MPI_LIBRARIES[library]
        mpi.any("sshAuthMountPath")
        inside = mpi.flag("runLauncherAsNode")
        launcher = self._role("launcher", 1, rows.get("launcher"), runs=True)
        if not launcher.command:
            raise self.trainer.fail("command", "there is none, and the runtime has none")
        launcher.kind = "launcher_worker" if inside else "launcher"
        count = self.count - 1 if inside else self.count
        if count:
            node = self._role("node", count, rows.get("node"), runs=False)
            pods.hold(node, job)
        slots = self.trainer.number("numProcPerNode", mpi.number("numProcPerNode", 1))
        if slots == 1 and "numProcPerNode" not in self.trainer:
            slots = max(1, *(role.gpus for role in job.roles))  # a process for each GPU, as in Kubeflow
        if not 1 <= slots <= 100_000:
            raise self.trainer.fail("numProcPerNode", f"{slots} is not between 1 and 100000")
        job.policy.nproc = slots
        for role in job.roles:
            if role.kind != "launcher":
                role.slots = max(role.slots, slots)
        job.policy.success = "launcher"

    def _failures(self) -> None:
        """failurePolicy.maxRestarts: all of the job starts again."""
        failures = self.set_of_jobs.part("failurePolicy")
        restarts = failures.number("maxRestarts", 0)
        if restarts > 0:
            self.job.policy.backoff = restarts
            self.job.policy.actions = [("TaskFailed", "RestartJob", -1)]
            for role in self.job.roles:
                role.restart = "Never"
        self.job.ignore(*(f"failurePolicy.{name}" for name in failures.others()))
