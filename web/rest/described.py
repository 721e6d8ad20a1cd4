"""What each field of what REST takes and answers is: the text below it in its record, else by its name, here.

Rule: no field is without a text (a test walks the OpenAPI document).
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

MODULES = ("proto.records", "proto.site_records", "proto.answers", "web.rest.answers", "web.rest.bodies", "web.problems")
COMMON = {
    "after": "cursor of the next request",
    "at": "when, in seconds since the epoch",
    "begin": "from when, in seconds since the epoch",
    "changes": "the changes, in their order",
    "cluster": "name of the cluster",
    "counts": "elements or jobs by state",
    "cpu": "CPU time in seconds",
    "cpu_time": "CPU time in seconds",
    "cwd": "folder",
    "description": "description",
    "end": "until when, in seconds since the epoch",
    "env": "variables of the environment beside HOME, USER, SHELL and PATH",
    "gpus": "GPUs",
    "gpus_used": "GPUs that have jobs",
    "host": "host",
    "hosts": "hosts",
    "id": "id: `123`, or `123[4]` of an element",
    "is_admin": "whether the caller is an administrator of the cluster",
    "job": "id of the job",
    "jobs": "jobs",
    "limit": "the most at a time; None or 0: there is no limit",
    "max_mem": "the most memory that it had at a time",
    "may_change": "whether the caller may change it",
    "mem": "memory",
    "name": "name",
    "next": "`cursor` of the next page, None on the last",
    "notices": "what bsub would print besides",
    "now": "when this was read, in seconds since the epoch",
    "ok": "whether it was done",
    "options": "options of the command by name, without their dash; true for a flag, a list where it is taken several times",
    "pend": "waiting: jobs and elements, of a queue or user slots",
    "priority": "priority; the highest is served first",
    "project": "project",
    "queue": "queue",
    "reason": "why, in the words of the caller",
    "reserved": "slots that are reserved for waiting jobs",
    "results": "one for each, in their order",
    "row": "what a list shows of it",
    "rows": "one for each, by name",
    "run": "running: jobs and elements, of a queue or user slots",
    "run_limit": "run limit in seconds; None: there is none",
    "shares": "shares of it, or of those below it",
    "slots": "slots",
    "state": "state, as LSF names it",
    "status": "status",
    "susp": "suspended: slots",
    "text": "in words",
    "used": "in use",
    "user": "user",
    "users": "users; empty: all",
    "version": "number of the newest event, or version of lava",
    "why": "why, in words; empty where there is nothing to say",
}


def describe(schemas: Mapping[str, object]) -> None:
    """Give each property of these schemas its text; that of a class is as Python 3.13 and later have it, without a margin."""
    texts = {name: found for module in MODULES for name, found in _texts(module)}
    for name, schema in schemas.items():
        if not isinstance(schema, dict):
            continue
        if about := schema.get("description"):
            schema["description"] = inspect.cleandoc(about)
        known = texts.get(name, {})
        for field, one in schema.get("properties", {}).items():
            if text := known.get(field) or COMMON.get(field):
                one["description"] = text


def _texts(module: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The classes of a module with the texts below their fields."""
    found = importlib.util.find_spec(module)
    if found is None or found.origin is None:
        return
    for one in ast.parse(Path(found.origin).read_text()).body:
        if isinstance(one, ast.ClassDef):
            yield one.name, dict(_below(one.body))


def _below(lines: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for field, text in pairwise(lines):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
            and isinstance(text.value.value, str)
        ):
            yield field.target.id, " ".join(text.value.value.split()).replace("``", "`")
