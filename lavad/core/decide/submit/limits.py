"""Limits of a job: its own, those of its user (``-ul``), and how far a queue or an application profile lets them go."""

from __future__ import annotations

import re
from decimal import Decimal
from math import ceil

import msgspec

from config.model.queue import JobProfile
from config.model.values import Limits
from lavad.core.decide.base.draft import JobDraft, text_of
from lavad.core.decide.submit.readers import check_host_spec, find_duration, reads
from lavad.core.job.spec import Spec
from lavad.core.lang.asks import OptionValue, Refused
from proto.numbers import find_number
from proto.options import BY_NAME

TITLES = {
    "run": "RUNLIMIT",
    "cpu": "CPULIMIT",
    "mem": "MEMLIMIT",
    "swap": "SWAPLIMIT",
    "file": "FILELIMIT",
    "data": "DATALIMIT",
    "stack": "STACKLIMIT",
    "core": "CORELIMIT",
    "processes": "PROCESSLIMIT",
    "threads": "THREADLIMIT",
}
"""What LSF calls the fields of Limits."""
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)([KMGTPEZ]?)B?!?", re.ASCII | re.IGNORECASE)
_UNITS = {"K": 1, "M": 1024, "G": 1024**2, "T": 1024**3, "P": 1024**4, "E": 1024**5, "Z": 1024**6}
MAX_KB = 2**53 - 1
"""In bytes it still is a 64-bit number, as limits of processes are."""
_USER_LIMITS = ("core", "cpu", "data", "file", "stack")


def _field(option: str) -> str:
    """The field of Limits that an option sets."""
    return BY_NAME[option].fields.split()[0].removeprefix("limits.")


@reads("W", "c")
def read_time(draft: JobDraft, option: str, value: OptionValue) -> None:
    """``[hour:]minute[/host]``. A job with ``-W 0`` is ended when it starts, as in LSF."""
    text = text_of(option, value)
    field = _field(option)
    found = find_duration(text)
    if found is None or not (found[0] or option == "W"):
        raise Refused(f"{text}: Bad {TITLES[field]} specification")
    seconds, host = found
    check_host_spec(draft, host)
    draft.set_limit(**{field: seconds})
    draft.set_spec(**{f"{field}_host": host or ""})


@reads("v", "D", "F", "S", "C")
def read_size(draft: JobDraft, option: str, value: OptionValue) -> None:
    """A number in the site's unit (LSF_UNIT_FOR_LIMITS) or one of its own, perhaps with ``!``; 0 is no limit, but of -C.

    LSF wants whole numbers; of others (``1.5G``, ``4000.0`` of a program) a part of a KB counts as one.
    """
    text = text_of(option, value)
    field = _field(option)
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise Refused(f"{text}: Bad {TITLES[field]} specification")
    kb = ceil(Decimal(match[1]) * (_UNITS[match[2].upper()] if match[2] else draft.conf.params.unit_kb))
    if kb > MAX_KB:
        raise Refused(f"{text}: {TITLES[field]} is too large")
    draft.set_limit(**{field: kb if kb or option == "C" else None})


@reads("p", "T")
def read_count(draft: JobDraft, option: str, value: OptionValue) -> None:
    """Most processes or threads of the job."""
    text = text_of(option, value)
    number = find_number(text, least=1)
    if number is None:
        raise Refused(f"{text}: Bad {TITLES[_field(option)]} specification")
    draft.set_limit(**{_field(option): number})


@reads("ul")
def read_user_limits(draft: JobDraft, option: str, value: OptionValue) -> None:
    """The command sends the caller's own limits; limits of the job override them."""
    for word in text_of(option, value).split():
        name, _, size = word.partition("=")
        number = find_number(size, most=10**15 - 1)
        if name not in _USER_LIMITS or number is None:
            raise Refused(f"{word[:80]}: Bad user limit")
        if getattr(draft.spec.limits, name) is None and (number or name == "core"):
            draft.set_limit(**{name: number})


@reads("hl")
def read_host_limits(draft: JobDraft, option: str, value: OptionValue) -> None:
    """Memory is limited for the job as a whole on each host, by its control group. lava has no other way there."""
    if value and "memory" not in draft.conf.params.lsb_resource_enforce:
        raise Refused('-hl: This needs LSB_RESOURCE_ENFORCE="memory" in lsf.conf')


def with_defaults(limits: Limits, defaults: Limits) -> Limits:
    """The job's limits, and the defaults where it has none."""
    own = msgspec.structs.asdict(limits)
    return Limits(**{name: getattr(defaults, name) if value is None else value for name, value in own.items()})


def without(limits: Limits, defaults: Limits, most: Limits) -> Limits:
    """The limits of a job, but for those that are what a queue with these defaults and hard limits gives who names none."""
    of_queue = msgspec.structs.asdict(with_defaults(defaults, most))
    return Limits(**{name: None if value == of_queue[name] else value for name, value in msgspec.structs.asdict(limits).items()})


def check_most(limits: Limits, most: Limits, whose: str) -> None:
    """Refused where a job asks for more than the hard limits of a queue or an application profile."""
    for field, title in TITLES.items():
        limit, wanted = getattr(most, field), getattr(limits, field)
        if limit is not None and wanted is not None and wanted > limit:
            raise Refused(f"{title}: Cannot exceed {whose}")


def check_size(spec: Spec, profile: JobProfile) -> None:
    """JOB_SIZE_LIST, else TASKLIMIT: the slots that a job of a queue or an application profile may ask for. Raises Refused."""
    sizes = profile.job_size_list
    if sizes and not spec.roles:
        if spec.slots != spec.max_slots or spec.slots not in sizes:
            raise Refused(f"Job size is not one of those allowed: {' '.join(map(str, sizes))}")
        return
    if profile.tasklimit.maximum is not None and spec.slots > profile.tasklimit.maximum:
        raise Refused("Too many processors requested")
    if spec.max_slots < profile.tasklimit.minimum:
        raise Refused("Too few processors requested")


def check_host_specs(draft: JobDraft) -> None:
    """Two limits cannot be scaled by two hosts or models."""
    spec = draft.spec
    if spec.cpu_host and spec.run_host and spec.cpu_host != spec.run_host:
        raise Refused(f"More than one host_spec is specified: <{spec.cpu_host}> and <{spec.run_host}>")
