"""Ray: how its head and workers are started as tasks, and RayJob and RayCluster of KubeRay (ray.io).

Rule: a task is a node of Ray with the CPUs, GPUs and memory of the task, not of its host. Nodes that start on one host at
the same moment take the same names for their sockets, and one ends, unless each has a folder of its own. Heads on one host have
the same ports, and all but the first end or take no jobs, unless each is given others.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from shlex import quote

from cli.jobs import pods
from cli.jobs.fields import Fields
from cli.jobs.identity import Hosts, Identity, address, plain, variable
from cli.jobs.model import JobFile, Policy, Role

JOB, CLUSTER = "RayJob", "RayCluster"
GROUP = "ray.io"
HEAD = "head"
_FOLDER = '"$(mktemp -d /tmp/ray.XXXXXXXX)"'
"""Short, as the path of a socket has at most 107 bytes."""
_OURS = ("address", "block", "head", "port", "redis-password")
"""Parameters of ``ray start`` that say where the head is: lava knows."""
_MODES = ("K8sJobMode", "HTTPMode", "SidecarMode")
_OWN_COMMAND = "ray.io/overwrite-container-cmd"
_WAIT = (
    "import ray, sys, time; ray.init(address=sys.argv[1], logging_level='ERROR', log_to_driver=False)\n"
    "while sum(node['Alive'] for node in ray.nodes()) < int(sys.argv[2]): time.sleep(0.2)"
)
"""Ray has no command for it."""
_PORTS = ("dashboard-port", "ray-client-server-port")
"""Those on which each head listens, beside its own."""
_HEAD_OPTIONS = (
    "import socket, sys\n"
    "ip = socket.getaddrinfo(sys.argv[1].strip('[]'), None)[0][4][0]\n"
    "if not ip.startswith('127.'): print(f'--node-ip-address={ip}')\n"
    "held = {name: socket.create_server(('', 0)) for name in sys.argv[2:]}\n"
    "for name in held: print(f'--{name}={held[name].getsockname()[1]}')"
)
"""Ray asks a route to the Internet and the host's own name for its address, and takes 127.0.0.1 where there is neither,
which no other host reaches. Its ports are the same on all hosts, whoever has them already."""
_VARIABLE = re.compile(r"\$(\w+|\{\w+\})")
_MEMORY = re.compile(r"(\d+)K")
_LEAST_STORE = 80 << 20
"""Bytes. Ray refuses an object store of less than 75 MiB."""


def start(role: Role, head: str = "", params: Mapping[str, str] | None = None, block: bool = True) -> str:
    """``ray start`` of a task: of the head itself, or where ``head`` is a role, of one that joins it.

    ``params``: its options without ``--``, which stand before those of the task. ``block``: it ends when Ray does.
    """
    where = f'--address="$LAVA_PEER_{variable(head)}_0"' if head else '--head --port="$LAVA_PORT"'
    given = {"num-cpus": str(role.slots), "num-gpus": str(role.gpus) if role.gpus else "", **_memory(role)}
    given["dashboard-agent-listen-port"] = "0"
    given |= {name: value for name, value in (params or {}).items() if name not in _OURS}
    words = [f"--{name}={_word(value)}" if value != "true" else f"--{name}" for name, value in given.items() if value]
    if not head:
        where += f" {_of_head(role, given)}"
    folder = [] if "temp-dir" in given else [f"--temp-dir={_FOLDER}"]
    return " ".join(["ray start", where, *(["--block"] if block else []), *words, "--disable-usage-stats", *folder])


def _of_head(role: Role, given: Mapping[str, str]) -> str:
    """The head's address where the job has several hosts, and ports that are free; what is given stands behind, and counts."""
    free = " ".join(name for name in _PORTS if name not in given)
    return f'$(python -c {quote(_HEAD_OPTIONS)} "{address(role.name, 0)}" {free})'


def _word(value: str) -> str:
    """A parameter as a word of the shell, which KubeRay has read it: without its quotes, and a variable as its value."""
    if _VARIABLE.fullmatch(value):
        return f'"{value}"'
    try:
        words = shlex.split(value) if value[0] in "\"'" else []
    except ValueError:
        words = []
    return quote(words[0] if len(words) == 1 else value)


def _memory(role: Role) -> dict[str, str]:
    """Of a memory limit, 3 parts of 10 are for objects, as Ray takes of a host."""
    match = _MEMORY.fullmatch(role.limits.get("M", ""))
    if match is None:
        return {}
    limit = int(match[1]) << 10
    store = max(_LEAST_STORE, limit * 3 // 10)
    return {"memory": str(limit - store), "object-store-memory": str(store)} if limit > store else {}


def read_cluster(spec: Fields, meta: Fields, job: JobFile, name: str, namespace: str) -> None:
    """A RayCluster of v1: it runs until it is killed."""
    job.policy = Policy(success=HEAD, backoff=1_000_000)
    if spec.flag("suspend"):
        job.options["H"] = True
    nodes = _Nodes(spec, meta.part("annotations").text(_OWN_COMMAND) == "true", job, name, namespace)
    nodes.read()
    for role in job.roles:
        role.restart = "Never" if role.name == HEAD else "Always"


def read_job(spec: Fields, _: Fields, job: JobFile, name: str, namespace: str) -> None:
    """A RayJob of v1: the head starts, waits for the workers and submits the entrypoint, whose end is the job's."""
    for field, why in (
        ("clusterSelector", "a Ray cluster that runs already has no job of lava: leave it out, or use rayClusterSpec"),
        ("schedule", "lava repeats no jobs: cron does"),
    ):
        if field in spec:
            raise spec.fail(field, why)
    mode = spec.text("submissionMode", _MODES[0])
    if mode == "InteractiveMode":
        raise spec.fail("submissionMode", f"{mode}: lava submits the entrypoint itself; a RayCluster runs until you submit to it")
    if mode not in _MODES:
        raise spec.fail("submissionMode", f"{mode[:40]}: it is one of {', '.join(_MODES)}, which are one here")
    entry = spec.text("entrypoint")
    if not entry.strip():
        raise spec.fail("entrypoint", "there is none")
    job.policy = Policy(success=HEAD, backoff=max(0, spec.number("backoffLimit", 0)))
    job.policy.actions = [("TaskFailed", "RestartJob", -1)]
    pods.read_deadline(spec, job)
    for field in ("submitterPodTemplate", "submitterConfig"):
        if spec.any(field):
            job.ignore(f"{field} (the head submits)")
    spec.any("managedBy")
    if spec.flag("shutdownAfterJobFinishes"):
        spec.any("ttlSecondsAfterFinished")
    elif "shutdownAfterJobFinishes" in spec:
        job.ignore("shutdownAfterJobFinishes (the cluster is the job, and ends with it)")
    cluster = spec.part("rayClusterSpec")
    if cluster.flag("suspend"):
        job.options["H"] = True
    nodes = _Nodes(cluster, False, job, name, namespace)
    nodes.submit = _submission(spec, entry)
    nodes.read()
    for role in job.roles[1:]:
        # Ray goes on without a worker that ended, and lava starts it again
        role.restart, role.backoff = "Always", 1_000_000
    job.ignore(*(f"rayClusterSpec.{one}" for one in cluster.others()))


def _submission(spec: Fields, entry: str) -> str:
    """``ray job submit`` of the entrypoint, and what goes with it."""
    try:
        words = shlex.split(entry)
    except ValueError:
        raise spec.fail("entrypoint", "a quote in it is not closed") from None
    options = []
    for field, option in (
        ("jobId", "submission-id"),
        ("entrypointNumCpus", "entrypoint-num-cpus"),
        ("entrypointNumGpus", "entrypoint-num-gpus"),
        ("entrypointResources", "entrypoint-resources"),
    ):
        if value := spec.text(field):
            options.append(f"--{option}={quote(value)}")
    if metadata := spec.texts("metadata"):
        options.append(f"--metadata-json={quote(json.dumps(metadata))}")
    if text := spec.text("runtimeEnvYAML"):
        options.append(f"--runtime-env-json={quote(json.dumps(_yaml(spec, text)))}")
    return " ".join(['ray job submit --address="$RAY_ADDRESS"', *options, "--", shlex.join(words)])


def _yaml(spec: Fields, text: str) -> object:
    from cli.submit.yaml_text import read_yaml

    found = read_yaml(f"{spec.where}.runtimeEnvYAML", text)
    if len(found) != 1 or not isinstance(found[0], dict):
        raise spec.fail("runtimeEnvYAML", "this is no mapping of fields")
    return found[0]


class _Nodes:
    """The roles of a cluster: its head, and one for each group of workers."""

    def __init__(self, spec: Fields, own_command: bool, job: JobFile, name: str, namespace: str) -> None:
        self.spec, self.own_command, self.job, self.name, self.namespace = spec, own_command, job, name, namespace
        self.scales = spec.flag("enableInTreeAutoscaling")
        self.submit = ""
        """What the head runs once all nodes are there; "": it goes on."""
        self.groups: list[tuple[Role, Fields]] = []
        """Those of workers that have some."""
        self.hosts = Hosts(tasks={f"{name}-head-svc": (HEAD, 0)})
        self.hosts.find(namespace or "default")

    def read(self) -> None:
        """Fill the roles of the job."""
        spec, job = self.spec, self.job
        spec.any("rayVersion")
        if "headGroupSpec" not in spec:
            raise spec.fail("headGroupSpec", "there is none")
        for group in spec.items("workerGroupSpecs"):
            role = Role(group.text("groupName", "worker"))
            if role.name in (HEAD, *(one.name for one, _ in self.groups)):
                raise group.fail("groupName", f"{role.name[:64]} is there twice")
            if self._count(group, role):
                self.groups.append((role, group))
            else:
                group.skip()
        head = spec.part("headGroupSpec")
        self._role(Role(HEAD), head)
        job.ignore(*(f"headGroupSpec.{one}" for one in head.others()))
        for role, group in self.groups:
            self._role(role, group)
            job.ignore(*(f"workerGroupSpecs.{one}" for one in group.others()))

    def _count(self, group: Fields, role: Role) -> bool:
        """How many there are; whether there is any. Those that Ray would add later are there at the start, as far as they fit."""
        if group.flag("suspend"):
            return False
        hosts = group.number("numOfHosts", 1)
        least, most = group.number("minReplicas", 0), group.number("maxReplicas", 2**31 - 1)
        wanted = group.number("replicas", least)
        if hosts < 1 or least < 0 or wanted < 0:
            raise group.fail("replicas" if hosts > 0 else "numOfHosts", "less than none cannot be started")
        if least > most:
            raise group.fail("minReplicas", f"{least} is more than maxReplicas, {most}")
        role.count = max(least, min(wanted, most)) * hosts
        if self.scales and most < 2**31 - 1:
            role.count = most * hosts
            role.least = max(1, least * hosts)
            role.least = 0 if role.least == role.count else role.least
        return role.count > 0

    def _role(self, role: Role, group: Fields) -> None:
        """One role, with the command that starts its nodes."""
        params = group.texts("rayStartParams")
        leads = role.name == HEAD
        port = f"${{LAVA_PEER_{variable(HEAD)}_0##*:}}"
        pod = f"{plain(self.name)}-{role.name}" + ("" if leads else "-$LAVA_INDEX")
        one = Identity(role.name, hosts=self.hosts, run=lambda own, prepared: self._command(own, prepared, params))
        one.env = {
            "RAY_ADDRESS": f"$LAVA_PEER_{variable(HEAD)}_0",
            "RAY_IP": address(HEAD, 0),
            "FQ_RAY_IP": address(HEAD, 0),
            "RAY_PORT": port,
            "RAY_CLUSTER_NAME": plain(self.name),
            "RAY_NODE_TYPE_NAME": "headgroup" if leads else role.name,
        }
        one.fields = {
            **one.common(pod, self.namespace),
            "ray.io/cluster": plain(self.name),
            "ray.io/group": "headgroup" if leads else role.name,
            "ray.io/node-type": "head" if leads else "worker",
        }
        self.job.identities[role.name] = one
        pods.read_template(group.part("template"), role, self.job)
        role.after = [] if leads else [HEAD]
        self.job.roles.append(role)

    def _command(self, role: Role, prepared: str, params: Mapping[str, str]) -> str:
        """``ray start`` behind what the container's own command prepares."""
        leads = role.name == HEAD
        begin = f"{prepared} && " if prepared else ""
        if self.own_command and prepared:
            # a shell that reads the variable expands nothing in it
            return f'set -- {start(role, "" if leads else HEAD, params)}; export KUBERAY_GEN_RAY_START_CMD="$*"; exec {prepared}'
        if not (leads and self.submit):
            return f"{begin}exec {start(role, '' if leads else HEAD, params)}"
        counts = " + ".join(["1", *(f"LAVA_COUNT_{variable(one.name)}" for one, _ in self.groups)])
        ready = f'python -c {quote(_WAIT)} "$RAY_ADDRESS" "$(({counts}))"'
        return f"{begin}{start(role, '', params, block=False)} && {ready} && exec {self.submit}"
