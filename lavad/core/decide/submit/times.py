"""Options about times: begin time, termination deadline, estimated run time, pending limits."""

from __future__ import annotations

import signal

from lavad.core.decide.base.draft import JobDraft, text_of
from lavad.core.decide.submit.readers import check_host_spec, find_duration, reads
from lavad.core.lang import when
from lavad.core.lang.asks import OptionValue, Refused
from proto.numbers import find_number
from proto.options import BY_NAME

CHECKPOINT = "CHKPNT"
MAX_COMMAND = 4096
MAX_SIGNAL = 64
MAX_MINUTES = 2**25


@reads("b", "t")
def read_point(draft: JobDraft, option: str, value: OptionValue) -> None:
    """``[[[year:]month:]day:]hour:minute`` of the caller's clock."""
    text = text_of(option, value)
    try:
        at = when.parse_point(text, draft.local).timestamp()
    except when.WhenError:
        raise Refused(f"{text}: Bad time specification") from None
    draft.set_spec(**{BY_NAME[option].fields: at})


@reads("We")
def read_estimate(draft: JobDraft, option: str, value: OptionValue) -> None:
    """``[hour:]minute[/host]``."""
    draft.set_spec(estimate=_estimate(draft, option, value))


@reads("We+")
def read_more_estimate(draft: JobDraft, option: str, value: OptionValue) -> None:
    """bmod: so much more than it has run by now."""
    draft.set_spec(estimate=round(_seconds_run(draft, option)) + _estimate(draft, option, value))


@reads("Wep")
def read_share_done(draft: JobDraft, option: str, value: OptionValue) -> None:
    """bmod: so many percent of it are done by now."""
    text = text_of(option, value).strip().removesuffix("%")
    percent = find_number(text, least=1, most=100)
    if percent is None:
        raise Refused(f"{text[:80]}: Bad ESTIMATED_RUNTIME specification")
    draft.set_spec(estimate=max(1, round(_seconds_run(draft, option) * 100 / percent)))


def _estimate(draft: JobDraft, option: str, value: OptionValue) -> int:
    text = text_of(option, value)
    found = find_duration(text)
    if found is None or not found[0]:
        raise Refused(f"{text}: Bad ESTIMATED_RUNTIME specification")
    seconds, host = found
    check_host_spec(draft, host)
    return seconds


def _seconds_run(draft: JobDraft, option: str) -> float:
    if draft.ran is None:
        raise Refused(f"-{option}: This is for jobs that run (bmod); -We gives an estimate beforehand")
    return draft.ran


@reads("ptl", "eptl")
def read_pend_limit(draft: JobDraft, option: str, value: OptionValue) -> None:
    """``[hour:]minute``; kept in minutes, as it is shown only."""
    text = text_of(option, value)
    seconds, host = find_duration(text) or (0, None)
    if not seconds or host is not None:
        raise Refused(f"{text[:80]}: Bad pending time limit specification")
    draft.set_text(**{BY_NAME[option].fields: seconds // 60})


@reads("mig")
def read_migration_threshold(draft: JobDraft, option: str, value: OptionValue) -> None:
    """Minutes of suspension after which the job migrates."""
    text = text_of(option, value).strip()
    minutes = find_number(text, most=MAX_MINUTES)
    if minutes is None:
        raise Refused(f"{text[:80]}: Bad migration threshold")
    draft.set_spec(migrate_after=minutes * 60)


@reads("wa")
def read_warning_action(draft: JobDraft, option: str, value: OptionValue) -> None:
    """A signal by name or number, CHKPNT, or a command."""
    text = text_of(option, value).strip()
    name = text.upper().removeprefix("SIG")
    known = name == CHECKPOINT or name in signal.Signals.__members__ or f"SIG{name}" in signal.Signals.__members__
    number = find_number(text, least=1, most=MAX_SIGNAL) is not None
    if not (known or number or (text.startswith("/") and text.isprintable() and len(text) <= MAX_COMMAND)):
        raise Refused("Bad warning action: a signal, CHKPNT or the path of a command")
    draft.set_text(warn_action=name if known else text)


@reads("wt")
def read_warning_time(draft: JobDraft, option: str, value: OptionValue) -> None:
    """``[hour:]minute`` before the job is ended."""
    text = text_of(option, value).strip()
    seconds, host = find_duration(text) or (0, None)
    if seconds <= 0 or host:
        raise Refused(f"{text[:80]}: Bad warning time specification")
    draft.set_text(warn_before=seconds)
