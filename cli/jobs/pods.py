"""A pod template as the tasks of a role: command, arguments, environment, folder, CPUs, memory and GPUs of its container."""

from __future__ import annotations

import math
import re
import shlex

from cli.client.context import Fail
from cli.jobs.fields import Fields
from cli.jobs.identity import Hosts, Identity, literal, of_pod, pieces
from cli.jobs.model import JobFile, Role, minutes_of

_CPU = re.compile(r"(\d+(?:\.\d+)?)(m?)")
_MEMORY = re.compile(r"(\d+(?:\.\d+)?)(m|[kKMGTPE]i?)?")
_UNITS = {"": 1, "m": 1e-3, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_BINARY = {"K": 2**10, "k": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50, "E": 2**60}
_MOST_CPUS = 100_000
_GPU = "nvidia.com/gpu"
_SHARED_GPUS = ("volcano.sh/vgpu-number", "volcano.sh/gpu-number")
_SHARES = ("volcano.sh/vgpu-memory", "volcano.sh/gpu-memory", "nvidia.com/gpumem")
"""MB of each GPU: others may have the rest."""
_OTHER_GPUS = ("nvidia.com/", "amd.com/", "gpu.intel.com/")
_MAIN = ("tensorflow", "pytorch", "jax", "xgboost", "paddle", "mxnet", "mpi", "launcher", "worker", "node", "main")
_PULLS = {"Always": "always", "IfNotPresent": "missing", "Never": "never"}
_OF_THE_JOB = ("name", "namespace", "creationTimestamp")
"""Metadata that a pod has from its job."""


def deadline_of(spec: Fields) -> int:
    """activeDeadlineSeconds; 0: there are none."""
    seconds = spec.number("activeDeadlineSeconds", 0)
    if "activeDeadlineSeconds" in spec and seconds < 1:
        raise spec.fail("activeDeadlineSeconds", f"{seconds} seconds end the job before it runs")
    return seconds


def read_deadline(spec: Fields, job: JobFile) -> None:
    """activeDeadlineSeconds, the time of the whole job with all its restarts, and suspend: it is held until it is resumed."""
    if seconds := deadline_of(spec):
        job.options["W"] = minutes_of(seconds)  # by which others are planned around it
        job.policy.time_limit = seconds
    if spec.flag("suspend"):
        job.options["H"] = True


def read_template(template: Fields, role: Role, job: JobFile, instead: Fields | None = None) -> None:
    """Fill the role from a pod template. ``instead``: fields of a container in the place of the template's own."""
    meta = template.part("metadata")
    for name in _OF_THE_JOB:
        meta.any(name)
    _keep_near(meta.part("annotations"), job)
    spec = template.part("spec")
    for name in ("restartPolicy", "schedulerName"):
        spec.any(name)  # the first is read by whoever knows what it means there; the scheduler is lava's
    row = main_container(spec)
    if len(spec.rows("containers")) > 1:
        job.ignore("further containers")
    _container(_with_fields(row, instead) if instead else row, meta, role, job)
    _choose_nodes(spec.texts("nodeSelector"), role, job)
    job.ignore(*spec.others(), *(f"template.metadata.{name}" for name in meta.others()), *template.others())


def main_container(spec: Fields) -> Fields:
    """The container of a pod that is run. Raises Fail where there is none."""
    rows = [Fields(row, f"{spec.where}.containers[{at}]") for at, row in enumerate(spec.rows("containers"))]
    if not rows:
        raise spec.fail("containers", "there is none")
    named = {row.text("name"): row for row in rows}
    return next((named[name] for name in _MAIN if name in named), rows[0])


def refuse_images_own(spec: Fields, job: JobFile) -> None:
    """Raises Fail for a role whose program only its image names: lava does not know it."""
    for role in job.roles:
        bare = job.bare.get(role.name, "")
        if role.kind != "hold" and (not role.command or (bare.startswith("-") and role.command.endswith(bare))):
            what = "args are those of its image's own program" if bare else "its image's own program is meant"
            raise Fail(f"{spec.where}: role {role.name}: there is no command, and {what}, which lava does not know: give command")


def _keep_near(annotations: Fields, job: JobFile) -> None:
    """Kueue's podset topology: the label of a level of the network, whose name here is a type of compute units."""
    for word, required in (("required", True), ("preferred", False)):
        if label := annotations.text(f"kueue.x-k8s.io/podset-{word}-topology"):
            keep_in_units(label, required, job)
    if annotations.others():
        job.ignore("template.metadata.annotations")


def keep_in_units(kind: str, one: bool, job: JobFile) -> None:
    """All tasks in as few compute units of a type as can be, in ``one`` or not at all. The last level that is named holds."""
    job.options["R"] = [f"cu[type={_name_of(kind)}{':maxcus=1' if one else ''}]"]


def _name_of(label: str) -> str:
    """A label without its prefix, as the name of a resource or of a type of compute units."""
    return re.sub(r"[-.]", "_", label.rpartition("/")[2])


def _with_fields(row: Fields, instead: Fields) -> Fields:
    """A container with some fields from elsewhere, where they are given; its variables are kept but for those given there."""
    value = {name: row.any(name) for name in row.names()} | {name: instead.any(name) for name in instead.names()}
    if "command" in instead and "args" not in instead:
        value.pop("args", None)  # they are those of the command that does not run
    if "env" in instead:
        given = [one.get("name") for one in instead.rows("env") if isinstance(one, dict)]
        kept = [one for one in row.rows("env") if not (isinstance(one, dict) and one.get("name") in given)]
        value["env"] = [*kept, *instead.rows("env")]
    return Fields(value, instead.where)


def _choose_nodes(labels: dict[str, str], role: Role, job: JobFile) -> None:
    """nodeSelector: a label is a boolean resource where its value is true or false, else a string resource of the hosts."""
    tests = []
    for label, value in labels.items():
        name = _name_of(label)
        if label == "kubernetes.io/hostname":
            tests.append(f"hname=={value}")
        elif label == "kubernetes.io/os" and value == "linux":
            continue  # every host is
        elif not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) or not re.fullmatch(r"[\w.-]+", value, re.ASCII):
            job.ignore(f"nodeSelector.{label[:64]}")
        elif value in ("true", "false"):
            tests.append(name if value == "true" else f"!{name}")
        else:
            tests.append(f"{name}=={value}")
    if tests:
        role.resreq = f"select[{' && '.join(tests)}] {role.resreq}".rstrip()


def _container(row: Fields, meta: Fields, role: Role, job: JobFile) -> None:
    _resources(row.part("resources"), role, job)
    name, namespace = (str(job.options.get(option) or "") for option in "JP")
    identity = job.identities.get(role.name) or of_pod(name or "job", namespace, role.name)
    role.env, late = _env(row, meta, identity, job)
    program, args = row.words("command"), row.words("args")
    if args and not program:
        job.ignore("the image's own entry point")
    known = {*role.env, *late, *identity.env}
    role.command = " ".join(_word(word, known, identity.hosts) for word in (*program, *args))
    job.bare[role.name] = role.command
    if any("\0" in word for word in (*program, *args)):
        raise row.fail("command", "a word has no NUL characters")
    late = {name: f'"{value}"' for name, value in identity.env.items() if name not in role.env and name not in late} | late
    if identity.run is not None:
        role.command = f"{''.join(f'export {name}={value}; ' for name, value in late.items())}{identity.run(role, role.command)}"
    elif late and role.command:
        begin = "; ".join(f"export {name}={value}" for name, value in late.items())
        role.command = f"{begin}; exec {role.command}"
    role.cwd = row.text("workingDir")
    row.any("name")
    pull = row.text("imagePullPolicy")
    if pull not in ("", *_PULLS):
        raise row.fail("imagePullPolicy", f"{pull[:40]}: it is one of {', '.join(_PULLS)}")
    if image := row.text("image"):
        job.images[role.name] = (image, _PULLS.get(pull, ""))
    job.ignore(*row.others())


def _word(word: str, known: set[str], hosts: Hosts) -> str:
    """A word of an exec as a shell reads it; ``$(NAME)`` is the variable, as Kubernetes has it, where there is one."""
    parts: list[str] = []
    at = 0
    for start, end, shown in pieces(word, known, hosts):
        if start > at:
            parts.append(shlex.quote(word[at:start]))
        parts.append(shown)
        at = end
    if at < len(word):
        parts.append(shlex.quote(word[at:]))
    return "".join(parts) or "''"


def _env(row: Fields, meta: Fields, identity: Identity, job: JobFile) -> tuple[dict[str, str], dict[str, str]]:
    """Variables and their values, and those that are known when the task starts, as words of a shell."""
    found: dict[str, str] = {}
    late: dict[str, str] = {}
    for one in row.items("env"):
        name = one.text("name")
        if not name or "=" in name:
            raise one.fail("name", "no name of a variable")
        if "\0" in name or "\0" in one.text("value"):
            raise one.fail("value", "a variable has no NUL characters")
        if "valueFrom" in one:
            source = one.part("valueFrom")
            reference = source.part("fieldRef")
            path, _ = reference.text("fieldPath"), reference.any("apiVersion")
            value = identity.field_of(path)
            amount = _amount(row, source.part("resourceFieldRef"))
            said = _said_of(meta, path) if amount is None else amount
            if value is not None:
                late[_settable(one, name)] = f'"{value}"'
            elif said is not None:
                found[name] = said
            elif "secretKeyRef" in source:
                source.any("secretKeyRef")  # which key of which Secret: here it has the variable's name
                job.secrets += [name] if name not in job.secrets else []
            elif name not in job.secrets:
                source.skip()
                job.ignore(f"env {name[:64]} (valueFrom)")
            job.ignore(*(f"env {name[:64]}: {field}" for field in one.unread()))
            continue
        value = one.text("value")
        job.ignore(*(f"env {name[:64]}: {field}" for field in one.others()))
        if any(True for _ in identity.hosts.within(value)) or any(f"$({other})" in value for other in (*late, *identity.env)):
            late[_settable(one, name)] = _word(value, {*found, *late, *identity.env}, identity.hosts)
        else:
            found[name] = literal(value, found)
    return found, late


def _settable(one: Fields, name: str) -> str:
    """The name of a variable that a shell sets when the task starts."""
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        raise one.fail("name", f"{name[:64]}: what is known when the task starts has a name of letters, digits and _")
    return name


def _said_of(meta: Fields, path: str) -> str | None:
    """What the metadata of a pod template say of a label or annotation that a fieldRef names; None: nothing."""
    match = re.fullmatch(r"metadata\.(labels|annotations)\['([^']+)'\]", path)
    if match is None or match[2] not in meta.part(match[1]):
        return None
    return meta.part(match[1]).text(match[2])


def _amount(row: Fields, reference: Fields) -> str | None:
    """What a resourceFieldRef names of the container's CPUs and memory, in units of its divisor, rounded up; None: neither."""
    kind, _, name = reference.text("resource").partition(".")
    reference.any("containerName")
    if kind not in ("limits", "requests") or name not in ("cpu", "memory"):
        return None
    read = cpus if name == "cpu" else memory
    value, unit = read(row.part("resources").part(kind), name), read(reference, "divisor") or 1.0
    return str(math.ceil(value / unit - 1e-9)) if value else None


def _resources(resources: Fields, role: Role, job: JobFile) -> None:
    limits, requests = resources.part("limits"), resources.part("requests")
    cpu = cpus(requests, "cpu") or cpus(limits, "cpu")
    if cpu > _MOST_CPUS:
        raise resources.fail("requests.cpu", f"{cpu:.0f}: a task has at most {_MOST_CPUS} slots")
    role.slots = max(1, math.ceil(cpu - 1e-9))
    wanted, most = memory(requests), memory(limits)
    if wanted or most:
        role.resreq = f"rusage[mem={max(1, math.ceil((wanted or most) / 2**20))}MB]"
    if most:
        role.limits["M"] = f"{max(1, math.ceil(most / 1024))}K"
    _gpus(limits, requests, role, job)
    for name in (*limits.others(), *requests.others()):
        if name.startswith(_OTHER_GPUS):
            raise resources.fail(
                "limits", f"{name[:64]} cannot be had: GPUs are asked for as {_GPU}, MIG instances with -gpu mig="
            )
    for kind, amounts in (("limits", limits), ("requests", requests)):
        job.ignore(*(f"{kind}.{name[:64]}" for name in amounts.others()))
    job.ignore(*(f"resources.{name}" for name in resources.others()))


def _gpus(limits: Fields, requests: Fields, role: Role, job: JobFile) -> None:
    def most(names: tuple[str, ...]) -> int:
        for name, where in ((name, where) for name in names for where in (limits, requests)):
            if (number := where.number(name, 0)) < 0:
                raise where.fail(name, f"{number} is less than none")
        return max(where.number(name, 0) for name in names for where in (limits, requests))

    share = most(_SHARES)
    role.gpus = max(role.gpus, most((_GPU, *_SHARED_GPUS)), 1 if share else 0)
    if role.gpus:
        job.gpu_shares[role.name] = share


def cpus(fields: Fields, name: str) -> float:
    """A number of CPUs, as Kubernetes writes it; 0: there is none."""
    text = fields.text(name)
    if not text:
        return 0.0
    match = _CPU.fullmatch(text)
    if match is None or len(text) > 12:
        raise fields.fail(name, f"{text[:40]} is no number of CPUs")
    return float(match[1]) / (1000 if match[2] else 1)


def memory(fields: Fields, name: str = "memory") -> float:
    """Bytes; 0: there is no size."""
    text = fields.text(name)
    if not text:
        return 0.0
    match = _MEMORY.fullmatch(text)
    if match is None or len(text) > 20:
        raise fields.fail(name, f"{text[:40]} is no size")
    unit = match[2] or ""
    return float(match[1]) * (_BINARY[unit[0]] if unit.endswith("i") else _UNITS[unit])


_STEP_END = re.compile(r"[;|\n]+|(?<!>)&+(?!>)")
_WAITING = frozenset(("sleep", "tail", "tee", "wait", "true", ":", "exit", "fi", "done", ""))
_BEFORE = frozenset(("exec", "sudo", "nohup", "env", "dumb-init", "tini", "then", "else", "do"))
"""Words that may stand before the program of a step, as may options and variables."""


def hold(role: Role, job: JobFile, only_sshd: bool = False) -> None:
    """A worker that runs nothing (but an sshd, or sleep) only holds its slots: a launcher starts tasks there.

    One that goes on after it has started its sshd runs: Volcano's own MPI example does so in its master.
    """
    command = job.bare[role.name]
    try:
        words = shlex.split(command)
    except ValueError:
        raise Fail(f"role {role.name}: a quote in its command is not closed") from None
    script = words[2] if len(words) == 3 and re.fullmatch("-[a-z]*c", words[1]) else command
    programs = [_program(step) for step in _STEP_END.split(script)]
    serves = next((at for at, name in enumerate(programs) if "sshd" in name), None)
    if serves is not None:
        waits = _WAITING.issuperset(programs[serves + 1 :])
    else:
        first = words[0].rpartition("/")[2] if words else ""
        waits = not only_sshd and first in ("", "sleep", "tail")
    if waits:
        role.kind, role.command = "hold", ""


def _program(step: str) -> str:
    """The name of the program that a step of a script starts; "" where there is none."""
    words = (word for word in step.strip(" \t(){}").split() if word not in _BEFORE and word[0] != "-" and "=" not in word)
    return next(words, "").rpartition("/")[2]
