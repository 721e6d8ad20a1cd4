"""The roles of a submission, and how they depend on each other, as a job file says it: part of ``asks.Submit``."""

from __future__ import annotations

import msgspec

from lavad.core.lang import bounds as b


class RoleAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One role of a submission, as a job file says it; numbers and words are checked by ``core.decide.submit.roles``."""

    name: b.Word
    command: b.Command = ""
    count: b.Signed = 1
    least: b.Signed = 0
    """0: all of ``count``."""
    slots: b.Signed = 1
    gpus: b.Signed = 0
    resreq: b.Line = ""
    limits: b.Limits = {}
    """bsub's options of limits (``M c D F S C``) with their raw text, of one task."""
    env: b.Environment = {}
    cwd: b.Path = ""
    software: b.Line = ""
    """As of ``-a``: modules(…), conda(…), venv(…), container(…)."""
    scratch: bool = False
    restart: b.Word = "Never"
    spread: bool = False
    kind: b.Word = ""
    actions: b.Actions = []
    """(event, action, exit code or -1)."""
    after: b.Words = []
    backoff: b.Signed = -1
    group: b.Signed = 0
    backoff_each: bool = False


class PolicyAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the roles depend on each other."""

    framework: b.Word = ""
    success: b.Line = ""
    clean: b.Word = "running"
    launcher_start: b.Word = "when_ready"
    backoff: b.Signed = 6
    nproc: b.Signed = 0
    actions: b.Actions = []
    array_backoff: bool = False
    array_failures: b.Signed = -1
    time_limit: b.Signed = 0
    array_success: b.Lines = []
    """``COUNT``, ``[INDICES]`` or ``COUNT[INDICES]`` each."""
