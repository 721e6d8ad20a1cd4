"""Volcano's plugins for frameworks: which framework a job has, and what its tasks are called there."""

from __future__ import annotations

import subprocess

import pytest

from cli.client.context import Fail
from cli.jobs.model import JobFile
from cli.jobs.run import jobs_of
from cli.submit.yaml_text import read_yaml

pytest.importorskip("yaml")


def read(plugins: str, *tasks: str) -> JobFile:
    """A job with these tasks, each of one CPU and one GPU."""
    pod = "template: {spec: {containers: [{command: [run], resources: {limits: {cpu: 2, nvidia.com/gpu: 1}}}]}}"
    rows = ", ".join(f"{{name: {name}, replicas: 2, {pod}}}" for name in tasks)
    text = f"apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nspec: {{plugins: {{{plugins}}}, tasks: [{rows}]}}\n"
    (job,) = jobs_of(read_yaml("job.yaml", text), "job.yaml")
    return job


@pytest.mark.parametrize(
    ("plugins", "framework"),
    [
        ("ssh: [], svc: [], env: []", "volcano"),
        ("pytorch: [], svc: []", "volcano(pytorch)"),
        ('pytorch: ["--master=head", "--worker=worker", "--port=23456"]', "volcano(pytorch,master=head)"),
        ('tensorflow: ["-ps", head, --chief=worker]', "volcano(tensorflow,ps=head,chief=worker)"),
        ('mpi: ["--master=head"]', "volcano(mpi,master=head)"),
    ],
)
def test_the_framework_of_a_job(plugins: str, framework: str) -> None:
    job = read(plugins, "head", "worker")
    assert (job.policy.framework, job.ignored) == (framework, [])


def test_ray_is_started_with_what_its_tasks_have() -> None:
    """On the host's own ports, and with the task's CPUs and GPUs: other jobs have the rest of the host."""
    job = read('ray: ["--head=first-one", "--dashboardPort=8266", "--headContainer=x"]', "first-one", "worker")
    head, worker = job.roles
    own = '--disable-usage-stats --temp-dir="$(mktemp -d /tmp/ray.XXXXXXXX)"'
    sizes = "--num-cpus=2 --num-gpus=1 --dashboard-agent-listen-port=0"
    begin, _, rest = head.command.partition(" $(python -c ")
    assert begin == 'exec ray start --head --port="$LAVA_PORT"'
    end = f"--block {sizes} --dashboard-host=0.0.0.0 --dashboard-port=8266 {own}"
    assert rest.endswith(f' "${{LAVA_PEER_FIRST_ONE_0%:*}}" ray-client-server-port) {end}')
    assert worker.command == f'exec ray start --address="$LAVA_PEER_FIRST_ONE_0" --block {sizes} {own}'
    assert job.policy.framework == "volcano"


def test_what_means_nothing_is_named() -> None:
    assert read('pytorch: ["--wait=1"], hcclrank: []', "master").ignored == ["plugins.pytorch.wait", "plugins.hcclrank"]


@pytest.mark.parametrize(
    ("plugins", "why"),
    [
        ('pytorch: ["--master=boss"]', "job.yaml.spec.plugins.pytorch: --master=boss: there is no such task"),
        ("ray: []", "job.yaml.spec.plugins.ray: there is no task head"),
        ("pytorch: [], mpi: []", "job.yaml.spec.plugins.mpi: a job has one framework, and there is pytorch"),
        ("mpi: [master]", "job.yaml.spec.plugins.mpi: master: an argument is --NAME=VALUE"),
        ("mpi: 3", "job.yaml.spec.plugins.mpi: this is no list"),
    ],
)
def test_what_cannot_run_is_refused(plugins: str, why: str) -> None:
    with pytest.raises(Fail) as failed:
        read(plugins, "worker")
    assert failed.value.text == why


def enough(number: int) -> JobFile:
    pods = "template: {spec: {containers: [{command: [a]}]}}"
    tasks = f"[{{name: a, replicas: 2, {pods}}}, {{name: b, {pods}}}]"
    text = f"apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nspec: {{minSuccess: {number}, tasks: {tasks}}}\n"
    (job,) = jobs_of(read_yaml("j", text), "j")
    return job


@pytest.mark.parametrize(("number", "rule"), [(1, "any(1)"), (2, "any(2)"), (3, "all")])
def test_so_many_tasks_may_be_enough(number: int, rule: str) -> None:
    assert (enough(number).policy.success, enough(number).ignored) == (rule, [])


@pytest.mark.parametrize("number", [0, 4])
def test_more_than_all_are_not_enough(number: int) -> None:
    with pytest.raises(Fail, match=rf"j\.spec\.minSuccess: {number} is not between 1 and 3, the tasks of the job"):
        enough(number)


def test_host_names_of_tasks_are_addresses() -> None:
    """With the job's name behind them, as the plugin svc has it; a path that only looks like one stays."""
    command = '[sh, -c, "echo x-b-1.x:$(PORT) x-b-0.x.team.svc.cluster.local /data/x-b-1 x-b-7.x"]'
    text = (
        "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: x, namespace: team}\n"
        "spec:\n  plugins: {svc: []}\n  tasks:\n"
        f"  - {{name: a, template: {{spec: {{containers: [{{command: {command}, env: [{{name: PORT, value: '9'}}]}}]}}}}}}\n"
        "  - {name: b, replicas: 2, template: {spec: {containers: [{command: [run]}]}}}\n"
    )
    (job,) = jobs_of(read_yaml("job.yaml", text), "job.yaml")
    env = {"PATH": "/usr/bin:/bin", "PORT": "9", "LAVA_PEER_B_0": "10.0.0.5:1", "LAVA_PEER_B_1": "10.0.0.6:2"}
    done = subprocess.run(["/bin/sh", "-c", job.roles[0].command], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "10.0.0.6:9 10.0.0.5 /data/x-b-1 x-b-7.x\n"
    assert job.roles[1].command == "run"
