"""Options about the number of slots and hosts of a job, and its resizing."""

from __future__ import annotations

from collections.abc import Sequence

from lavad.core.decide.base.draft import JobDraft, text_of
from lavad.core.decide.submit.readers import reads
from lavad.core.job.spec import Spec
from lavad.core.lang.asks import OptionValue, Refused
from lavad.core.lang.resreq import text as resreq
from lavad.core.lang.resreq.sections import Span
from lavad.core.lang.resreq.text import ResReq, ResReqError
from lavad.core.lang.resreq.ways import MOST, MOST_PARTS, is_too_many
from lavad.core.rules.run_settings import uses_of
from proto.numbers import find_number

MAX_COMMAND = 4096
MAX_HOSTS = 10_000


def _get_positive(text: str) -> int:
    number = find_number(text, least=1)
    if number is None:
        raise Refused("The number of processors must be a positive integer")
    return number


@reads("n")
def read_slots(draft: JobDraft, option: str, value: OptionValue) -> None:
    """``least[,most]``."""
    least, _, most = text_of(option, value).partition(",")
    slots = _get_positive(least.strip())
    top = _get_positive(most.strip()) if most else slots
    if top < slots:
        raise Refused(f"{least},{most}: The maximum number of processors is less than the minimum")
    draft.set_spec(slots=slots, max_slots=top)
    draft.tasks_asked = True


@reads("nnodes")
def read_nodes(draft: JobDraft, option: str, value: OptionValue) -> None:
    """So many hosts, a slot on each; with ``-n``, that many tasks spread evenly over them."""
    text = text_of(option, value)
    hosts = find_number(text, least=1)
    if hosts is None:
        raise Refused(f"{text}: Bad number of nodes")
    tasks = draft.spec.slots if draft.tasks_asked or not _is_one_on_each(draft.spec) else hosts
    if draft.spec.max_slots not in (1, draft.spec.slots) or tasks % hosts:
        raise Refused(f"{text}: the tasks of -n cannot be spread evenly over so many nodes")
    try:
        spread = resreq.merge([draft.spec.resreq, f"span[ptile={tasks // hosts}]"], 1.0)
    except ResReqError as error:
        raise Refused(f"-nnodes {text}: {error.detail}") from None
    draft.set_spec(slots=tasks, max_slots=tasks, resreq=spread)


def _is_one_on_each(spec: Spec) -> bool:
    """Whether a job has one slot, or one on each of its hosts, as ``-nnodes`` alone makes it."""
    return spec.slots == 1 or ("ptile" in spec.resreq and resreq.parse(spec.resreq).span == Span("ptile", 1))


def leave_nodes(draft: JobDraft) -> None:
    """The tasks are no longer spread over a number of hosts."""
    if "ptile" in draft.spec.resreq:
        draft.set_spec(resreq=resreq.without_ptile(resreq.parse(draft.spec.resreq)))


@reads("hostfile")
def read_host_file(draft: JobDraft, option: str, value: OptionValue) -> None:
    """The command sends the file's name and its lines, ``host slots`` each."""
    if not isinstance(value, list) or not 2 <= len(value) <= MAX_HOSTS:
        raise Refused("option -hostfile is not supported by lava here")
    counts: dict[str, int] = {}
    for line in value[1:]:
        name, _, text = line.partition(" ")
        if name not in draft.known_hosts:
            raise Refused(f"{name[:80]}: Bad host name, host group name or cluster name")
        slots = find_number(text, least=1)
        if slots is None:
            raise Refused(f"{line[:80]}: The number of processors must be a positive integer")
        counts[name] = counts.get(name, 0) + slots
    one = len(counts) == 1
    terms = [f"select[hname=={name}]" if one else f"{slots}*{{select[hname=={name}]}}" for name, slots in counts.items()]
    try:
        requirement = resreq.merge([terms[0] + " span[hosts=1]" if one else "+".join(terms)], 1.0)
    except ResReqError as error:
        raise Refused(str(error)) from None
    draft.set_spec(resreq=requirement, slots=sum(counts.values()), max_slots=sum(counts.values()))
    draft.set_text(host_file=value[0])


@reads("ar")
def read_autoresize(draft: JobDraft, option: str, value: OptionValue) -> None:
    """The job grows by itself between the two numbers of ``-n``."""
    if value:
        draft.set_spec(resizable=True, autoresize=True)


@reads("rnc")
def read_resize_command(draft: JobDraft, option: str, value: OptionValue) -> None:
    """A command that runs on the first host after a resize."""
    command = text_of(option, value)
    if not command.startswith("/") or len(command) > MAX_COMMAND or not command.isprintable():
        raise Refused("The resize notification command must be an absolute path")
    draft.set_spec(resize_command=command)


def settle_slots(draft: JobDraft, asked: bool) -> None:
    """Set the slots of a job with a compound requirement; ``asked``: they were given by ``-n``. Raises Refused."""
    text = draft.spec.resreq
    if "{" not in text and "||" not in text:
        return
    req = resreq.parse(text)
    if is_too_many(req):
        raise Refused(f"Bad resource requirement: more than {MOST} alternatives, or {MOST_PARTS} parts in all")
    sums = _sums(req)
    if sums and not asked and draft.spec.max_slots == 1:
        most = max(count + rest for count, rest in sums)
        draft.set_spec(slots=most, max_slots=most)
    _check_sums(draft.spec, sums)


def check_queue_requirement(spec: Spec, queue: str) -> None:
    """Whether a job fits the compound requirement of a queue, if it has none of its own. Raises Refused."""
    if "{" in queue and not spec.resreq:
        _check_sums(spec, _sums(resreq.parse(queue)))


def check_configured(place: str, text: str) -> None:
    """Whether a requirement of a configuration file can be read: one that is passed over is nobody's wish. Raises Refused."""
    try:
        if text:
            resreq.parse(text)
    except ResReqError as error:
        raise Refused(f"{place}: {error}") from None


def check_reserved(spec: Spec, limits: Sequence[tuple[str, float, float]], runs: bool) -> None:
    """RESRSV_LIMIT: whether what a job reserves with rusage[] is within the limits of its queue. Raises Refused.

    One that runs may have less than the least (LSF: bswitch).
    """
    if not limits or not spec.resreq:
        return
    uses = {(use.name, use.amount) for use in uses_of(resreq.parse(spec.resreq))}
    for name, least, most in limits:
        wrong = next(
            (amount for used, amount in sorted(uses) if used == name and (amount > most or (amount < least and not runs))), None
        )
        if wrong is not None:
            raise Refused(f"{name}={wrong:g}: Resource reservation is not within the queue's limits ({least:g} to {most:g})")


def _check_sums(spec: Spec, sums: set[tuple[int, bool]]) -> None:
    for count, rest in sums:
        if not (count < spec.slots if rest else count == spec.slots == spec.max_slots):
            asked = f"{count} tasks{' and more' if rest else ''}"
            raise Refused(f"Bad resource requirement: its parts are {asked}, and -n asks for {spec.slots}")


def _sums(req: ResReq) -> set[tuple[int, bool]]:
    """Of each compound requirement: (tasks of the parts that are counted, whether a last part takes the rest)."""
    found = [part for part in (*(part for part, _ in req.alternatives), req) if part.compound]
    return {(sum(count for count, _ in part.compound), not all(count for count, _ in part.compound)) for part in found}
