"""No field is forgotten between the records of the core and the messages of the wire."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from google.protobuf.message import Message
from msgspec.structs import replace

from config.model.values import JobAction, JobControl, Limits
from lavad.core.job import reports
from lavad.core.job.endpoint import Endpoint
from lavad.core.job.gpu_use import GpuUse
from lavad.core.job.job import End, PendingSignal, TaskEnd
from lavad.core.job.reports import PartReport
from lavad.core.job.spec import Checkpoint, JobText, Policy, Role, RoleText, Spec
from lavad.core.plan.volatile import PartUsage, TaskUsage
from lavad.core.rules import effects as eff
from lavad.core.rules.run_settings import RunSettings, run_settings, text_settings
from lavad.core.site.host import Facts, Gpu
from lavad.wire import encode, records
from proto import agent_pb2 as pb
from tests.support.worlds.world import World

ABOUT = set(PartReport.__struct_fields__)
PAIRS: list[tuple[type[msgspec.Struct], type[Message], set[str]]] = [
    (records.Hello, pb.Hello, set()),
    (records.Welcome, pb.Welcome, set()),
    (records.PartStatus, pb.PartStatus, {"pid"}),
    (records.Heartbeat, pb.Heartbeat, set()),
    (records.Peek, pb.Peek, set()),
    (records.PeekData, pb.PeekData, set()),
    (Facts, pb.Facts, set()),
    (Gpu, pb.Gpu, set()),
    (PartUsage, pb.Usage, set()),
    (TaskUsage, pb.TaskUsage, set()),
    (End, pb.Ended, {"gone", "gpu_faults", "gpu_fault"}),
    (TaskEnd, pb.TaskEnd, set()),
    (GpuUse, pb.GpuUse, set()),
    (Endpoint, pb.Endpoint, set()),
    (Limits, pb.Limits, set()),
    (JobControl, pb.Control, set()),
    (reports.PreparedReport, pb.Prepared, ABOUT),
    (reports.StartedReport, pb.Started, ABOUT),
    (reports.GoneReport, pb.Gone, ABOUT),
    (reports.RefusedReport, pb.PartRefused, ABOUT),
    (reports.StoppedReport, pb.Stopped, ABOUT),
    (reports.GrantedReport, pb.Granted, ABOUT),
    (reports.CheckpointReport, pb.Checkpointed, ABOUT),
    (reports.ResizeReport, pb.Resized, ABOUT),
    (reports.TaskStartReport, pb.TaskStarted, ABOUT),
    (reports.TaskEndReport, pb.TaskEnded, ABOUT),
    (records.KillOrder, pb.Kill, {"key", "attempt", "uid"}),
    (records.StartOrder, pb.Start, {"key", "attempt", "uid", "hosts"}),
    (eff.StopPart, pb.Stop, set(eff.Effect.__struct_fields__)),
    (eff.StartTask, pb.StartTask, set(eff.Effect.__struct_fields__)),
    (eff.EndTask, pb.EndTask, set(eff.Effect.__struct_fields__)),
    (eff.FinishPart, pb.Finish, set(eff.Effect.__struct_fields__)),
    (eff.TellHosts, pb.Hosts, set(eff.Effect.__struct_fields__)),
    (PendingSignal, pb.Signal, {"at", "by", "state", "done", "said"}),
]
"""Record, message, and what only one of them has."""


@pytest.mark.parametrize(("record", "message", "alone"), PAIRS, ids=lambda one: getattr(one, "__name__", ""))
def test_record_and_message_have_the_same_fields(record: type[msgspec.Struct], message: type[Message], alone: set[str]) -> None:
    assert set(record.__struct_fields__) ^ set(message.DESCRIPTOR.fields_by_name) == alone


def order() -> records.TextOrder:
    spec = Spec(user="u", queue="q", roles=(Role(name="r"),), checkpoint=Checkpoint("/c"), policy=Policy())
    text = JobText(command="c", roles=(RoleText(),))
    settings = run_settings(World().cluster, spec, text_settings(text), "h1")
    return records.TextOrder(id=1, job=1, name="n", submitted=1.0, spec=spec, text=text, settings=settings)


def text_fields(order: records.TextOrder, env: dict[str, str]) -> encode.Fields:
    """Of the message; of one that several have, that of the settings is sent, else that of the text."""
    return encode.class_fields(order.spec, order.settings) | {"env": env} | encode.own_fields(order)


def test_all_of_a_text_is_given() -> None:
    assert set(text_fields(order(), {})) == set(pb.JobText.DESCRIPTOR.fields_by_name)


def _names(text: str) -> set[str]:
    return set(text.split())


NOT_SENT = {
    Spec: _names(
        "slots gpu gpu_own hosts exclusive cpu_host run_host estimate priority begin checkpoint dependency user_group requeue "
        "rerunnable never_rerun autoresize resize_command policy migrate_after reservation memory_auto "
        "service_class"
    ),
    JobText: _names("mail_user on_hold array_spec esub cwd_given pend_limit eligible_limit host_file"),
    Policy: {"success", "backoff", "actions", "array_backoff", "array_failures", "array_success", "time_limit"},
    RunSettings: {"container", "djob_env_script", "role_limits"},
    Role: {"resreq", "restart", "spread", "actions", "after", "backoff", "group", "backoff_each"},
    RoleText: set(),
}
"""What an agent need not know, and what it is told in another form."""


@pytest.mark.parametrize("record", NOT_SENT, ids=lambda one: one.__name__)
def test_what_is_not_sent_is_named(record: type[msgspec.Struct]) -> None:
    message = pb.Role if record in (Role, RoleText) else pb.JobText
    sent = set(message.DESCRIPTOR.fields_by_name)
    assert set(record.__struct_fields__) - sent == NOT_SENT[record]


def test_what_bmod_changes_has_the_type_that_the_text_has() -> None:
    text = pb.JobText.DESCRIPTOR.fields_by_name
    for field in pb.Amend.DESCRIPTOR.fields:
        assert (field.type, field.is_repeated) == (text[field.name].type, text[field.name].is_repeated)


def test_what_agents_are_not_told_any_more_is_left_out_of_what_is_kept_for_them() -> None:
    kept = (("mail_user", "bob"), ("notify_end", "1"), ("checkpoint_period", "60"))
    read = pb.Order.FromString(encode.order(eff.ChangeText(host="h1", key=1, attempt=1, uid="u", values=kept)))
    assert read.amend == pb.Amend(notify_end=True, checkpoint_period=60)


def test_the_fields_of_a_role() -> None:
    both = set(Role.__struct_fields__) | set(RoleText.__struct_fields__)
    assert set(pb.Role.DESCRIPTOR.fields_by_name) - both == {"late"}, "what `after` means to a host"


@pytest.mark.parametrize("more", [{}, {"warn_action": "URG", "software": (("module", "a", "b"),), "input_data": "eA=="}])
def test_what_the_class_says_and_what_is_the_jobs_own_make_up_the_whole(more: dict[str, Any]) -> None:
    first = order()
    spec = replace(first.spec, slots=4, limits=Limits(run=60, core=0)) if more else first.spec
    settings = replace(first.settings, warn_action="INT", warn_before=9, job_controls=(JobControl(JobAction.SUSPEND, "pause"),))
    for number in (1, 2):
        text = replace(first.text, command=f"c{number}", secrets=(("A", "/a"),), **more)
        told = replace(first, id=number, spec=spec, settings=settings, text=text)
        env = {"N": str(number)}
        message = pb.JobText.FromString(encode.job_text(told, encode.class_text(spec, settings), encode.env_text(env)))
        assert message == pb.JobText(**text_fields(told, env))
        assert (message.warn_action, message.warn_before) == ("INT", 9), "of its queue or application profile, if not its own"
        assert (message.command, dict(message.env)) == (f"c{number}", env)


@pytest.mark.parametrize(
    ("path", "spooled", "told"),
    [("in", "", ("in", b"")), ("in", "eA==", ("in", b"x")), ("in", "====", ("/dev/null", b"")), ("", "", ("", b""))],
)
def test_a_spooled_input_is_what_was_spooled_although_that_is_empty(path: str, spooled: str, told: tuple[str, bytes]) -> None:
    first = order()
    text = replace(first.text, input=path, input_data=spooled)
    found = text_fields(replace(first, text=text), {})
    assert (found["input"], found["input_data"]) == told
