"""SparkApplication of Kubeflow's spark-operator: a driver and executors as roles."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from cli.jobs import pods
from cli.jobs.fields import Fields
from cli.jobs.identity import Identity, plain
from cli.jobs.model import JobFile, Policy, Role
from cli.jobs.spark_cluster import DAEMONS, DRIVER, EXECUTOR, PROPERTIES, drive, property_file, work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.client.frames import Json

KIND = "SparkApplication"
GROUP = "sparkoperator.k8s.io"
_TYPES = {"Java": "", "Scala": "", "Python": ".py", "R": ".r"}
"""Of an application, and how the name of its file ends, by which spark-submit knows it."""
_MODES = ("cluster", "client", "in-cluster-client")
_DEPENDENCIES = {
    "jars": "--jars",
    "packages": "--packages",
    "excludePackages": "--exclude-packages",
    "repositories": "--repositories",
    "pyFiles": "--py-files",
    "files": "--files",
    "archives": "--archives",
}
_OURS = ("spark.master", "spark.submit.deployMode", "spark.driver.host", "spark.cores.max", "spark.app.name")
"""Properties of where and how it runs, which lava knows."""
_NOT_HERE = ("spark.kubernetes.", "spark.authenticate")
_SIZE = re.compile(r"(\d{1,12})([kmgtp]?)b?", re.IGNORECASE)
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "p": 2**50}
_LEAST_OVERHEAD = 384
_GPUS = ("nvidia.com/gpu", "volcano.sh/vgpu-number", "volcano.sh/gpu-number")
_OFTEN = 1_000_000


class _Properties:
    """sparkConf. What stands in its own field of a manifest counts before a property."""

    def __init__(self, spec: Fields) -> None:
        self.fields = spec.part("sparkConf")
        self.left = spec.texts("sparkConf")
        """Those that nobody has asked for."""

    def said(self, where: Fields, field: str, name: str) -> tuple[Fields, str]:
        """Where it stands, and as what: the field, or else the property ``name``."""
        self.left.pop(name, "")
        return (where, field) if field in where or name not in self.fields else (self.fields, name)

    def size(self, where: Fields, field: str, name: str) -> int:
        """MiB, rounded up; 0: it is not said."""
        return _size(*self.said(where, field, name), "m")


def _size(source: Fields, name: str, unit: str) -> int:
    """A size as Java has it, in MiB, rounded up; 0: there is none. ``unit``: of a number without."""
    text = source.text(name)
    if not text:
        return 0
    match = _SIZE.fullmatch(text)
    if match is None:
        raise source.fail(name, f"{text[:40]} is no size as Spark has it, such as 512m or 2g")
    of_bytes = text[-1:] in "bB" and not match[2]
    return math.ceil(int(match[1]) * _UNITS[("" if of_bytes else match[2] or unit).lower()] / 2**20)


@dataclass
class _Process:
    """What the driver, or an executor, needs. ``heap``, ``memory``: MiB of its Java, and of its task."""

    fields: Fields
    cores: int
    slots: int
    heap: int
    memory: int
    gpus: int


def read_application(spec: Fields, _: Fields, job: JobFile, name: str, namespace: str) -> None:
    """A SparkApplication of v1beta2: the driver's end is the job's."""
    kind = spec.text("type", "Scala")
    if kind not in _TYPES:
        raise spec.fail("type", f"{kind[:40]}: it is one of {', '.join(_TYPES)}")
    mode = spec.text("mode", _MODES[0])
    if mode not in _MODES:
        raise spec.fail("mode", f"{mode[:40]}: it is one of {', '.join(_MODES)}, which are one here")
    for field in ("sparkVersion", "pythonVersion", "batchScheduler"):
        spec.any(field)  # Spark and Python are those of the job's PATH, and the scheduler is lava
    if spec.flag("suspend"):
        job.options["H"] = True
    properties = _Properties(spec)
    factor = _factor(spec, properties, kind in ("Python", "R"))
    driver = _process(DRIVER, spec.part("driver"), properties, factor)
    executor = _process(EXECUTOR, spec.part("executor"), properties, factor)
    executors = Role(EXECUTOR, restart="Always", after=[DRIVER])
    _count(spec, executor.fields, properties, executors)
    properties.left.pop("spark.executor.maxNumFailures", "")
    failures = properties.fields.number("spark.executor.maxNumFailures", max(3, 2 * executors.count))
    executors.backoff = max(0, failures)
    _batch(spec.part("batchSchedulerOptions"), driver, executor, executors, job)
    driving = Role(DRIVER)
    job.policy = Policy(success=DRIVER, backoff=0)
    _restarts(spec.part("restartPolicy"), driving, job)
    job.policy.clean = "running" if executor.fields.any("deleteOnTermination") is False else "all"
    folder = properties.left.pop("spark.local.dir", "")
    driving.env = {PROPERTIES: property_file(_settings(spec, properties, driver, executor, job))}
    words = [*_options(spec, name, job), *_application(spec, kind)]
    commands = {
        DRIVER: drive(words, executor.cores),
        EXECUTOR: work(executor.cores, executor.heap, executor.gpus),
    }
    for role, process in ((driving, driver), (executors, executor)):
        role.scratch = True
        pod = f"{plain(name)}-{DRIVER}" if role is driving else f"{plain(name)}-exec-$((LAVA_INDEX + 1))"
        one = Identity(role.name, run=_runs(commands[role.name]))
        one.fields = {**one.common(pod, namespace), "spark-role": role.name, f"{GROUP}/app-name": plain(name)}
        job.identities[role.name] = one
        given = role.env
        _pod(spec, process, role, job)
        role.env |= given
        if folder:
            role.env.setdefault("SPARK_LOCAL_DIRS", folder)
        job.roles.append(role)
        job.ignore(*(f"{role.name}.{field}" for field in process.fields.others()))


def _runs(command: str) -> Callable[[Role, str], str]:
    return lambda *_: command


def _factor(spec: Fields, properties: _Properties, outside_java: bool) -> float:
    """How much of the heap a process has beside it; more where its program is not in Java."""
    source, known = properties.said(spec, "memoryOverheadFactor", "spark.kubernetes.memoryOverheadFactor")
    text = source.text(known, "0.4" if outside_java else "0.1")
    if not re.fullmatch(r"\d{1,6}(\.\d{1,12})?|\.\d{1,12}", text):
        raise source.fail(known, f"{text[:40]} is no factor such as 0.1")
    return float(text)


def _process(role: str, fields: Fields, properties: _Properties, factor: float) -> _Process:
    """What one process of a role needs, as Spark on Kubernetes counts it, and its master or worker beside it."""
    source, known = properties.said(fields, "cores", f"spark.{role}.cores")
    cores = _number(source, known, 1, 1)
    fields.any("coreLimit")  # a task has the CPUs of its slots, as those of other manifests
    asked = pods.cpus(*properties.said(fields, "coreRequest", f"spark.kubernetes.{role}.request.cores"))
    heap = properties.size(fields, "memory", f"spark.{role}.memory") or 1024
    overhead = properties.size(fields, "memoryOverhead", f"spark.{role}.memoryOverhead")
    beside = overhead or max(_LEAST_OVERHEAD, math.ceil(heap * factor))
    if role == EXECUTOR:
        beside += _size(properties.fields, "spark.executor.pyspark.memory", "m")
        if properties.fields.flag("spark.memory.offHeap.enabled"):
            beside += _size(properties.fields, "spark.memory.offHeap.size", "")
    gpus = _gpus(role, fields, properties)
    slots = max(1, math.ceil((asked or cores) - 1e-9))
    return _Process(fields, cores, slots, heap, heap + beside + DAEMONS, gpus)


def _gpus(role: str, fields: Fields, properties: _Properties) -> int:
    gpu = fields.part("gpu")
    name = gpu.text("name", _GPUS[0])
    if name not in _GPUS:
        raise gpu.fail("name", f"{name[:64]} cannot be had: GPUs are asked for as {_GPUS[0]}")
    by_property = _number(properties.fields, f"spark.{role}.resource.gpu.amount", 0, 0, 1024)
    return max(_number(gpu, "quantity", 0, 0, 1024), by_property)


def _count(spec: Fields, executor: Fields, properties: _Properties, role: Role) -> None:
    """How many executors there are, and with dynamic allocation at least: all that there is room for are there at the start."""
    source, known = properties.said(executor, "instances", "spark.executor.instances")
    role.count = _number(source, known, 1, 1)
    given = spec.part("dynamicAllocation")
    names = {field: f"spark.dynamicAllocation.{field}" for field in ("minExecutors", "maxExecutors", "initialExecutors")}
    on = given.flag("enabled") if given.names() else properties.fields.flag("spark.dynamicAllocation.enabled")
    least, most, first = (_number(*properties.said(given, field, name), 0, 0) for field, name in names.items())
    for field in ("shuffleTrackingEnabled", "shuffleTrackingTimeout"):
        given.any(field)  # an executor stays until the application ends
    if not on:
        return
    if most and least > most:
        raise given.fail("minExecutors", f"{least} is more than maxExecutors, {most}")
    role.count = most or max(role.count if (known in source) else 1, least, first)
    role.least = 0 if max(1, least) == role.count else max(1, least)


def _number(source: Fields, name: str, default: int, least: int, most: int = 100_000) -> int:
    number = source.number(name, default)
    if not least <= number <= most:
        raise source.fail(name, f"{number} is not between {least} and {most}")
    return number


def _batch(given: Fields, driver: _Process, executor: _Process, executors: Role, job: JobFile) -> None:
    """batchSchedulerOptions: the queue, the priority, and for how much there must be room, which says how many executors."""
    queue = given.text("queue")
    if queue and queue != "default":
        job.options["q"] = queue
    ranks = [given, driver.fields, executor.fields]
    job.priority_class = next((text for text in [one.text("priorityClassName") for one in ranks] if text), "")
    resources = given.part("resources")
    cpus, memory = pods.cpus(resources, "cpu"), pods.memory(resources) / 2**20
    room = []
    if cpus:
        room.append((cpus - driver.slots) / executor.slots)
    if memory:
        room.append((memory - driver.memory + DAEMONS) / (executor.memory - DAEMONS))
    if room:
        least = max(1, executors.least, min(executors.count, math.floor(min(room) + 1e-9)))
        executors.least = 0 if least == executors.count else least
    job.ignore(*(f"batchSchedulerOptions.resources.{one}" for one in resources.others()))
    job.ignore(*(f"batchSchedulerOptions.{one}" for one in given.others()))


def _restarts(given: Fields, driver: Role, job: JobFile) -> None:
    """restartPolicy: a new attempt of all where it failed, or the application again and again in its driver."""
    kind = given.text("type", "Never")
    retries = given.number("onFailureRetries", 0)
    if kind not in ("Never", "OnFailure", "Always"):
        raise given.fail("type", f"{kind[:40]}: it is one of Never, OnFailure, Always")
    if retries < 0:
        raise given.fail("onFailureRetries", f"{retries} is less than none")
    if kind == "OnFailure":
        job.policy.backoff = retries
        job.policy.actions = [("TaskFailed", "RestartJob", -1)]
    elif kind == "Always":
        driver.restart, driver.backoff = kind, _OFTEN
        job.options["r"] = True  # it has no end, wherever its driver runs
    for field in ("onSubmissionFailureRetries", "onSubmissionFailureRetryInterval"):
        given.any(field)  # lava run submits, or says why not
    job.ignore(*(f"restartPolicy.{field}" for field in given.others()))


def _options(spec: Fields, name: str, job: JobFile) -> list[str]:
    """The options of spark-submit but for properties."""
    found = ["--name", name] if name else []
    for field, option in (("mainClass", "--class"), ("proxyUser", "--proxy-user")):
        if text := spec.text(field):
            found += [option, text]
    deps = spec.part("deps")
    for field, option in _DEPENDENCIES.items():
        words = deps.words(field)
        if any("," in word for word in words):
            raise deps.fail(field, "a comma stands between its words, and in none of them")
        if words:
            found += [option, ",".join(words)]
    job.ignore(*(f"deps.{field}" for field in deps.others()))
    return found


def _application(spec: Fields, kind: str) -> list[str]:
    """The file of the application, and its arguments."""
    file = spec.text("mainApplicationFile")
    if not file:
        raise spec.fail("mainApplicationFile", "there is none")
    if not file.lower().endswith(_TYPES[kind]):
        raise spec.fail("mainApplicationFile", f"{file[-64:]}: of type {kind}, its name has to end in {_TYPES[kind]}")
    return [file, *spec.words("arguments")]


def _settings(spec: Fields, properties: _Properties, driver: _Process, executor: _Process, job: JobFile) -> dict[str, str]:
    """All properties of the application."""
    found = {}
    for name, value in properties.left.items():
        if name in _OURS or name.startswith(_NOT_HERE):
            job.ignore(f"sparkConf.{name[:64]}")
        elif not name.startswith("spark.dynamicAllocation."):
            found[name] = value
    found |= {f"spark.hadoop.{name}": value for name, value in spec.texts("hadoopConf").items()}
    job.settings = found.copy()
    for role, process in ((DRIVER, driver), (EXECUTOR, executor)):
        found[f"spark.{role}.memory"] = f"{process.heap}m"
        if options := process.fields.text("javaOptions"):
            found[f"spark.{role}.extraJavaOptions"] = options
    return found | {"spark.executor.cores": str(executor.cores)}


def _pod(spec: Fields, process: _Process, role: Role, job: JobFile) -> None:
    """Fill the role from its pod template, and from the fields that stand before what that says."""
    fields = process.fields
    template = fields.part("template")
    value: dict[str, Json] = {name: template.any(name) for name in template.names()}
    inside = template.part("spec")
    pod: dict[str, Json] = {name: inside.any(name) for name in inside.names()}
    pod["containers"] = inside.rows("containers") or [{"name": "spark"}]
    pod["nodeSelector"] = {**inside.texts("nodeSelector"), **spec.texts("nodeSelector"), **fields.texts("nodeSelector")}
    value["spec"] = pod
    fields.any("schedulerName")
    limits: dict[str, Json] = {"cpu": process.slots, "memory": f"{process.memory}Mi"}
    if process.gpus:
        gpu = fields.part("gpu").text("name", _GPUS[0])
        limits[gpu] = process.gpus
    container: dict[str, Json] = {"command": [], "resources": {"limits": limits}, "env": _env(fields)}
    for name in ("image", "imagePullPolicy"):
        if text := fields.text(name) or spec.text(name):
            container[name] = text
        spec.any(name)
    pods.read_template(Fields(value, template.where), role, job, Fields(container, fields.where))


def _env(fields: Fields) -> list[Json]:
    """All variables of a role, as a container has them."""
    found: list[Json] = [{"name": name, "value": value} for name, value in fields.texts("envVars").items()]
    for name in fields.part("envSecretKeyRefs").names():
        found.append({"name": name, "valueFrom": {"secretKeyRef": {"key": name}}})
    return found + fields.rows("env")
