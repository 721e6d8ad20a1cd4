"""Requirements of queues, profiles and pools that do not read are told with file, line, section and parameter."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from config.model.problems import line
from config.read.load import load
from lavad.configure.__main__ import main
from lavad.configure.requirements import why_not


def _wrong(folder: Path, file: str, text: str) -> list[str]:
    (folder / "lsf.conf").write_text("")
    (folder / file).write_text(text)
    found = [line(problem) for problem in load(str(folder), grammar=why_not).problems if problem.fatal]
    return [said.removeprefix(f"{folder}/") for said in found]


@pytest.mark.parametrize("parameter", ["RES_REQ", "STOP_COND", "RESUME_COND"])
def test_one_that_does_not_read_is_told(tmp_path: Path, parameter: str) -> None:
    queues = [f"Begin Queue\nQUEUE_NAME = q{at}\n{parameter} = select[mem>100{end}\nEnd Queue\n" for at, end in enumerate("]\n")]
    (said,) = _wrong(tmp_path, "lsb.queues", "".join(queues))
    assert said == f"lsb.queues:7: error: queue q1: {parameter}: ] is missing: Bad resource requirement syntax"


def test_so_is_that_of_a_profile(tmp_path: Path) -> None:
    apps = [
        f"Begin Application\nNAME = {name}\nRES_REQ = rusage[mem={rest}\nEnd Application\n"
        for name, rest in (("a", ""), ("b", "5]"))
    ]
    (said,) = _wrong(tmp_path, "lsb.applications", "".join(apps))
    assert said.startswith("lsb.applications:3: error: application a: RES_REQ: ")


def test_so_is_that_of_a_guaranteed_pool(tmp_path: Path) -> None:
    begin = "Begin GuaranteedResourcePool\nNAME = p\nTYPE = slots\nDISTRIBUTION = ([a, 1])\n"
    pool = begin + "RES_SELECT = {}\nEnd GuaranteedResourcePool\n"
    classes = "Begin ServiceClass\nNAME = a\nGOALS = [GUARANTEE]\nEnd ServiceClass\n"
    (tmp_path / "lsb.serviceclasses").write_text(classes)
    (said,) = _wrong(tmp_path, "lsb.resources", pool.format("mem>"))
    assert said.startswith("lsb.resources:5: error: guaranteed resource pool p: RES_SELECT: ")
    assert _wrong(tmp_path, "lsb.resources", pool.format("mem>5")) == []


def test_what_lava_does_not_do_is_refused_in_a_queue_as_in_a_job() -> None:
    """It would ask for nothing."""
    assert why_not("span[gtile='!']") == "span[gtile] is not supported by lava"
    assert why_not("rusage[mem=(2 1):duration=(5 5)]").startswith(
        "Bad resource requirement: rusage[mem=(2 1)], a reservation in phases,"
    )
    assert why_not("select[mem>5] rusage[mem=5]") == ""


def _reported(folder: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    assert main([str(folder)]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_badmin_gets_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("lsf.conf", "lsf.cluster.lava", "lsb.queues"):
        (tmp_path / name).write_text("")
    assert _reported(tmp_path, capsys) == {"report": "No errors found.\n", "errors": False, "warnings": False}


def test_files_that_are_hardly_missing_on_purpose_are_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also one of another name, as of a cluster that lsf.shared does not name; nothing is asked for them."""
    (tmp_path / "lsf.shared").write_text("Begin Cluster\nClusterName\nnorth\nEnd Cluster\n")
    found = _reported(tmp_path, capsys)
    cluster, queues, last = str(found["report"]).splitlines()
    assert cluster.startswith(f"{tmp_path}/lsf.cluster.north: note: there is no such file: every host that the master can verify")
    assert queues == f"{tmp_path}/lsb.queues: note: there is no such file: the only queue is normal"
    assert (last, found["warnings"]) == ("No errors found.", False)
