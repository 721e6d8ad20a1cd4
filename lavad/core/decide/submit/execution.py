"""Options about the execution of a job: commands around it, reruns, checkpoints, interactive jobs and mail."""

from __future__ import annotations

import re

from msgspec.structs import replace

from config.model.values import why_not_method
from lavad.core.decide.base.draft import JobDraft, text_of
from lavad.core.decide.submit.readers import printable_text, reads
from lavad.core.job.spec import Checkpoint
from lavad.core.lang.asks import OptionValue, Refused
from lavad.core.lang.job_names import ArraySpec
from proto.numbers import find_number
from proto.options import BY_NAME

NOTIFICATIONS = {"Ne": "exit", "Nd": "done", "Ns": "start"}
"""Short forms of ``-notify``."""


@reads("K", "env")
def read_nothing(draft: JobDraft, option: str, value: OptionValue) -> None:
    """Options that the command itself carries out."""


@reads("E", "Ep")
def read_command_around(draft: JobDraft, option: str, value: OptionValue) -> None:
    """A command that runs before or after the job."""
    draft.set_text(**{BY_NAME[option].fields: text_of(option, value)})


@reads("L")
def read_login_shell(draft: JobDraft, option: str, value: OptionValue) -> None:
    """The shell whose login files set up the environment."""
    shell = text_of(option, value)
    if not shell.startswith("/") or "\0" in shell or len(shell) > 4095:
        raise Refused(f"{shell[:80]}: Login shell must be an absolute path")
    draft.set_text(login_shell=shell)


@reads("r")
def read_rerunnable(draft: JobDraft, option: str, value: OptionValue) -> None:
    """The job is queued again when its host is lost."""
    if value:
        draft.set_spec(rerunnable=True, never_rerun=False)


@reads("rn")
def read_never_rerun(draft: JobDraft, option: str, value: OptionValue) -> None:
    """Nor does the queue make it rerunnable."""
    if value:
        draft.set_spec(rerunnable=False, never_rerun=True)


@reads("Q")
def read_requeue(draft: JobDraft, option: str, value: OptionValue) -> None:
    """Exit values with which the job is queued again: ``all ~1 EXCLUDE(2)``."""
    text = text_of(option, value).strip()
    words = re.sub(r"EXCLUDE\(([^()]*)\)", r" \1 ", text).split()
    numbers = [word.removeprefix("~") for word in words if word != "all"]
    if not words or any(find_number(number, most=255) is None for number in numbers):
        raise Refused(f"{text}: Bad requeue exit value specification")
    draft.set_spec(requeue=text)


AUTO = "auto"
"""In place of a checkpoint period."""
STAGE = "stage"
"""Without a folder: that of LAVA_CHKPNT_STAGE_DIR, else on another host."""


@reads("k")
def read_checkpoint(draft: JobDraft, option: str, value: OptionValue) -> None:
    """``folder [init=minutes] [minutes | auto] [method=name] [keep=number] [runlimit=requeue] [stage[=folder]]``."""
    folder, *words = text_of(option, value).split() or [""]
    if not folder:
        raise Refused("Checkpoint directory is missing")
    made = Checkpoint(folder=folder)
    for word in words:
        if made.method and word.startswith("method="):
            raise Refused(f"{word[7:87]}: Bad checkpoint method: {made.method} is given, too")
        found = _checkpoint_word(word)
        if "period" in found and made.period:
            raise Refused(f"{word}: Bad checkpoint period: {made.period // 60} is given, too")
        if "stage" in found and made.stage:
            raise Refused(f"-k: {STAGE} is given twice")
        made = replace(made, **found)
    if made.stage == STAGE:
        folder = draft.conf.params.lava_chkpnt_stage_dir
        made = replace(made, stage=folder, to_hosts=not folder)
    if made.auto and made.period:
        raise Refused(f"{made.period // 60}: Bad checkpoint period: {AUTO} is given, too")
    draft.set_spec(checkpoint=made)


def _checkpoint_word(word: str) -> dict[str, object]:
    """The field that a word behind the folder sets."""
    name, _, text = word.partition("=")
    if name == "method":
        if why := why_not_method(text) or ("" if text else "Checkpoint method is missing"):
            raise Refused(why)
        return {"method": text}
    if name == "keep":
        return {"keep": _kept(text)}
    if name == "init" and text:
        return {"initial": _checkpoint_seconds(text)}
    if name == "runlimit":
        if text != "requeue":
            raise Refused(f"{word}: Bad action at the run limit: runlimit=requeue, or nothing")
        return {"requeues": True}
    if name == STAGE:
        if word != STAGE and not text.startswith("/"):
            raise Refused(f"-k: {word[:80]}: the folder to stage to is given by its whole path")
        return {"stage": text or STAGE}
    return {"auto": True} if word == AUTO else {"period": _checkpoint_seconds(word)}


def _kept(text: str) -> int:
    number = find_number(text, most=1000)
    if not number:
        raise Refused(f"{text[:80]}: Bad number of checkpoints to keep")
    return number


def _checkpoint_seconds(text: str) -> int:
    minutes = find_number(text, most=10**6)
    if not minutes:
        raise Refused(f"{text}: Bad checkpoint period")
    return minutes * 60


@reads("alloc_flags")
def read_allocation_flags(draft: JobDraft, option: str, value: OptionValue) -> None:
    """Programs written for hosts with IBM's Cluster Systems Manager send it always: it is taken, and the user told."""
    text_of(option, value)
    draft.notices = [*draft.notices, f"option -{option} has no effect: it is for IBM's Cluster Systems Manager"]


@reads("B", "N")
def read_mail(draft: JobDraft, option: str, value: OptionValue) -> None:
    """Mail when the job starts or has ended."""
    draft.set_text(**{BY_NAME[option].fields: bool(value)})


@reads("u")
def read_mail_user(draft: JobDraft, option: str, value: OptionValue) -> None:
    """Who gets the mail; it becomes a line of the mail's head."""
    draft.set_text(mail_user=printable_text(option, value))


@reads("notify", *NOTIFICATIONS)
def read_notify(draft: JobDraft, option: str, value: OptionValue) -> None:
    """``-notify "exit done start suspend"`` and its short forms, which add up."""
    if option in NOTIFICATIONS:
        words = [NOTIFICATIONS[option]] if value else []
    else:
        words = text_of(option, value).split()
        for word in words:
            if word not in ("exit", "done", "start", "suspend"):
                raise Refused(f"{word[:80]}: Bad notification specification")
        if not words:
            raise Refused("Bad notification specification")
    draft.set_text(notify=" ".join(dict.fromkeys([*draft.text.notify.split(), *words])))


@reads("I", "Ip", "Is")
def read_interactive(draft: JobDraft, option: str, value: OptionValue) -> None:
    """An interactive job."""
    if not value:
        return
    if draft.text.interactive:
        raise Refused(f"-{draft.text.interactive} and -{option} cannot be given together")
    draft.set_spec(interactive=True)
    draft.set_text(interactive=option)


@reads("tty")
def read_tee(draft: JobDraft, option: str, value: OptionValue) -> None:
    """Output of an interactive job that goes to files is also shown."""
    draft.set_text(tee=bool(value))


def check_interactive(draft: JobDraft) -> None:
    """Raises Refused for options that an interactive job cannot have."""
    if draft.text.tee and not draft.text.interactive:
        raise Refused("-tty: This is for interactive jobs (-I, -Ip, -Is)")
    if not draft.text.interactive:
        return
    if draft.spec.rerunnable:
        raise Refused("-r: Interactive jobs are not rerunnable")
    if draft.spec.checkpoint is not None:
        raise Refused("-k: Interactive jobs cannot be checkpointed")


def settle_interactive(draft: JobDraft, name: ArraySpec | str) -> None:
    """Remove defaults of queue and application profile that apply to batch jobs only."""
    if not draft.text.interactive:
        return
    if isinstance(name, ArraySpec):
        raise Refused("Job arrays cannot be interactive")
    draft.spec = replace(draft.spec, rerunnable=False, checkpoint=None)
