"""SparkApplication of spark-operator: the driver and its executors as roles, and how Spark is started in each."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.client.context import Fail
from cli.jobs.local import written_secrets
from cli.jobs.model import JobFile, Role
from cli.jobs.run import jobs_of
from cli.submit.yaml_text import read_yaml

pytest.importorskip("yaml")

DAEMONS = 384
FILE = "type: Python, mainApplicationFile: a.py,"
JAR = "type: Scala, mainApplicationFile: a.jar,"


def read(more: str = "", driver: str = "", executor: str = "", what: str = FILE, meta: str = "") -> JobFile:
    text = (
        f"apiVersion: sparkoperator.k8s.io/v1beta2\nkind: SparkApplication\nmetadata: {{name: x, {meta}}}\n"
        f"spec: {{{what} {more} driver: {{{driver}}}, executor: {{{executor}}}}}\n"
    )
    (job,) = jobs_of(read_yaml("job.yaml", text), "job.yaml")
    return job


def needs(role: Role) -> tuple[int, int, int]:
    """(slots, MiB of memory, GPUs) of a task."""
    memory = int(role.limits["M"].removesuffix("K")) >> 10
    assert role.resreq == f"rusage[mem={memory}MB]"
    return role.slots, memory, role.gpus


MASTER = """#!{python}
import os, socket, sys, time
with open(os.environ["WORDS"], "a") as file:
    print("\\0".join(["spark-class", *sys.argv[1:], os.environ["SPARK_DAEMON_JAVA_OPTS"], os.environ["_SPARK_AUTH_SECRET"],
                     os.environ.get("SPARK_WORKER_OPTS", ""), os.environ["SPARK_LOCAL_DIRS"]]), file=file)
if sys.argv[1].endswith("Master"):
    with socket.create_server((sys.argv[3], int(sys.argv[5]))):
        time.sleep(600)
"""
SUBMIT = """#!{python}
import os, sys
with open(os.environ["WORDS"], "a") as file:
    print("\\0".join(["spark-submit", *sys.argv[1:]]), file=file)
sys.exit(7)
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A Spark whose programs write the words they are given; its master listens, and what is submitted ends with 7."""
    folder = tmp_path / "home"
    (folder / "bin").mkdir(parents=True)
    (folder / "conf").mkdir()
    (folder / "conf/spark-defaults.conf").write_text("spark.of.site 1\nspark.executor.memory 9g")
    for name, text in (("spark-class", MASTER), ("spark-submit", SUBMIT)):
        (folder / "bin" / name).write_text(text.replace("{python}", sys.executable))
        (folder / "bin" / name).chmod(0o755)
    return folder


def started(home: Path, job: JobFile, at: int, port: int = 0, **more: str) -> tuple[int, list[list[str]]]:
    """(exit code, programs that a task runs, each with its words)."""
    role = job.roles[at]
    words, scratch = home / f"words.{at}", home / f"scratch.{at}"
    words.unlink(missing_ok=True)
    scratch.mkdir(exist_ok=True)
    env = {
        "PATH": "/usr/bin:/bin",
        "SPARK_HOME": str(home),
        "WORDS": str(words),
        "LAVA_HOST": "host1",
        "LAVA_TOKEN": "t",
        "LAVA_SCRATCH": str(scratch),
        "LAVA_PORT": str(port),
        "LAVA_INDEX": "1",
        "LAVA_PEER_DRIVER_0": f"127.0.0.1:{port}",
        "LAVA_PEER_EXECUTOR_1": "10.0.0.2:77",
        "LAVA_COUNT_EXECUTOR": str(job.roles[1].count),
        **role.env,
        **more,
    }
    done = subprocess.run(["/bin/sh", "-c", role.command], env=env, check=False, timeout=60)
    lines = words.read_text().splitlines() if words.exists() else []
    return done.returncode, [line.split("\0") for line in lines]


@pytest.fixture
def free() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def properties(home: Path, job: JobFile, port: int) -> dict[str, str]:
    """What the driver's Spark reads: the last of each name."""
    started(home, job, 0, port)
    lines = (home / "scratch.0/job.conf").read_text().splitlines()
    return dict(line.replace("\\ ", "\0").replace("=", " ", 1).split(" ", 1) for line in lines if line)


def test_the_driver_starts_a_master_and_submits(home: Path, free: int) -> None:
    """The code of what is submitted is the driver's, and the master ends with it."""
    job = read('arguments: ["a b", 3, "$x"],', executor="instances: 3")
    assert [(role.name, role.count, role.after, role.restart) for role in job.roles] == [
        ("driver", 1, [], "Never"),
        ("executor", 3, ["driver"], "Always"),
    ]
    assert (job.policy.success, job.policy.clean, job.policy.backoff, job.roles[1].backoff) == ("driver", "all", 0, 6)
    code, (master, submit) = started(home, job, 0, free)
    secret = hashlib.sha256(b"spark t").hexdigest()
    assert master[1:8] == [
        *("org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(free), "--webui-port", "0"),
    ]
    assert (master[8].split()[0], master[9]) == ("-Dspark.authenticate=true", secret)
    conf = home / "scratch.0/job.conf"
    assert (code, submit[1:]) == (
        7,
        [
            *("--master", f"spark://127.0.0.1:{free}", "--deploy-mode", "client", "--properties-file", str(conf)),
            *("--name", "x", "a.py", "a b", "3", "$x"),
        ],
    )
    assert conf.stat().st_mode & 0o777 == 0o600
    with socket.create_server(("127.0.0.1", free)):
        pass


def test_the_properties_of_the_application(home: Path, free: int) -> None:
    """Those of the site stand behind those of the manifest, and both behind what lava knows."""
    more = (
        "sparkConf: {spark.a: 'b c', spark.driver.host: h, spark.kubernetes.x: 1, spark.authenticate: false,"
        " spark.ui.port: 4050}, hadoopConf: {fs.x: y},"
    )
    job = read(more, "memory: 600m, javaOptions: -Da=b", "instances: 2, cores: 4, memory: 2g, javaOptions: -Dc")
    assert properties(home, job, free) == {
        "spark.of.site": "1",
        "spark.a": "b\0c",
        "spark.hadoop.fs.x": "y",
        "spark.ui.port": "4050",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "600s",
        "spark.driver.memory": "600m",
        "spark.driver.extraJavaOptions": "-Da\\=b",
        "spark.executor.memory": "2048m",
        "spark.executor.extraJavaOptions": "-Dc",
        "spark.executor.cores": "4",
        "spark.cores.max": "8",
        "spark.driver.host": "127.0.0.1",
        "spark.authenticate": "true",
        "spark.authenticate.secret": hashlib.sha256(b"spark t").hexdigest(),
    }
    assert job.ignored == ["sparkConf.spark.driver.host", "sparkConf.spark.kubernetes.x", "sparkConf.spark.authenticate"]


def test_no_command_has_a_property() -> None:
    """All users see commands; who keeps a secret in a property is told so."""
    job = read("sparkConf: {spark.hadoop.fs.s3a.secret.key: hidden}, hadoopConf: {fs.s3a.access.key: too},")
    assert not any("hidden" in role.command or "too" in role.command for role in job.roles)
    assert written_secrets(job) == ["spark.hadoop.fs.s3a.access.key", "spark.hadoop.fs.s3a.secret.key"]


def test_an_executor_has_what_its_task_has(home: Path, free: int) -> None:
    job = read(executor="instances: 2, cores: 3, memory: 1g")
    with socket.create_server(("127.0.0.1", free)):
        code, (worker,) = started(home, job, 1, free)
    assert (code, worker[1:-4]) == (
        0,
        [
            *("org.apache.spark.deploy.worker.Worker", "--host", "10.0.0.2", "--port", str(free), "--webui-port", "0"),
            *("--work-dir", str(home / "scratch.1"), "--cores", "3", "--memory", "1024m", f"spark://127.0.0.1:{free}"),
        ],
    )
    assert worker[-3:] == [hashlib.sha256(b"spark t").hexdigest(), "", str(home / "scratch.1")]


def test_a_worker_offers_the_gpus_of_its_task(home: Path, free: int) -> None:
    job = read(executor='gpu: {name: nvidia.com/gpu, quantity: 2}')  # fmt: skip
    with socket.create_server(("127.0.0.1", free)):
        _, (worker,) = started(home, job, 1, free)
    file = home / "scratch.1/gpus.json"
    assert worker[-2].split() == ["-Dspark.worker.resource.gpu.amount=2", f"-Dspark.worker.resourcesFile={file}"]
    (offer,) = json.loads(file.read_text())
    assert offer == {"id": {"componentName": "spark.worker", "resourceName": "gpu"}, "addresses": ["0", "1"]}


def test_a_host_without_spark_says_so(tmp_path: Path, home: Path) -> None:
    assert started(home, read(), 0, 1, SPARK_HOME="")[0] == 127
    assert started(home, read(), 1, 1, SPARK_HOME=str(tmp_path))[0] == 127


def test_spark_is_found_by_its_programs_in_path(home: Path, free: int) -> None:
    """find-spark-home, which Spark has beside them, finds it by the place of the program that runs."""
    (home / "bin/find-spark-home").write_text('export SPARK_HOME="$(cd "$(dirname "$0")"/..; pwd)"\n')
    code, lines = started(home, read(), 0, free, SPARK_HOME="", PATH=f"{home}/bin:{os.environ['PATH']}")
    assert (code, len(lines)) == (7, 2)


@pytest.mark.parametrize(
    ("what", "driver", "executor", "asked"),
    [
        (JAR, "", "", [(1, 1024 + 384, 0), (1, 1024 + 384, 0)]),
        (JAR, "memory: 10g, cores: 4", "memory: 512m, cores: 2", [(4, 11264, 0), (2, 512 + 384, 0)]),
        (FILE, "", "memory: 2g", [(1, 1024 + 410, 0), (1, 2048 + 820, 0)]),
        (JAR, "memoryOverhead: 64m", "memoryOverhead: 1g, memory: 1g", [(1, 1024 + 64, 0), (1, 2048, 0)]),
        (JAR, "memoryOverhead: '100'", "memory: 2048", [(1, 1124, 0), (1, 2048 + 384, 0)]),
        (JAR + "memoryOverheadFactor: '0.5',", "memory: 2g", "memory: 4G", [(1, 3072, 0), (1, 6144, 0)]),
        (JAR, "coreRequest: 200m, cores: 2", "coreRequest: '2.5', coreLimit: 3", [(1, 1408, 0), (3, 1408, 0)]),
        (JAR, "", "gpu: {name: nvidia.com/gpu, quantity: 2}", [(1, 1408, 0), (1, 1408, 2)]),
        (JAR + "sparkConf: {spark.executor.resource.gpu.amount: '1'},", "", "", [(1, 1408, 0), (1, 1408, 1)]),
        (JAR + "sparkConf: {spark.executor.memory: 2g, spark.executor.cores: '2', spark.driver.memoryOverhead: '16'},",
         "", "", [(1, 1040, 0), (2, 2048 + 384, 0)]),
        (JAR + "sparkConf: {spark.executor.memory: 9g},", "", "memory: 1g", [(1, 1408, 0), (1, 1408, 0)]),
        (JAR + "sparkConf: {spark.memory.offHeap.enabled: true, spark.memory.offHeap.size: '1048577'},", "", "",
         [(1, 1408, 0), (1, 1410, 0)]),
        (JAR + "sparkConf: {spark.executor.pyspark.memory: 100},", "", "", [(1, 1408, 0), (1, 1508, 0)]),
    ],
)  # fmt: skip
def test_what_the_tasks_ask_for(what: str, driver: str, executor: str, asked: list[tuple[int, int, int]]) -> None:
    """As on Kubernetes: heap and overhead; and what the master or worker beside it needs."""
    job = read(driver=driver, executor=executor, what=what)
    assert [needs(role) for role in job.roles] == [(slots, memory + DAEMONS, gpus) for slots, memory, gpus in asked]


@pytest.mark.parametrize(
    ("more", "executor", "bounds"),
    [
        ("", "", (0, 1)),
        ("", "instances: 4", (0, 4)),
        ("sparkConf: {spark.executor.instances: '5'},", "", (0, 5)),
        ("dynamicAllocation: {enabled: false, maxExecutors: 9},", "instances: 4", (0, 4)),
        ("dynamicAllocation: {enabled: true, minExecutors: 2, maxExecutors: 9},", "instances: 4", (2, 9)),
        ("dynamicAllocation: {enabled: true, maxExecutors: 9},", "", (1, 9)),
        ("dynamicAllocation: {enabled: true, minExecutors: 2},", "instances: 4", (2, 4)),
        ("dynamicAllocation: {enabled: true, minExecutors: 2, initialExecutors: 6},", "", (2, 6)),
        ("dynamicAllocation: {enabled: true, minExecutors: 3, maxExecutors: 3},", "", (0, 3)),
        ("sparkConf: {spark.dynamicAllocation.enabled: 'true', spark.dynamicAllocation.maxExecutors: '3'},", "", (1, 3)),
        ("batchSchedulerOptions: {resources: {cpu: 5}},", "instances: 4, cores: 2", (2, 4)),
        ("batchSchedulerOptions: {resources: {cpu: 1}},", "instances: 4, cores: 2", (1, 4)),
        ("batchSchedulerOptions: {resources: {cpu: 50, memory: 8448Mi}},", "instances: 4, memory: 3g", (2, 4)),
        ("batchSchedulerOptions: {resources: {cpu: 50}},", "instances: 4", (0, 4)),
        ("batchSchedulerOptions: {resources: {cpu: 3}}, dynamicAllocation: {enabled: true, maxExecutors: 9},", "", (2, 9)),
    ],
)
def test_how_many_executors(more: str, executor: str, bounds: tuple[int, int]) -> None:
    """All that there is room for are there at the start, and at least so many."""
    role = read(more, executor=executor, what=JAR).roles[1]
    assert (role.least, role.count) == bounds


@pytest.mark.parametrize(
    ("policy", "of_all", "of_the_driver"),
    [
        ("", (0, []), ("Never", -1)),
        ("type: Never", (0, []), ("Never", -1)),
        ("type: OnFailure, onFailureRetries: 3", (3, [("TaskFailed", "RestartJob", -1)]), ("Never", -1)),
        ("type: OnFailure", (0, [("TaskFailed", "RestartJob", -1)]), ("Never", -1)),
        ("type: Always", (0, []), ("Always", 1_000_000)),
    ],
)
def test_when_it_runs_again(policy: str, of_all: tuple[int, list[object]], of_the_driver: tuple[str, int]) -> None:
    job = read(f"restartPolicy: {{{policy}}},")
    assert (job.policy.backoff, job.policy.actions) == of_all
    assert (job.roles[0].restart, job.roles[0].backoff) == of_the_driver
    assert job.options.get("r", False) is bool(of_all[0] or of_the_driver[1] > 0), (
        "where it may run again, a lost host does so, too"
    )


def test_queue_priority_and_hold() -> None:
    job = read("suspend: true, batchScheduler: volcano, batchSchedulerOptions: {queue: q, priorityClassName: '7', x: 1},")
    assert (job.options, job.priority_class, job.ignored) == ({"J": "x", "q": "q", "H": True}, "7", ["batchSchedulerOptions.x"])
    job = read("batchSchedulerOptions: {queue: default},", "priorityClassName: high")
    assert (job.options, job.priority_class) == ({"J": "x"}, "high")
    job = read(meta="namespace: team, labels: {kueue.x-k8s.io/queue-name: k}")
    assert job.options == {"J": "x", "P": "team", "q": "k"}


def test_dependencies_are_those_of_spark_submit(home: Path, free: int) -> None:
    deps = (
        "deps: {jars: [a.jar, local:///b.jar], files: [f], pyFiles: [p.zip], packages: ['g:a:1'], excludePackages: ['g:b'],"
        " repositories: [r], archives: ['t.tgz#t']}, mainClass: C, proxyUser: u,"
    )
    _, (_, submit) = started(home, read(deps, what=JAR), 0, free)
    assert submit[7:] == [
        *("--name", "x", "--class", "C", "--proxy-user", "u", "--jars", "a.jar,local:///b.jar", "--packages", "g:a:1"),
        *("--exclude-packages", "g:b", "--repositories", "r", "--py-files", "p.zip", "--files", "f", "--archives", "t.tgz#t"),
        "a.jar",
    ]


def test_variables_of_each_role() -> None:
    driver = "env: [{name: A, value: b}], envVars: {C: d}, envSecretKeyRefs: {S: {name: s, key: k}}"
    executor = "env: [{name: P, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]"
    job = read("sparkConf: {spark.local.dir: /big},", driver, executor)
    env = dict(job.roles[0].env)
    env.pop("SPARK_JOB_PROPERTIES")
    assert (env, job.secrets) == ({"C": "d", "A": "b", "SPARK_LOCAL_DIRS": "/big"}, ["S"])
    assert job.roles[1].env == {"SPARK_LOCAL_DIRS": "/big"}
    assert job.roles[1].command.startswith('export P="x-exec-$((LAVA_INDEX + 1))"; exec bash')


def test_a_pod_template_and_the_fields_that_stand_before_it() -> None:
    template = (
        "template: {spec: {nodeSelector: {a/disk: ssd}, containers: [{name: c, image: i, command: [never],"
        " env: [{name: A, value: b}, {name: B, value: c}]}]}}, env: [{name: A, value: z}], nodeSelector: {b/fast: 'true'}"
    )
    job = read("nodeSelector: {kubernetes.io/os: linux}, image: j,", executor=template)
    role = job.roles[1]
    assert role.env == {"A": "z", "B": "c"}
    assert role.resreq.startswith("select[disk==ssd && fast] rusage[mem=")
    assert "never" not in role.command
    assert job.images == {"driver": ("j", ""), "executor": ("j", "")}


def test_what_means_nothing_here_is_named() -> None:
    more = (
        "timeToLiveSeconds: 9, deps: {wheels: []}, volumes: [], monitoring: {}, sparkUIOptions: {},"
        " sparkVersion: 4.3.0, pythonVersion: '3',"
    )
    job = read(more, "serviceAccount: spark, coreLimit: 1200m, podName: p", "deleteOnTermination: false, volumeMounts: []")
    assert sorted(job.ignored) == [
        *("deps.wheels", "driver.podName", "driver.serviceAccount", "executor.volumeMounts"),
        *("monitoring", "sparkUIOptions", "timeToLiveSeconds", "volumes"),
    ]
    assert job.policy.clean == "running"


@pytest.mark.parametrize("mode", ["cluster", "client", "in-cluster-client"])
def test_modes_are_one(mode: str) -> None:
    assert read(f"mode: {mode},") == read()


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda: read(what="type: Rust, mainApplicationFile: a,"), "type: Rust: it is one of Java, Scala, Python, R"),
        (lambda: read(what=""), "mainApplicationFile: there is none"),
        (lambda: read(what="type: Python, mainApplicationFile: a.jar,"), "mainApplicationFile: a.jar: of type Python, its name"),
        (lambda: read("mode: local,"), "mode: local: it is one of cluster, client, in-cluster-client"),
        (lambda: read(driver="memory: 1Gi"), "driver.memory: 1Gi is no size as Spark has it"),
        (lambda: read(executor="memoryOverhead: 1.5g"), "executor.memoryOverhead: 1.5g is no size"),
        (lambda: read("sparkConf: {spark.driver.memory: much},"), "sparkConf.spark.driver.memory: much is no size"),
        (lambda: read("memoryOverheadFactor: half,"), "memoryOverheadFactor: half is no factor"),
        (lambda: read(driver="cores: 0"), "driver.cores: 0 is not between 1 and 100000"),
        (lambda: read(executor="coreRequest: many"), "executor.coreRequest: many is no number of CPUs"),
        (lambda: read(executor="instances: 0"), "executor.instances: 0 is not between 1 and 100000"),
        (lambda: read(executor="gpu: {name: amd.com/gpu, quantity: 1}"), "executor.gpu.name: amd.com/gpu cannot be had"),
        (lambda: read(executor="gpu: {quantity: -1}"), "executor.gpu.quantity: -1 is not between 0 and 1024"),
        (
            lambda: read("dynamicAllocation: {enabled: true, minExecutors: 3, maxExecutors: 2},"),
            "dynamicAllocation.minExecutors: 3 is more than maxExecutors, 2",
        ),
        (
            lambda: read("dynamicAllocation: {enabled: true, maxExecutors: -1},"),
            "dynamicAllocation.maxExecutors: -1 is not between 0 and 100000",
        ),
        (lambda: read("restartPolicy: {type: Sometimes},"), "restartPolicy.type: Sometimes: it is one of Never, OnFailure"),
        (lambda: read("restartPolicy: {type: OnFailure, onFailureRetries: -1},"), "restartPolicy.onFailureRetries: -1 is less"),
        (lambda: read("deps: {jars: ['a,b']},"), "deps.jars: a comma stands between"),
        (lambda: read(driver="env: [{value: a}]"), "driver.env[0].name: no name of a variable"),
    ],
)
def test_what_cannot_be_followed_is_refused_by_its_name(call: Callable[[], JobFile], why: str) -> None:
    with pytest.raises(Fail) as failed:
        call()
    assert failed.value.text.removeprefix("job.yaml.spec.").startswith(why)


def test_a_schedule_and_other_versions_are_refused() -> None:
    text = "apiVersion: sparkoperator.k8s.io/v1beta2\nkind: ScheduledSparkApplication\nspec: {}\n"
    with pytest.raises(Fail, match="kind ScheduledSparkApplication: lava repeats no jobs"):
        jobs_of(read_yaml("job.yaml", text), "job.yaml")
    text = "apiVersion: sparkoperator.k8s.io/v1beta1\nkind: SparkApplication\nspec: {}\n"
    with pytest.raises(Fail, match=r"a SparkApplication is read of sparkoperator\.k8s\.io/v1beta2"):
        jobs_of(read_yaml("job.yaml", text), "job.yaml")
