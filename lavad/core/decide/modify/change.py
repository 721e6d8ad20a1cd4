"""One bmod request: the draft that its options make of a job, their resets, and their lines in the history."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from datetime import datetime
from typing import TypeVar, cast

import msgspec
from msgspec.structs import fields

from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.base.draft import JobDraft
from lavad.core.decide.base.resolve import StoredJobs
from lavad.core.decide.submit.files import leave_working_folder
from lavad.core.decide.submit.options import read_options
from lavad.core.decide.submit.readers import READERS
from lavad.core.decide.submit.slots import leave_nodes
from lavad.core.decide.submit.submit import known_names, known_resources
from lavad.core.job.job import Array, Job
from lavad.core.job.spec import JobText, Spec
from lavad.core.lang.asks import Caller, Modify, OptionValue
from proto.options import BY_NAME, Option, find_reset

S = TypeVar("S")
R = TypeVar("R", bound=Job | Array)
_SPEC_DEFAULTS = {field.name: field.default for field in fields(Spec)}
_TEXT_DEFAULTS = {field.name: field.default for field in fields(JobText)}


class Change(msgspec.Struct, frozen=True):
    """A bmod request, the text of the job, and the decision so far."""

    cluster: Cluster
    ask: Modify
    text: JobText
    caller: Caller
    now: float
    local: datetime
    decided: Decided
    known: StoredJobs
    """Finished jobs that a new dependency condition names."""

    settled: dict[Hashable, object] = {}
    """What ``once`` was given."""

    def once(self, settle: Callable[[Change, R], S], record: R, *alike: Hashable) -> S:
        """What ``settle`` makes of a record, worked out once for all that have its spec and are ``alike``."""
        key = settle, type(record), record.spec, alike
        if key not in self.settled:
            self.settled[key] = settle(self, record)
        return cast(S, self.settled[key])

    def begin_draft(self, record: Job | Array, ran: float | None = None) -> JobDraft:
        """A draft of the unchanged job; ``ran``: seconds that it has run, None while pending."""
        return JobDraft(
            spec=self.cluster.specs.rows[record.spec],
            text=self.text,
            conf=self.cluster.conf,
            local=self.local,
            name=record.name,
            known_hosts=known_names(self.cluster),
            known_resources=known_resources(self.cluster),
            ran=ran,
            has_checkpoint=isinstance(record, Job) and record.checkpoint >= 0,
        )

    def read_options(self, draft: JobDraft) -> None:
        """Apply the options that are not resets."""
        read_options(draft, {name: value for name, value in self.ask.options.items() if find_reset(name) is None})


def reset(draft: JobDraft, option: Option) -> None:
    """Reset what an option sets to the default. The reset of ``-r`` is an option of its own, ``-rn``."""
    if option.name == "nnodes":
        leave_nodes(draft)
    own = option.name + "n"
    if own in READERS:
        READERS[own](draft, own, True)
    for field in option.fields.split():
        if field.startswith("limits."):
            draft.set_limit(**{field.removeprefix("limits."): None})
        elif field == "project":
            draft.set_spec(project=draft.conf.params.default_project)
        elif field == "cwd_given":
            leave_working_folder(draft)
        elif field in _SPEC_DEFAULTS:
            draft.set_spec(**{field: _SPEC_DEFAULTS[field]})
        else:
            draft.set_text(**{field: _TEXT_DEFAULTS[field]})


def describe(name: str, value: OptionValue) -> str:
    """A change as shown by bhist."""
    option = find_reset(name)
    if option is not None:
        return f"{_title(option.name)} is reset"
    if value is True:
        return f"Option -{name} is set"
    return f"{_title(name)} changes to : {shown(value)}"


def _title(name: str) -> str:
    return BY_NAME[name].shown or f"Option -{name}"


def shown(value: OptionValue) -> str | bool:
    """The values of an option that may be given several times, in one line."""
    return " ".join(value) if isinstance(value, list) else value
