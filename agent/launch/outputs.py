"""The files of a job: where its standard output and error go, and the names that are made from its id.

Rule: pure; what a user named (``-o``, ``-cwd``) is only put together here. The shepherd, which is the user, opens it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from agent.launch.site import Site, User
from agent.starter.protocol.part import OutputFile
from proto import agent_pb2 as pb

NOWHERE = "/dev/null"
DISCARDED = OutputFile(NOWHERE, append=True)
_MARK = re.compile(r"%[%JIUPGHRT]")


def expand(text: str, values: Mapping[str, str]) -> str:
    """Replace ``%X`` by ``values["X"]``; a letter that is not among them stays as it is, ``%%`` is one percent sign."""
    if "%" not in text:
        return text
    return _MARK.sub(lambda mark: "%" if mark[0] == "%%" else values.get(mark[0][1], mark[0]), text)


def job_values(key: int, user: str, project: str, group: str, host: str) -> dict[str, str]:
    """The values for one job: id, index (0 for a job that is no element), user, project, user group, host."""
    return {"J": str(key & 0xFFFFFFFF), "I": str(key >> 32), "U": user, "P": project, "G": group, "H": host}


class OutputPaths(msgspec.Struct, frozen=True):
    """Where the output of a part goes: paths as the user wrote them, with %J and the like replaced."""

    output: str = ""
    """``-o``, "" if not given."""
    error: str = ""
    kept: str = ""
    """The file in the agent's own folder where the output is kept, or collected for -o; "" when it goes directly to -o."""
    kept_error: str = ""
    cwd: str = ""

    @property
    def stdout(self) -> str:
        """The path opened as standard output."""
        return self.kept or self.output

    @property
    def stderr(self) -> str:
        """The path opened as standard error, "" for the same as standard output."""
        return self.kept_error or self.error


def output_paths(text: pb.JobText, key: int, user: User, site: Site) -> OutputPaths:
    """Where output goes: directly to the user's file, or to a file of the agent (without ``-o``, for good)."""
    values = job_values(key, user.name, text.project, user.group, site.host)
    output, error = expand(text.output, values), expand(text.error, values)
    stem = job_stem(key)
    if output.endswith("/"):
        output += f"{stem}.out"
    if error.endswith("/"):
        error += f"{stem}.err"
    if text.output_dir:
        folder = expand(text.output_dir, values)
        output, error = (os.path.join(folder, path) if path else "" for path in (output, error))
    keep = f"{site.output_dir}/{user.name}/{stem}"
    if text.interactive:
        return OutputPaths(output, error, "", "", expand(text.cwd, values) or user.home)
    direct = text.direct_output or output == NOWHERE
    kept = "" if output and direct else keep + ".out"
    kept_error = keep + ".err" if error and output and not direct else ""
    return OutputPaths(output, error, kept, kept_error, expand(text.cwd, values) or user.home)


def delivered_to(where: OutputPaths, new: OutputPaths) -> OutputPaths:
    """The paths of a part that runs, once its files have other names: those that it writes itself stay."""
    if not where.kept:
        return where
    return replace(where, output=new.output, error=new.error if where.kept_error else where.error)


def job_stem(key: int) -> str:
    """``12`` or ``12.3``: the job's id in file names."""
    return f"{key & 0xFFFFFFFF}.{key >> 32}" if key >> 32 else str(key)


def job_tmpdir(key: int, first_host: str, site: Site) -> str:
    """The job's own folder on a host, named as LSF names it."""
    folder = expand(site.settings.lsb_job_tmpdir, {"H": first_host}) or site.settings.lsf_tmpdir
    return os.path.join(folder, f"{job_stem(key).replace('.', '_')}.tmpdir")


def show(key: int) -> str:
    """``12`` or ``12[3]``: the job's id as users see it."""
    return f"{key & 0xFFFFFFFF}[{key >> 32}]" if key >> 32 else str(key)


def output_file(text: pb.JobText, where: OutputPaths, attempt: int) -> OutputFile:
    if text.interactive and not where.output:
        return DISCARDED
    if where.kept:
        # Only output that is kept for good grows with each attempt; a job of an older store may have had this number.
        return OutputFile(where.kept, append=not where.output and attempt > 1)
    return OutputFile(where.output, append=not text.output_overwrite, mkdir=bool(text.output_dir))


def error_file(text: pb.JobText, where: OutputPaths) -> OutputFile | None:
    if where.kept_error:
        return OutputFile(where.kept_error)
    if where.error and where.error != where.stdout:
        return OutputFile(where.error, append=not text.error_overwrite, mkdir=bool(text.output_dir))
    return None


def opened(env: dict[str, str], order: pb.Order, text: pb.JobText, where: OutputPaths) -> tuple[OutputFile, OutputFile | None]:
    """Where standard output and error of a part go, None: along with standard output. ``env`` gets the variables about it."""
    if order.start.place:
        # Standard error is kept apart on the way to the first host.
        return DISCARDED, DISCARDED if where.error or text.interactive else None
    for name, value in (("LSB_OUTPUTFILE", where.output), ("LSB_ERRORFILE", where.error)):
        if value:
            env[name] = value
    return output_file(text, where, order.attempt), error_file(text, where)


def checkpoint_folder(text: pb.JobText, key: int) -> str:
    """The job's own folder below the one that ``-k`` names."""
    return os.path.join(text.cwd, text.checkpoint_folder, job_stem(key))
