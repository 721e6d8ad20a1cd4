"""Submissions with several roles: each role is checked and added to the spec and the text.

Rule: what is wrong is refused by the role's name; a job with roles is placed by its roles alone (no ``-n``, no ``-a``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from config.model.values import Limits
from lavad.core.decide.base.draft import JobDraft
from lavad.core.decide.submit.array_policy import read_enough
from lavad.core.decide.submit.options import read_options
from lavad.core.job.roles import (
    ACTIONS,
    CLEAN,
    EVENTS,
    FRAMEWORKS,
    LAUNCHER_START,
    RESTARTS,
    is_launched_last,
)
from lavad.core.job.spec import Action, JobText, Policy, Role, RoleText
from lavad.core.job.success import MAX_INDEX, Term, Word, alternatives
from lavad.core.lang.asks import OptionValue, Refused, Submit
from lavad.core.lang.bounds import MAX_COMMAND, MAX_INT32
from lavad.core.lang.resreq import text as resreq
from lavad.core.lang.role_asks import PolicyAsk, RoleAsk
from proto.roles import LAUNCHERS, MAX_TASKS, PLUGINS

MAX_ROLES = 64
KINDS = ("", *LAUNCHERS, "hold")
LIMIT_OPTIONS = frozenset("McDFSC")
"""Limits of one task. Those of time and of processes are the whole job's."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}")
_SECONDS = re.compile(r"[0-9]{1,8}\)")
_VARIABLE = re.compile(r"[^\s=\0]+")
_RIVALS = ("n", "nnodes", "hostfile")
_DECIDING = ("launcher", "chief", "master")


def read_roles(draft: JobDraft, ask: Submit) -> None:
    """Put the roles of a submission into the draft, whose options have been read; raises Refused."""
    if not ask.roles:
        return
    rival = next((name for name in _RIVALS if name in ask.options), "")
    if rival:
        raise Refused(f"-{rival} cannot be used with roles: each role says how many tasks it has")
    if draft.spec.interactive:
        raise Refused("an interactive job cannot have roles")
    if draft.spec.launch:
        raise Refused(f"-a {draft.spec.launch} cannot be used with roles: lava starts each task by its role")
    if len(ask.roles) > MAX_ROLES:
        raise Refused(f"{len(ask.roles)} roles are too many: at most {MAX_ROLES}")
    check_simple(draft)
    roles = tuple(_role(draft, one) for one in ask.roles)
    names = [role.name.lower() for role in roles]
    double = next((name for name in names if names.count(name) > 1), "")
    if double:
        raise Refused(f"role {double} is given twice")
    if sum(role.count for role in roles) > MAX_TASKS:
        raise Refused(f"the roles have more than {MAX_TASKS} tasks together")
    policy = _policy(ask.policy, roles)
    _check_order(roles, policy)
    least, most = (sum(getattr(role, what) * role.slots for role in roles) for what in ("least", "count"))
    if most > MAX_INT32:
        raise Refused("The number of processors must be a positive integer")
    draft.set_spec(roles=roles, policy=policy, slots=least, max_slots=most, launch="roles")
    draft.set_text(roles=tuple(_text(draft, one) for one in ask.roles))


def _number(role: str, what: str, value: int, least: int, most: int) -> int:
    if not least <= value <= most:
        raise Refused(f"{f'role {role}: ' if role else ''}{what} {value} is not between {least} and {most}")
    return value


def _word(role: str, what: str, value: str, known: Sequence[str]) -> str:
    if value not in known:
        raise Refused(f"{role}{what} {value[:64]}: it is one of {', '.join(word for word in known if word)}")
    return value


def _role(draft: JobDraft, one: RoleAsk) -> Role:
    name = one.name
    if not _NAME.fullmatch(name):
        raise Refused(f"role {name[:64]!r}: a role's name is letters, digits, - and _, and begins with a letter")
    if name.lower() in ("all", "any"):
        raise Refused(f"role {name}: this word has a meaning in success rules")
    kind = _word(f"role {name}: ", "kind", one.kind, KINDS)
    if kind != "hold" and not one.command.strip():
        raise Refused(f"role {name}: No command is specified")
    if len(one.command) > MAX_COMMAND or "\0" in one.command:
        raise Refused(f"role {name}: Bad command")
    count = _number(name, "count", one.count, 1, MAX_TASKS)
    return Role(
        name=name,
        count=count,
        least=_number(name, "least", one.least or count, 1, count),
        slots=_number(name, "slots", one.slots, 1, 100_000),
        resreq=_resreq(draft, name, one.resreq),
        gpus=_number(name, "gpus", one.gpus, 0, 1024),
        limits=_limits(draft, one),
        restart=_word(f"role {name}: ", "restart", one.restart, RESTARTS),
        spread=one.spread,
        kind=kind,
        actions=_actions(f"role {name}: ", one.actions),
        after=tuple(dict.fromkeys(one.after)),
        backoff=_number(name, "backoff", one.backoff, -1, 1_000_000),
        group=_number(name, "group", one.group, 0, MAX_TASKS),
        backoff_each=one.backoff_each,
    )


def _check_order(roles: tuple[Role, ...], policy: Policy) -> None:
    """Whether each role can start once those that it waits for have been started; raises Refused."""
    if not any(role.after for role in roles):
        return
    first = {role.name for role in roles if not is_launched_last(role, policy)}
    left = {role.name: set(role.after) | (set() if role.name in first else first) for role in roles}
    for role in roles:
        if unknown := next((name for name in role.after if name not in left), ""):
            raise Refused(f"role {role.name}: after {unknown}: there is no such role")
        if role.after and role.kind == "hold":
            raise Refused(f"role {role.name}: after: its tasks run nothing that could start later")
    while ready := [name for name, after in left.items() if not after & left.keys()]:
        for name in ready:
            del left[name]
    if left:
        raise Refused(f"after: roles {', '.join(left)} wait for each other")


def _resreq(draft: JobDraft, name: str, text: str) -> str:
    """As ``-R`` is read, once alone and once with the job's own."""
    if not text.strip():
        return ""
    name = f"{name}: resreq"
    alone = _alone(draft, name, {"R": [text]})
    try:
        req = resreq.parse(alone.spec.resreq)
        if req.cu is not None:
            raise Refused("Bad resource requirement: cu[] is about all tasks of a job: give it with -R")
        _only_simple(req)
        resreq.merge([draft.spec.resreq, alone.spec.resreq])
    except Refused as why:
        raise Refused(f"role {name}: {why.text}") from None
    except resreq.ResReqError as error:
        raise Refused(f"role {name}: {error}") from None
    return alone.spec.resreq


def check_simple(draft: JobDraft) -> None:
    """Whether the requirement of the whole job can be combined with roles; raises Refused."""
    if draft.spec.resreq:
        _only_simple(resreq.parse(draft.spec.resreq))


def _only_simple(req: resreq.ResReq) -> None:
    """Roles say by themselves what spans hosts; raises Refused for what a requirement may not say beside them."""
    timed = any(use.duration for rusage in req.rusage for use in rusage.uses)
    for what, asked in (
        ("n*{...}", bool(req.compound)),
        ("{...}||{...}", bool(req.alternatives)),
        ("span[]", req.span is not None),
        ("same[]", bool(req.same)),
        ("cu[balance]", req.cu is not None and req.cu.balance),
        ("affinity[]", req.affinity is not None),
        ("rusage with ||", len(req.rusage) > 1),
        ("rusage for a time", timed),
    ):
        if asked:
            raise Refused(f"Bad resource requirement: {what} cannot be used with roles")


def _limits(draft: JobDraft, one: RoleAsk) -> Limits:
    if unknown := sorted(set(one.limits) - LIMIT_OPTIONS):
        raise Refused(f"role {one.name}: -{unknown[0][:16]} is no limit of a role: it has M, c, D, F, S and C")
    return _alone(draft, one.name, dict(one.limits)).spec.limits


def _alone(draft: JobDraft, role: str, options: dict[str, OptionValue]) -> JobDraft:
    """A draft with the options of one role alone; raises Refused with the role's name."""
    alone = JobDraft(
        spec=replace(draft.spec, resreq="", limits=Limits(), launch=""),
        text=JobText(command=""),
        conf=draft.conf,
        local=draft.local,
        known_hosts=draft.known_hosts,
        known_resources=draft.known_resources,
    )
    try:
        read_options(alone, options)
    except Refused as why:
        raise Refused(f"role {role}: {why.text}") from None
    return alone


def _text(draft: JobDraft, one: RoleAsk) -> RoleText:
    software: tuple[tuple[str, ...], ...] = ()
    if one.software:
        alone = _alone(draft, one.name, {"a": [one.software]})
        if alone.spec.launch:
            raise Refused(f"role {one.name}: {alone.spec.launch} is no software of a role")
        software = alone.text.software
    return RoleText(command=one.command, env=_env(one), cwd=_cwd(draft, one), software=software, scratch=one.scratch)


def _env(one: RoleAsk) -> dict[str, str]:
    for name, value in one.env.items():
        if not _VARIABLE.fullmatch(name) or "\0" in value:
            raise Refused(f"role {one.name}: {name[:64]!r} is no name of a variable")
    return one.env


def _cwd(draft: JobDraft, one: RoleAsk) -> str:
    if not one.cwd:
        return ""
    if "\0" in one.cwd or len(one.cwd) > 4095:
        raise Refused(f"role {one.name}: Bad working folder")
    return one.cwd if one.cwd.startswith("/") else f"{draft.text.cwd.rstrip('/')}/{one.cwd}"


def _actions(role: str, asked: list[tuple[str, str, int]]) -> tuple[Action, ...]:
    found = []
    for event, action, code in asked:
        _word(role, "event", event, EVENTS)
        action, delay = _timed(role, action)
        if not -1 <= code <= 255:
            raise Refused(f"{role}exit code {code} is not between 0 and 255")
        found.append(Action(event=event, action=action, code=code, delay=delay))
    return tuple(found)


def _timed(role: str, text: str) -> tuple[str, float]:
    """(action, seconds until it is done) of ``RestartJob`` or ``RestartJob(30)``."""
    action, bracket, delay = text.partition("(")
    _word(role, "action", action, ACTIONS)
    if not bracket:
        return action, 0.0
    if action == "Ignore" or not _SECONDS.fullmatch(delay):
        raise Refused(f"{role}action {text[:64]}: it must be a number of seconds that is in parentheses, and Ignore has none")
    return action, float(delay[:-1])


def _policy(ask: PolicyAsk, roles: tuple[Role, ...]) -> Policy:
    if not 0 <= ask.backoff <= 1_000_000:
        raise Refused(f"backoff {ask.backoff} is not between 0 and 1000000")
    if not 0 <= ask.nproc <= 100_000:
        raise Refused(f"nproc {ask.nproc} is not between 0 and 100000")
    return Policy(
        framework=_framework(ask.framework, {role.name for role in roles}),
        success=_success(ask.success, roles),
        clean=_word("", "clean", ask.clean, CLEAN),
        launcher_start=_word("", "launcher_start", ask.launcher_start, LAUNCHER_START),
        backoff=ask.backoff,
        nproc=ask.nproc,
        actions=_actions("", ask.actions),
        array_backoff=ask.array_backoff,
        array_failures=_number("", "array_failures", ask.array_failures, -1, MAX_INT32),
        time_limit=_number("", "time_limit", ask.time_limit, 0, MAX_INT32),
        array_success=read_enough(ask.array_success),
    )


def _framework(text: str, roles: set[str]) -> str:
    """A framework; of Volcano also with a plugin in parentheses, and with roles that are not named as the plugin calls them:
    ``volcano(pytorch,master=head)``.
    """
    kind, _, rest = text.partition("(")
    if kind != "volcano" or not rest.endswith(")"):
        return _word("", "framework", text, FRAMEWORKS)
    plugin, *named = rest[:-1].split(",")
    known = PLUGINS[_word("framework volcano: ", "plugin", plugin, tuple(PLUGINS))]
    words: dict[str, str] = {}
    for word in named:
        name, _, role = word.partition("=")
        _word(f"framework volcano: {plugin}: ", "role", name, known)
        if role not in roles or name in words:
            raise Refused(f"framework volcano: {plugin}: {word[:64]}: there is no such role, or it is given twice")
        words[name] = role
    return text


def _success(rule: str, roles: tuple[Role, ...]) -> str:
    """The rule in full; without one, that of the frameworks: launcher, chief or master if there is one, else all."""
    if not rule:
        leads = {"launcher" if role.kind in LAUNCHERS else role.name.lower(): role.name for role in roles}
        rule = next((leads[word] for word in _DECIDING if word in leads), "all")
    if all(role.kind == "hold" for role in roles):
        raise Refused("no role has a command: nothing would ever end")
    try:
        terms = [term for one in alternatives(rule) for term in one]
    except ValueError:
        raise _no_rule(rule) from None
    for term in terms:
        for word in term.words:
            _decides(rule, word, roles)
        most = sum(_most(role, term) for role in roles if role.kind != "hold")
        if term.number and not 1 <= term.number <= most:
            raise Refused(f"success {rule[:64]}: {max(0, term.number)} is not between 1 and {most}, the tasks that could succeed")
    return rule


def _no_rule(rule: str) -> Refused:
    words = "it is a role, role[index], several with commas, all, any, any(NUMBER,ROLES), least(…)"
    return Refused(f"success {rule[:64]}: {words}, with & and | between several")


def _most(role: Role, term: Term) -> int:
    """How many tasks of a role a term of a success rule names, of those that always start."""
    if not term.words:
        return role.least
    return sum(max(0, min(word.last + 1, role.least) - word.first) for word in term.words if word.role == role.name)


def _decides(rule: str, word: Word, roles: tuple[Role, ...]) -> None:
    """Whether a word of a success rule names tasks that can end; raises Refused."""
    role = next((role for role in roles if role.name == word.role), None)
    if role is None:
        raise _no_rule(rule)
    if role.kind == "hold":
        raise Refused(f"success {rule[:64]}: the tasks of role {role.name} run nothing that could succeed")
    if word.last < word.first or (word.last != MAX_INDEX and word.last >= role.least):
        raise Refused(f"success {rule[:64]}: role {role.name} has {role.least} tasks")
