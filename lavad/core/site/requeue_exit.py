"""What an exit code means: REQUEUE_EXIT_VALUES (``1 2 EXCLUDE(3)``, ``all ~0``), MAX_JOB_REQUEUE, SUCCESS_EXIT_VALUES."""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from lavad.core.job.spec import Spec
from lavad.core.site.conf import Conf


class ExitRule(msgspec.Struct, frozen=True, gc=False):
    """What holds for a job: its own option before its application profile, that before its queue."""

    requeue: str = ""
    most: int | None = None
    success: str = ""


def exit_rule(conf: Conf, spec: Spec) -> ExitRule:
    """The rule of a job."""
    queue = next((queue for queue in conf.queues if queue.name == spec.queue), None)
    app = next((app for app in conf.apps if app.name == spec.app), None) if spec.app else None
    values = [(app.max_requeue, app.success_exit_values)] if app is not None else []
    values += [(queue.max_requeue, queue.success_exit_values)] if queue is not None else []
    return ExitRule(
        requeue=spec.requeue or (queue.requeue_exit_values if queue is not None else ""),
        most=next((most for most, _ in values if most is not None), None),
        success=next((success for _, success in values if success), ""),
    )


def is_success(text: str, exit_code: int) -> bool:
    """Whether SUCCESS_EXIT_VALUES has this code."""
    return exit_code > 0 and str(exit_code) in text.split()


@lru_cache(maxsize=256)
def _excluded(text: str) -> frozenset[int]:
    inside = " ".join(re.findall(r"EXCLUDE\(([^)]*)\)", text)).replace(",", " ").split()
    return frozenset(int(word) for word in inside if word.isdigit())


@lru_cache(maxsize=256)
def _codes(text: str) -> tuple[frozenset[int], bool, frozenset[int]]:
    plain = re.sub(r"EXCLUDE\(([^)]*)\)", r"\1", text)
    words = plain.replace(",", " ").split()
    codes = frozenset(int(word) for word in words if word.isdigit())
    out = frozenset(int(word[1:]) for word in words if word.startswith("~") and word[1:].isdigit())
    return codes, "all" in words, out


def wants_requeue(text: str, exit_code: int) -> bool:
    """Whether a job that ended with ``exit_code`` (negative: a signal) is to be requeued."""
    if not text:
        return False
    codes, every, out = _codes(text)
    code = exit_code if exit_code >= 0 else 128 - exit_code
    return (code in codes or (every and code != 0)) and code not in out


def is_exclusive(text: str, exit_code: int) -> bool:
    """Whether the code is one of EXCLUDE(…): the job does not go back to the host on which it ended with it."""
    return (exit_code if exit_code >= 0 else 128 - exit_code) in _excluded(text)
