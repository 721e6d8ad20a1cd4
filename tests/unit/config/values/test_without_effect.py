"""Parameters of LSF that have no effect: badmin ckconfig notes or warns of each, and says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.read.load import load
from config.values.without_effect import BECAUSE

IN_A_SECTION = {"lsb.params": "Parameters", "lsf.cluster.c": "Parameters", "lsb.applications": "Application"}


def line_of(file: str, name: str) -> str:
    line = f"{name}=1\n"
    if section := IN_A_SECTION.get(file):
        named = "NAME = a\n" if section == "Application" else ""
        line = f"Begin {section}\n{named}{line}End {section}\n"
    return line


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("lsf.conf", "LSB_KEEP_SYSDEF_RLIMIT"),
        ("lsf.conf", "LSB_MAX_PACK_JOBS"),
        ("lsf.conf", "LSB_MIG2PEND"),
        ("lsf.conf", "LSB_BSUBI_OLD"),
        ("lsf.conf", "LSB_BSUB_ERR_RETRY"),
        ("lsf.conf", "LSB_SUB_COMMANDNAME"),
        ("lsf.conf", "LSF_SHELL_AT_USERS"),
        ("lsf.conf", "LSF_ULDB_DOMAIN"),
        ("lsb.params", "GROUP_PEND_JOBS_BY"),
        ("lsf.cluster.c", "ELIM_ABORT_VALUE"),
        ("lsf.cluster.c", "ELIM_POLL_INTERVAL"),
        ("lsf.cluster.c", "EXINTERVAL"),
        ("lsb.applications", "PERSISTENT_HOST_ORDER"),
        ("lsb.applications", "MAX_PREEXEC_RETRY"),
    ],
)
def test_each_is_a_note_with_its_reason(tmp_path: Path, file: str, name: str) -> None:
    (tmp_path / file).write_text(line_of(file, name))
    [said] = [problem for problem in load(str(tmp_path)).problems if name in problem.text]
    assert said.text.endswith(f"{name} is not needed by lava and has no effect: {BECAUSE[name]}")
    assert said.note


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("lsf.conf", "LSF_BIND_JOB"),
        ("lsf.conf", "LSB_USER_REQUEUE_TO_BOTTOM"),
        ("lsb.params", "FAIRSHARE_ADJUSTMENT_FACTOR"),
        ("lsb.params", "USE_SUSP_SLOTS"),
        ("lsb.applications", "BIND_JOB"),
    ],
)
def test_what_a_site_would_miss_is_a_warning_that_says_what_there_is(tmp_path: Path, file: str, name: str) -> None:
    (tmp_path / file).write_text(line_of(file, name))
    [said] = [problem for problem in load(str(tmp_path)).problems if name in problem.text]
    assert said.text.endswith(f"{name} is not supported by lava and has no effect: {BECAUSE[name]}")
    assert not said.note
