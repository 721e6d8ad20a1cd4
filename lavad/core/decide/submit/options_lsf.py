"""Options about other jobs, groups, profiles and nodes; see ``options``, which has the table of all."""

from __future__ import annotations

import re
import signal

from lavad.core.decide.base.draft import Draft, text_of
from lavad.core.job.groups import read_path
from lavad.core.lang import dependency, when
from lavad.core.lang.asks import OptionValue, Refused
from lavad.core.lang.resreq import text as resreq

CHECKPOINT = "CHKPNT"
MAX_COMMAND = 4096
MAX_SIGNAL = 64
MAX_MINUTES = 2**25
MAX_NODES = 2**31 - 1


def condition(draft: Draft, value: OptionValue) -> None:
    """``-w``."""
    text = text_of("w", value).strip()
    try:
        dependency.parse(text)
    except dependency.DependencyError as error:
        raise Refused(str(error)) from None
    draft.condition = text


def orphan(draft: Draft, value: OptionValue) -> None:
    """``-ti``."""
    draft.orphan = bool(value)


def group(draft: Draft, value: OptionValue) -> None:
    """``-g``."""
    path = read_path(text_of("g", value))
    if not path:
        raise Refused("Bad/empty job group name")
    draft.set(group=path)


def app(draft: Draft, value: OptionValue) -> None:
    """``-app``."""
    name = text_of("app", value)
    if name not in {app.name for app in draft.conf.apps}:
        raise Refused(f"{name}: No such application profile")
    draft.set(app=name)


def reservation(draft: Draft, value: OptionValue) -> None:
    """``-U``; whether there is such a reservation is asked where the job is taken in."""
    name = text_of("U", value).strip()
    if not name:
        raise Refused("Bad reservation ID")
    draft.set(reservation=name)


def requeue(draft: Draft, value: OptionValue) -> None:
    """``-Q``."""
    text = text_of("Q", value).strip()
    words = re.sub(r"EXCLUDE\(([^()]*)\)", r" \1 ", text).split()
    numbers = [word.removeprefix("~") for word in words if word != "all"]
    if not words or any(not (number.isascii() and number.isdigit() and int(number) <= 255) for number in numbers):
        raise Refused(f"{text}: Bad requeue exit value specification")
    draft.set(requeue=text)


def nodes(draft: Draft, value: OptionValue) -> None:
    """``-nnodes``: so many hosts, a slot on each; with ``-n``, that many tasks spread evenly over them."""
    text = text_of("nnodes", value)
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= MAX_NODES:
        raise Refused(f"{text}: Bad number of nodes")
    hosts, tasks = int(text), max(draft.spec.slots, int(text))
    if draft.spec.max_slots not in (1, draft.spec.slots) or tasks % hosts:
        raise Refused(f"{text}: the tasks of -n cannot be spread evenly over so many nodes")
    span = f"span[ptile={tasks // hosts}]"
    draft.set(slots=tasks, max_slots=tasks, resreq=resreq.merge([draft.spec.resreq, span], 1.0))


def autoresize(draft: Draft, value: OptionValue) -> None:
    """``-ar``."""
    if value:
        make_elastic(draft)


def make_elastic(draft: Draft, least: int = 0, most: int = 0) -> None:
    """The job grows by itself from ``least`` to ``most`` slots (0: as ``-n`` has it). For all ways of saying so."""
    draft.set(resizable=True, autoresize=True)
    if least:
        draft.set(slots=least, max_slots=max(least, most))


def resize_command(draft: Draft, value: OptionValue) -> None:
    """``-rnc``."""
    command = text_of("rnc", value)
    if not command.startswith("/") or len(command) > MAX_COMMAND or not command.isprintable():
        raise Refused("The resize notification command must be an absolute path")
    draft.set(resize_command=command)


def warn_action(draft: Draft, value: OptionValue) -> None:
    """``-wa``: a signal by name or number, CHKPNT, or a command."""
    text = text_of("wa", value).strip()
    name = text.upper().removeprefix("SIG")
    known = name == CHECKPOINT or name in signal.Signals.__members__ or f"SIG{name}" in signal.Signals.__members__
    number = text.isascii() and text.isdigit() and 0 < int(text) <= MAX_SIGNAL
    if not (known or number or (text.startswith("/") and text.isprintable() and len(text) <= MAX_COMMAND)):
        raise Refused("Bad warning action: a signal, CHKPNT or the path of a command")
    draft.say(warn_action=name if known else text)


def warn_time(draft: Draft, value: OptionValue) -> None:
    """``-wt [hour:]minute``."""
    text = text_of("wt", value).strip()
    try:
        seconds, host = when.parse_limit(text)
    except when.WhenError:
        seconds, host = 0, ""
    if seconds <= 0 or host:
        raise Refused(f"{text[:80]}: Bad warning time specification")
    draft.say(warn_before=seconds)


def estimate(draft: Draft, value: OptionValue) -> None:
    """``-We [hour:]minute[/host]``."""
    draft.set(estimate=_estimated(draft, "We", value))


def _estimated(draft: Draft, option: str, value: OptionValue) -> int:
    text = text_of(option, value)
    try:
        seconds, host = when.parse_limit(text)
    except when.WhenError:
        raise Refused(f"{text}: Bad ESTIMATED_RUNTIME specification") from None
    if host is not None and host not in draft.known_hosts and host not in {name for name, _ in draft.conf.models}:
        raise Refused(f"{host}: Bad host specification")
    return seconds


def estimate_more(draft: Draft, value: OptionValue) -> None:
    """``bmod -We+``: so much more than it has run by now."""
    draft.set(estimate=round(_running(draft, "We+")) + _estimated(draft, "We+", value))


def estimate_share(draft: Draft, value: OptionValue) -> None:
    """``bmod -Wep PERCENT``: so much of it is done by now."""
    text = text_of("Wep", value).strip().removesuffix("%")
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= 100:
        raise Refused(f"{text[:80]}: Bad ESTIMATED_RUNTIME specification")
    draft.set(estimate=max(1, round(_running(draft, "Wep") * 100 / int(text))))


def _running(draft: Draft, option: str) -> float:
    if draft.ran is None:
        raise Refused(f"-{option}: This is for jobs that run (bmod); -We gives an estimate beforehand")
    return draft.ran


def migrate(draft: Draft, value: OptionValue) -> None:
    """``-mig MINUTES``."""
    text = text_of("mig", value).strip()
    if not text.isascii() or not text.isdigit() or int(text) > MAX_MINUTES:
        raise Refused(f"{text[:80]}: Bad migration threshold")
    draft.set(migrate_after=int(text) * 60)


def host_limits(draft: Draft, value: OptionValue) -> None:
    """``-hl``: memory is limited for the job as a whole on each host, by its control group. lava has no other way there."""
    if value and "memory" not in draft.conf.params.enforce:
        raise Refused('-hl: This needs LSB_RESOURCE_ENFORCE="memory" in lsf.conf')
