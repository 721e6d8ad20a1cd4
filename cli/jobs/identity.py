"""What a pod knows of itself and of others, as a task here finds it when it starts: words of the shell that starts it.

Rule: what is known only then (its index, addresses) is put in by the shell, from the LAVA_ variables of the task.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.jobs.model import Role

_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")
_NOTHING = re.compile(r"(?!)")


def variable(role: str) -> str:
    """A role's name in the name of a variable."""
    return role.upper().replace("-", "_")


def plain(text: str) -> str:
    """A text as it stands, in a word in double quotes."""
    return re.sub(r'(["$`\\])', r"\\\1", text)


def address(role: str, index: int) -> str:
    """The address of the host of a task, in a word in double quotes."""
    return f"${{LAVA_PEER_{variable(role)}_{index}%:*}}"


def own_address(role: str) -> str:
    """That of the task's own host."""
    return f'$(eval "echo \\${{LAVA_PEER_{variable(role)}_$LAVA_INDEX%:*}}")'


def pod_index(jobs: int, size: int) -> tuple[str, str]:
    """Which of ``jobs`` jobs a task is in, and which of its ``size`` pods it is."""
    index = "$LAVA_INDEX" if size == 1 else "0" if jobs == 1 else f"$((LAVA_INDEX / {size}))"
    return index, "0" if size == 1 else "$LAVA_INDEX" if jobs == 1 else f"$((LAVA_INDEX % {size}))"


@dataclass
class Hosts:
    """Host names of pods in texts. ``pattern`` finds them; ``tasks``: name of a pod to the role and index of its task."""

    pattern: re.Pattern[str] = _NOTHING
    tasks: dict[str, tuple[str, int]] = field(default_factory=dict)

    def within(self, text: str) -> Iterator[tuple[int, int, str]]:
        """(start, end, address in a word in double quotes) of each that is a task's."""
        for match in self.pattern.finditer(text):
            if match[1] in self.tasks:
                yield match.start(), match.end(), address(*self.tasks[match[1]])

    def find(self, *domains: str, alone: bool = True) -> None:
        """Find the names of ``tasks``, ``alone`` or with one of these domains behind them, and the namespace behind that.

        What stands behind one slash is the name of a file.
        """
        names, behind = (
            "|".join(map(re.escape, sorted(some, key=len, reverse=True))) for some in (self.tasks, filter(None, domains))
        )
        rest = rf"(?:\.(?:{behind})(?:\.[a-z0-9-]+)?(?:\.svc(?:\.cluster\.local)?)?)?" if behind else ""
        if not alone:
            rest = rest.removesuffix("?")
        self.pattern = re.compile(rf"(?<![\w.-])(?<!(?<!/)/)({names}){rest}(?![\w-]|\.\w)")


@dataclass
class Identity:
    """What the pods of one role find. Values are texts in double quotes of a shell."""

    role: str = ""
    env: dict[str, str] = field(default_factory=dict)
    """Variables that its kind of manifest gives to all."""
    fields: dict[str, str] = field(default_factory=dict)
    """What ``valueFrom.fieldRef`` may name, ``labels`` and ``annotations`` by their keys alone."""
    hosts: Hosts = field(default_factory=Hosts)
    run: Callable[[Role, str], str] | None = None
    """What a task runs, of the command of its container (which may be none); None: that command."""

    def field_of(self, path: str) -> str | None:
        """What a field of the pod says; None: it is not known."""
        match = re.fullmatch(r"metadata\.(?:labels|annotations)\['([^']+)'\]", path)
        return self.fields.get(match[1] if match else path)

    def common(self, name: str, namespace: str) -> dict[str, str]:
        """The fields that any pod has."""
        here = own_address(self.role)
        return {
            "metadata.name": name,
            "metadata.namespace": plain(namespace or "default"),
            "spec.nodeName": "$LAVA_HOST",
            "status.hostIP": here,
            "status.podIP": here,
            "status.podIPs": here,
        }


def of_pod(name: str, namespace: str, role: str, pod: str = "") -> Identity:
    """What any pod of a job knows of itself, with the labels that its operators give it.

    ``name``, ``namespace``: the job's own, as they stand. ``pod``: its name, in double quotes; by itself that of the role and the
    index, as most operators have it.
    """
    one = Identity(role)
    one.fields = one.common(pod or f"{plain(name)}-{role}-$LAVA_INDEX", namespace) | {
        "training.kubeflow.org/job-name": plain(name),
        "training.kubeflow.org/replica-type": role,
        "training.kubeflow.org/replica-index": "$LAVA_INDEX",
        "volcano.sh/job-name": plain(name),
        "volcano.sh/task-spec": role,
        "volcano.sh/task-index": "$LAVA_INDEX",
    }
    return one


def pieces(text: str, known: set[str], hosts: Hosts) -> Iterator[tuple[int, int, str]]:
    """(start, end, what a shell reads in its place) of what stands for something else: ``$(NAME)``, ``$$``, names of hosts."""
    found = [(start, end, f'"{word}"') for start, end, word in hosts.within(text)]
    for match in _REFERENCE.finditer(text):
        if match[1] is None:
            found.append((match.start(), match.end(), "'$'"))
        elif match[1] in known or is_ours(match[1]):
            found.append((match.start(), match.end(), f'"${{{match[1]}}}"'))
    return iter(sorted(found))


_OURS = (
    *("LAVA_", "PET_", "VC_", "VK_", "LSB_", "MASTER_", "RANK", "WORLD_SIZE", "LOCAL_RANK", "TF_CONFIG", "PADDLE_", "DMLC_"),
    *("MX_CONFIG", "WORKER_ADDRS", "WORKER_PORT", "COORDINATOR_", "NUM_PROCESSES", "PROCESS_ID", "JAX_", "MPI_HOST"),
    "JOB_COMPLETION_INDEX",
)


def is_ours(name: str) -> bool:
    """Whether lava sets a variable of this name in some task."""
    return name.startswith(_OURS)


def literal(text: str, values: dict[str, str]) -> str:
    """A text with ``$(NAME)`` of what is known now in it, and ``$$`` as it is meant."""
    return _REFERENCE.sub(lambda match: "$" if match[1] is None else values.get(match[1], match[0]), text)
