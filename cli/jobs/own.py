"""lava's own job file: bsub's options by name, and roles. The layout is in docs/roles.md; ``show`` writes it back."""

from __future__ import annotations

from cli.client.context import Fail
from cli.client.options import HELP, Table
from cli.jobs.fields import Fields
from cli.jobs.model import Action, JobFile, Policy, Role
from cli.submit.submit_options import bsub_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.client.frames import Json

NAMES = {"name": "J", "queue": "q", "project": "P", "output": "o", "error": "e", "cwd": "cwd", "dependency": "w", "app": "app"}
"""Fields that are options of bsub with a name that can be read."""
_HERE = ("pack", "json", "yaml", "jsdl", "jsdl_strict", "K", "Zs", "Z", "I", "Ip", "Is", "IX", "XF", "env", "n")
_CLIENT = frozenset([*HELP, *_HERE])


def read_own(value: Json, name: str) -> JobFile:
    """A job file of lava's own layout."""
    fields = Fields(value, name)
    job = JobFile()
    table = bsub_table("lava run")
    for field, option in NAMES.items():
        if field in fields:
            table.keep(job.options, option, fields.text(field))
        fields.any(field)
    _read_options(fields.part("options"), job, table, "roles" in fields)
    job.command = fields.command("command")
    job.env = fields.texts("env")
    roles = fields.any("roles")
    if roles is not None:
        job.policy = _policy(fields)
        job.roles = [_role(name, one) for name, one in _named(fields, roles)]
        if job.command:
            raise fields.fail("command", "each role has a command of its own")
    elif not job.command.strip():
        raise Fail(f"{name}: neither a command nor roles")
    fields.refuse_others()
    return job


def _named(fields: Fields, roles: Json) -> list[tuple[str, Fields]]:
    """Roles as a mapping by name, or as a list with names."""
    if isinstance(roles, list):
        rows = [Fields(one, f"{fields.where}.roles[{at}]") for at, one in enumerate(roles)]
        return [(one.text("name"), one) for one in rows]
    named = fields.part("roles")
    found = [(name, named.part(name)) for name in named.names()]
    if not found:
        raise fields.fail("roles", "there is none")
    return found


def _read_options(options: Fields, job: JobFile, table: Table, roles: bool) -> None:
    for name in options.names():
        option = name.lstrip("-")
        if option not in table.valued or option in (_CLIENT - {"n"}) or (roles and option == "n"):
            raise options.fail(name[:64], "no option of bsub that a job file may have")
        value = options.any(name)
        if value is None or value is False:
            continue
        if not table.valued[option]:
            if options.flag(name):
                table.keep(job.options, option, True)
            continue
        for word in options.words(name) if isinstance(value, list) else [options.text(name)]:
            table.keep(job.options, option, word)


def _policy(fields: Fields) -> Policy:
    plain = Policy()
    return Policy(
        framework=fields.text("framework"),
        success=",".join(_list(fields, "success")),
        clean=fields.text("clean", plain.clean),
        launcher_start=fields.text("launcher_start", plain.launcher_start),
        backoff=fields.number("backoff", plain.backoff),
        nproc=fields.number("nproc", 0),
        actions=_actions(fields.part("on")),
        array_backoff=fields.flag("array_backoff"),
        array_failures=fields.number("array_failures", plain.array_failures),
        time_limit=fields.number("time_limit", 0),
        array_success=_list(fields, "array_success"),
    )


def _role(name: str, fields: Fields) -> Role:
    least, most = _range(fields)
    role = Role(
        name=name,
        command=fields.command("command"),
        count=most,
        least=least,
        slots=fields.number("slots", 1),
        gpus=fields.number("gpus", 0),
        resreq=fields.text("resreq"),
        limits=fields.texts("limits"),
        env=fields.texts("env"),
        cwd=fields.text("cwd"),
        software=fields.text("software"),
        scratch=fields.flag("scratch"),
        restart=fields.text("restart", "Never"),
        spread=fields.flag("spread"),
        kind=fields.text("kind"),
        actions=_actions(fields.part("on")),
        after=_list(fields, "after"),
        backoff=fields.number("backoff", -1),
        group=fields.number("group", 0),
        backoff_each=fields.flag("backoff_each"),
    )
    fields.refuse_others()
    return role


def _list(fields: Fields, name: str) -> list[str]:
    """One word, or a list of them."""
    value = fields.any(name)
    return fields.words(name) if isinstance(value, list) else [fields.text(name)] if value is not None else []


def _range(fields: Fields) -> tuple[int, int]:
    """``4``, or ``2,4`` for at least two: (0 or the least, the most)."""
    text = fields.text("count", "1")
    least, comma, most = text.partition(",")
    try:
        return (int(least), int(most)) if comma else (0, int(text))
    except ValueError:
        raise fields.fail("count", f"{text[:40]} is no number of tasks") from None


def _actions(fields: Fields) -> list[Action]:
    """``TaskFailed: RestartJob``, ``TaskFailed(3): CompleteJob``, ``TaskFailed: [RestartTask, RestartJob]``."""
    found: list[Action] = []
    for name in fields.names():
        event, bracket, code = name.partition("(")
        if bracket and not (code.endswith(")") and code[:-1].isdecimal() and len(code) < 5 and int(code[:-1]) < 256):
            raise fields.fail(name[:64], "an event, perhaps with an exit code from 0 to 255 in parentheses")
        found += [(event, action, int(code[:-1]) if bracket else -1) for action in _list(fields, name)]
    return found


# -- and back --------------------------------------------------------------------------------------------------------------


def show(job: JobFile) -> dict[str, object]:
    """The same as a value of this layout."""
    found: dict[str, object] = {}
    options = dict(job.options)
    for field, option in NAMES.items():
        if option in options:
            found[field] = options.pop(option)
    if options:
        found["options"] = options
    if job.env:
        found["env"] = job.env
    if not job.roles:
        return found | {"command": job.command}
    policy = job.policy.frame()
    if policy.pop("actions", None):
        policy["on"] = _shown_actions(job.policy.actions)
    return found | policy | {"roles": {role.name: _shown_role(role) for role in job.roles}}


def _shown_role(role: Role) -> dict[str, object]:
    found = role.frame()
    del found["name"]
    if "least" in found:
        found["count"] = f"{found.pop('least')},{role.count}"
    if found.pop("actions", None):
        found["on"] = _shown_actions(role.actions)
    return found


def _shown_actions(actions: list[Action]) -> dict[str, str | list[str]]:
    found: dict[str, list[str]] = {}
    for event, action, code in actions:
        found.setdefault(event if code < 0 else f"{event}({code})", []).append(action)
    return {name: one if len(one) > 1 else one[0] for name, one in found.items()}
