"""Files and folders of a job: where its output goes, where its input comes from, and what is copied."""

from __future__ import annotations

import re

from lavad.core.decide.base.draft import JobDraft, text_of
from lavad.core.decide.submit.readers import path_of, reads, texts_of
from lavad.core.lang import secrets
from lavad.core.lang.asks import OptionValue, Refused
from proto.options import SECRETS_FOLDER

MAX_INPUT = 8 << 20
OPERATORS = (">", "<", "<<", "><", "<>")


@reads("o", "oo")
def read_output(draft: JobDraft, option: str, value: OptionValue) -> None:
    """``-oo`` writes over what is there."""
    draft.set_text(output=path_of(option, value), output_overwrite=option == "oo")


@reads("e", "eo")
def read_error(draft: JobDraft, option: str, value: OptionValue) -> None:
    """``-eo`` writes over what is there."""
    draft.set_text(error=path_of(option, value), error_overwrite=option == "eo")


@reads("i")
def read_input(draft: JobDraft, option: str, value: OptionValue) -> None:
    """A file on the execution host."""
    draft.set_text(input=path_of(option, value), input_data="")


@reads("is")
def read_spooled_input(draft: JobDraft, option: str, value: OptionValue) -> None:
    """The command sends the file's name and what is in it, in base64."""
    if not isinstance(value, list) or len(value) != 2:
        raise Refused("option -is is not supported by lava here")
    path, data = value
    if len(data) > MAX_INPUT or not re.fullmatch(r"[A-Za-z0-9+/]*={0,2}", data) or len(data) % 4:
        raise Refused(f"{path[:80]}: The input file is too large")
    draft.set_text(input=path, input_data=data or "====")


@reads("outdir")
def read_output_folder(draft: JobDraft, option: str, value: OptionValue) -> None:
    """Where relative output files go."""
    draft.set_text(output_dir=path_of(option, value))


@reads("cwd")
def read_working_folder(draft: JobDraft, option: str, value: OptionValue) -> None:
    """A relative folder is one below the folder of submission."""
    submitted_in = draft.text.submit_cwd or draft.text.cwd
    draft.set_text(cwd=below(submitted_in, text_of(option, value)), cwd_given=True, submit_cwd=submitted_in)


def leave_working_folder(draft: JobDraft) -> None:
    """The job is to run in the folder of submission, as without ``-cwd``."""
    draft.set_text(cwd=draft.text.submit_cwd or draft.text.cwd, cwd_given=False, submit_cwd="")


def below(submitted_in: str, folder: str) -> str:
    """The working folder that ``folder`` names: a relative one is below that of submission."""
    if folder.startswith("/"):
        return folder
    return "/".join([submitted_in.rstrip("/"), *(word for word in folder.split("/") if word not in ("", "."))]) or "/"


@reads("f")
def read_copies(draft: JobDraft, option: str, value: OptionValue) -> None:
    """``"local operator [remote]"``."""
    found = []
    for text in texts_of(option, value):
        words = text.split()
        good = len(words) in (2, 3) and words[1] in OPERATORS and words[0] not in OPERATORS
        if not good or len(text) > 8192:
            raise Refused(f"{text[:80]}: Bad file copy specification")
        found.append(" ".join(words))
    draft.set_text(copies=tuple(found))


@reads("label")
def read_label(draft: JobDraft, option: str, value: OptionValue) -> None:
    """Each line of a rank's output begins with its number."""
    draft.set_text(label=bool(value))


@reads("rankfiles")
def read_rank_files(draft: JobDraft, option: str, value: OptionValue) -> None:
    """The pattern of one output file for each rank (``%R``)."""
    draft.set_text(rank_files=text_of(option, value))


@reads("secret")
def read_secrets(draft: JobDraft, option: str, value: OptionValue) -> None:
    """``"VARIABLE[=file] ..."``: only the names come here; without a file it is the one that ``lava secret`` keeps."""
    draft.set_text(secrets=secrets.read(text_of(option, value), draft.text.home, SECRETS_FOLDER))
