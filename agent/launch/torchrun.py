"""``-a torchrun``: one torchrun a host, with the rendezvous of the job; made of the command as the user gave it.

Rule: pure. The options go in as text before the user's own, so that these win; the same stands in PET_ variables, for a
torchrun that a script calls.
"""

from __future__ import annotations

import re

from agent.launch.frameworks import Launch, address_of, mark
from proto import agent_pb2 as pb

RESTARTS = 1000
"""A host that leaves counts as a failure of the others' workers, and must not use up what is left for real ones."""
ELASTIC = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
"""Else hosts that join later wait in vain for the address of the first: torch tells it in the first round only."""
LAST_CALL = 15
"""Seconds that a round waits for more hosts than the least."""
_PYTHON = r"(?:\S*/)?python[0-9.]*"
_FLAGS = r"(?:\s+-(?:[BEIOPsSuvq]+|[XW]\s*\S+))*"
_MODULE = re.compile(rf"({_PYTHON}{_FLAGS}\s+-m\s+torch\.distributed\.(?:run|launch))(?=\s|$)(.*)", re.DOTALL)
_DIRECT = re.compile(r"((?:\S*/)?torchrun)(?=\s|$)(.*)", re.DOTALL)
_INTERPRETED = re.compile(rf"({_PYTHON}{_FLAGS})\s+((?:-m\s+)?[^\s-].*)", re.DOTALL)
_SCRIPT = re.compile(r"\S+\.py(?:\s.*)?", re.DOTALL)
_SHELL = re.compile(r"[;|`\n]|(?<!>)&|^\s*[({]")
"""More than one plain command: the shell's text stays as it is."""
_VALUE = r"""(?:"(?:\\.|\$(?!\()|[^"\\$])*"|'[^']*'|\\.|\$(?!\()|[^\s"'\\$])*"""
"""A word of the shell: where quotes have a space it goes on. One with the output of a command, ``$(...)``, is none."""
_SETTINGS = re.compile(rf"(?:(?:\w+={_VALUE}|(?:env|exec)(?=\s+[^\s-]))\s+)*", re.DOTALL)
_SETTING = re.compile(r"\w+=")


def options(launch: Launch, start: pb.Start, job: str, attempt: int) -> dict[str, str]:
    """The options of this host's torchrun, by name."""
    found = {
        "nnodes": str(len(start.hosts)),
        "nproc-per-node": launch.value("nproc") or str(start.hosts[start.place].slots),
    }
    if restarts := launch.value("restarts"):
        found["max-restarts"] = restarts
    address = address_of(start.hosts, 0)
    if "static" in launch.words:
        return found | {
            "node-rank": str(start.place),
            "rdzv-backend": "static",
            "rdzv-id": f"lava-{job}-{attempt}",
            "master-addr": address,
            "master-port": mark(0, 0),
        }
    literal = f"[{address}]" if ":" in address else address
    return found | {
        "rdzv-backend": "c10d",
        "rdzv-id": f"lava-{job}-{attempt}",
        "rdzv-endpoint": f"{literal}:{mark(0, 0)}",
        "rdzv-conf": f"is_host={1 if start.place == 0 else 0}",
        "local-addr": address_of(start.hosts, start.place),
    }


def elastic(found: dict[str, str], start: pb.Start, least: int, most: int) -> dict[str, str]:
    """What changes where hosts may join and leave: from how many to how many, by the slots that a host has."""
    widest = max(host.slots for host in start.hosts)
    narrowest = min(host.slots for host in start.hosts)
    fewest = max(1, -(-least // widest))
    return {
        "nnodes": f"{fewest}:{max(len(start.hosts), fewest, -(-most // narrowest))}",
        "max-restarts": found.get("max-restarts", str(RESTARTS)),
        "rdzv-conf": found["rdzv-conf"] + f",last_call_timeout={LAST_CALL}",
    }


def variables(found: dict[str, str]) -> dict[str, str]:
    """The same options as torchrun reads them from the environment."""
    return {"PET_" + name.upper().replace("-", "_"): value for name, value in found.items()}


def command(text: str, found: dict[str, str]) -> str:
    """The command with torchrun and its options in it; a shell's program text is left to its PET_ variables."""
    text = text.strip()
    words = " ".join(f"--{name}={value}" for name, value in found.items())
    if _SHELL.search(text):
        return text
    settings = _SETTINGS.match(text)
    before, behind = (settings[0], text[settings.end() :]) if settings else ("", text)
    return text if _SETTING.match(behind) else before + _with_options(behind, words)


def _with_options(text: str, words: str) -> str:
    if match := _DIRECT.fullmatch(text) or _MODULE.fullmatch(text):
        return f"{match[1]} {words}{match[2]}"
    if match := _INTERPRETED.fullmatch(text):
        return f"{match[1]} -m torch.distributed.run {words} {match[2]}"
    if _SCRIPT.fullmatch(text):
        return f"torchrun {words} {text}"
    return f"torchrun {words} --no-python {text}"
