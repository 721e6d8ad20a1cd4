"""The page of parameters: all that are read, with their defaults, and texts of no others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from config.help import batch, queues, sections
from config.model.site_params import SiteParams
from config.read.load import load
from config.read.params import LSB_PARAMS, LSF_CONF
from config.values import without_effect
from config.values.parameters import APPLICATION, QUEUE
from docs.generate import parameters

OPTIONAL = {"lsf.conf": LSF_CONF, "lsb.params": LSB_PARAMS, "lsb.queues": QUEUE, "lsb.applications": APPLICATION}


def rows(section: str) -> dict[str, list[str]]:
    """Name to the other cells of its row."""
    text = parameters.page().partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    lines = [re.split(r" (?<!\\)\| ", line.strip("| ")) for line in text.splitlines() if line.startswith("| `")]
    return {name: line[1:] for line in lines for name in re.findall(r"`(\w+)`", line[0])}


def test_each_parameter_that_is_read_has_its_row() -> None:
    for file, known in OPTIONAL.items():
        found = rows(file) | (rows("lsf.conf: lava's own") if file == "lsf.conf" else {})
        assert known.keys() - found.keys() == set()
    assert rows("lsb.params")["CLEAN_PERIOD"][:2] == ["seconds", "3600"]
    assert rows("lsb.params")["DETECT_IDLE_JOB_AFTER"][:2] == ["[hours:]minutes", "20"]
    assert rows("lsb.queues")["GANG"][:2] == ["Y or N", "Y"]
    assert rows("lsb.queues")["HOST_TIMEOUT"][-1].startswith("no effect: a host is silent for all queues at once")
    assert rows("lsf.conf: lava's own")["LAVA_LEASE_MARGIN"][1:2] == ["600, 40"]


@pytest.mark.parametrize(
    ("block", "known", "file"),
    [
        (batch.LSF_CONF, LSF_CONF, "lsf.conf"),
        (batch.LSB_PARAMS, LSB_PARAMS, "lsb.params"),
        (queues.QUEUES, QUEUE, "lsb.queues"),
        (queues.APPLICATIONS, APPLICATION, "lsb.applications"),
    ],
)
def test_no_text_is_of_a_parameter_that_does_nothing(block: str, known: dict[str, object], file: str) -> None:
    idle = without_effect.NEEDLESS.get(file, frozenset()) | without_effect.MISSING.get(file, frozenset())
    assert {line.split()[0] for line in block.splitlines()} <= known.keys() - idle


def test_the_defaults_of_lavas_own_are_those_of_the_code() -> None:
    """Those that are numbers: others are said in words."""
    defaults = SiteParams()
    for name, (_, shown, *_rest) in rows("lsf.conf: lava's own").items():
        value = getattr(defaults, name.lower())
        if re.fullmatch(r"\d+", shown):
            assert float(shown) == value or name.startswith("LAVA_WEB"), name


@pytest.mark.parametrize(("file", "section"), sections.SECTIONS)
def test_the_columns_of_a_section_are_read(file: str, section: str, tmp_path: Path) -> None:
    lines = sections.SECTIONS[file, section].splitlines()
    names = [name for line in lines for name in re.split(" {2,}", line)[0].split(", ")]
    columns = [name for name in names if "mem …" not in name]
    body = (
        [f"{name} = 1" for name in columns]
        if section in ("Limit", "Parameters")
        else [" ".join(columns), " ".join("1" for _ in columns)]
    )
    text = "\n".join([f"Begin {section}", *body, f"End {section}"])
    (tmp_path / "lsf.conf").touch()
    (tmp_path / file.replace("NAME", "lava")).write_text(text)
    said = [problem.text for problem in load(str(tmp_path)).problems]
    assert [text for text in said if "unknown parameter" in text or "is not supported and has no effect" in text] == []
