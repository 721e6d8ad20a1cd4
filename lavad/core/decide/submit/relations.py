"""What a job belongs to and depends on: its name, queue, project, groups, application profile, reservation and other jobs."""

from __future__ import annotations

from lavad.core.decide.base.draft import JobDraft, text_of
from lavad.core.decide.submit.readers import printable_text, reads
from lavad.core.job.groups import read_path
from lavad.core.lang import dependency
from lavad.core.lang.asks import OptionValue, Refused
from lavad.core.lang.bounds import MAX_INT32
from lavad.core.site.service_classes import ServiceClasses
from proto.numbers import find_number
from proto.options import BY_NAME

MAX_OWNER = 511
"""Bytes of a project's or user group's name; LSF 10.1 has the same limit for projects."""


@reads("J")
def read_name(draft: JobDraft, option: str, value: OptionValue) -> None:
    """A name, perhaps with indices; ``submit`` takes it apart. A blank one is none."""
    name = text_of(option, value)
    draft.name = name if name.strip() else ""


@reads("q")
def read_queues(draft: JobDraft, option: str, value: OptionValue) -> None:
    """One queue or several, of which the first that takes the job counts."""
    draft.queues = tuple(text_of(option, value).split())


@reads("P", "G")
def read_owner(draft: JobDraft, option: str, value: OptionValue) -> None:
    """Project or user group (or ``~group …``); a blank project is the default one, so that listings have a word in each column.
    They are keys of the store's indexes, and a database refuses keys of a few thousand bytes.
    """
    name = printable_text(option, value)
    if option == "P" and not name.strip():
        name = draft.conf.params.default_project
    outs = [word.startswith("~") for word in name.split()] if option == "G" else []
    if any(outs) and not all(outs):
        raise Refused(f"{name[:40]}: a user group and groups to leave out (~) cannot be given together")
    if any(outs):
        name = " ".join(name.split())
    if len(name.encode("utf-8", "surrogateescape")) > MAX_OWNER:
        kind = "Project" if option == "P" else "User group"
        raise Refused(f"{name[:40]}...: {kind} name is too long (at most {MAX_OWNER} bytes)")
    if option == "G" and name and not any(outs):
        _check_member(draft, name)
    draft.set_spec(**{BY_NAME[option].fields: name})


def _check_member(draft: JobDraft, group: str) -> None:
    """Raises Refused, with LSF's words, for a user group that there is not or that the job's user is not in.

    A cluster without any, as of lava up, says that the name means nothing there: scripts of a site that has them run as they are.
    """
    groups = draft.conf.groups_of_users
    if not groups.members:
        draft.notices = [*draft.notices, f"-G {group}: no user groups are configured (lsb.users); it is kept as a name alone"]
    elif group not in groups.members:
        raise Refused(f"{group}: Bad user group name")
    elif draft.spec.user not in groups.users(group):
        raise Refused(f"{group}: User not in the specified user group")


@reads("sp")
def read_priority(draft: JobDraft, option: str, value: OptionValue) -> None:
    """1 to MAX_USER_PRIORITY."""
    most = draft.conf.params.max_user_priority
    number = find_number(text_of(option, value), least=1, most=most or MAX_INT32)
    if number is None:
        raise Refused("Bad user priority")
    if most is None:
        raise Refused("Bad user priority: MAX_USER_PRIORITY is not set in lsb.params")
    draft.set_spec(priority=number)


@reads("g")
def read_group(draft: JobDraft, option: str, value: OptionValue) -> None:
    """The path of a job group."""
    path = read_path(text_of(option, value))
    if not path:
        raise Refused("Bad/empty job group name")
    draft.set_spec(group=path)


@reads("app")
def read_application(draft: JobDraft, option: str, value: OptionValue) -> None:
    """An application profile that there is."""
    name = text_of(option, value)
    if name not in draft.conf.app_conf:
        raise Refused(f"{name}: No such application profile")
    draft.set_spec(app=name)


@reads("sla")
def read_service_class(draft: JobDraft, option: str, value: OptionValue) -> None:
    """A service class that there is; whether it lets the job in is checked when the whole submission is read."""
    name = text_of(option, value).strip()
    if all(one.name != name for one in draft.conf.service_classes):
        raise Refused(f"{name}: No such service class")
    draft.set_spec(service_class=name)


def check_service_class(draft: JobDraft) -> None:
    """The service class that the job names lets it in; raises Refused."""
    spec = draft.spec
    if spec.service_class and ServiceClasses(draft.conf).of(spec) != spec.service_class:
        raise Refused(f"{spec.service_class}: The job has no access to the service class")


@reads("U")
def read_reservation(draft: JobDraft, option: str, value: OptionValue) -> None:
    """Whether there is such an advance reservation is checked when the whole submission is read."""
    name = text_of(option, value).strip()
    if not name:
        raise Refused("Bad reservation ID")
    draft.set_spec(reservation=name)


@reads("w")
def read_condition(draft: JobDraft, option: str, value: OptionValue) -> None:
    """A dependency condition."""
    text = text_of(option, value).strip()
    try:
        dependency.parse(text)
    except dependency.DependencyError as error:
        raise Refused(str(error)) from None
    draft.condition = text


@reads("ti")
def read_orphan(draft: JobDraft, option: str, value: OptionValue) -> None:
    """The job is ended once its condition can no longer become true."""
    draft.orphan = bool(value)


@reads("H")
def read_hold(draft: JobDraft, option: str, value: OptionValue) -> None:
    """The job waits until bresume."""
    draft.held = bool(value)


@reads("Jd")
def read_description(draft: JobDraft, option: str, value: OptionValue) -> None:
    """Any text."""
    draft.set_text(description=text_of(option, value))
