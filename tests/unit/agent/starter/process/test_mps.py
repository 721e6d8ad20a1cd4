"""The MPS daemons of a part where something goes wrong; a script stands in for NVIDIA's program."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from agent.starter.process import mps
from agent.starter.process.spec import Spec, Template
from agent.starter.system.stdio import Refused


@pytest.fixture
def daemons(tmp_path: Path) -> mps.Mps:
    program = tmp_path / mps.PROGRAM
    program.write_text('#!/bin/sh\necho "$@" >>"$HEARD"\n')
    program.chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "HEARD": f"{tmp_path}/heard"}
    spec = Spec(Template({"env": env}), {"uid": "u", "mps": [{"folder": f"{tmp_path}/m0", "gpus": "GPU-0"}]})
    return mps.Mps(spec, "hosta")


def test_a_job_that_has_removed_the_folder_ends_as_any_other(daemons: mps.Mps, tmp_path: Path) -> None:
    daemons.start()
    shutil.rmtree(tmp_path / "m0")
    daemons.quit()
    daemons.close()
    assert (tmp_path / "heard").read_text() == "-d\n"


def test_one_that_cannot_be_started_for_lack_of_files_is_refused(daemons: mps.Mps, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(_: int) -> tuple[int, int]:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "pipe2", none_left)
    with pytest.raises(Refused, match="hosta cannot run nvidia-cuda-mps-control"):
        daemons.start()
