"""The pages for those who come from elsewhere: each command, option, parameter and variable of lava in them is one."""

from __future__ import annotations

import re
import shlex
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import pytest

from cli import badmin
from cli.client.context import Fail
from cli.client.options import Table, read_command_options, read_letters, table_of
from cli.submit.submit_options import bmod_table, bsub_table, propagated
from cli.terminal import targets
from config.model.queue import QueueConfig
from config.model.site_params import SiteParams
from config.read.limits import LIMIT
from config.read.params import LSB_PARAMS, LSF_CONF
from config.values.parameters import APPLICATION, QUEUE
from config.values.values import Scope
from lavad.core.decide.base.resolve import NeedsLookup
from lavad.core.decide.modify.modify import modify
from lavad.core.decide.submit.submit import Given, submit
from lavad.core.job.spec import JobText
from lavad.core.lang.asks import Caller, Modify, Refused, Submit
from lavad.core.site.conf import Conf, Params, ResourceConf, UnitConf
from proto.commands import COMMANDS, INSTALLED
from proto.help.usages import BADMIN, LAVA
from proto.options import BY_NAME
from tests.support.worlds.world import World

ROOT = Path(__file__).parents[2]
PAGES = ("from-slurm", "from-lsf", "from-kubernetes")
FOREIGN = ("Slurm", "sbatch", "Kubernetes", "LSF", "Kind")
"""Tables whose first column is of another system."""
ANN = Caller(user="ann", uid=1000, host="host1")
NOON = datetime(2026, 11, 20, 12, 0)
_SPAN = re.compile(r"`([^`]+)`")
_NAME = re.compile(r"\b(?:LSB|LSF|LS|LAVA)_[A-Z0-9_]+\b|\b[A-Z]{4,}(?:_[A-Z]+)*(?==Y|\b)")
_OURS_IN_FRAMEWORKS = ("RANK", "WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "CUDA_VISIBLE_DEVICES")


def cells(page: str) -> list[str]:
    """What the page says of lava in its tables: each cell but the first of a row, and paragraphs that are no table."""
    found: list[str] = []
    foreign = False
    inside = False
    text = re.sub(r"^```.*?^```", "", (ROOT / "docs" / "begin" / f"{page}.md").read_text(), flags=re.MULTILINE | re.DOTALL)
    for line in text.splitlines():
        if not line.startswith("|"):
            inside = False
            found.append(line)
            continue
        row = [cell.strip() for cell in line.strip("|").split(" | ")]
        if not inside:
            inside, foreign = True, row[0] in FOREIGN
        elif not line.startswith("|-"):
            found += row[1:] if foreign else row
    return found


def spans(page: str) -> list[str]:
    return [span for cell in cells(page) for span in _SPAN.findall(cell)]


def world() -> World:
    """A site that has what the pages name."""
    conf = Conf(
        params=Params(max_user_priority=100, units=(UnitConf("rack1", "rack"),), compute_unit_types=("rack",)),
        queues=(QueueConfig(name="normal", exclusive=True), QueueConfig(name="gpu")),
        resources=(ResourceConf("big"), ResourceConf("lic", "numeric", consumable=True)),
    )
    site = World(conf)
    site.hosts("host1", "host2", "n1", "n2", slots=8)
    site.submit(user="ann")
    return site


def read(span: str) -> None:
    """What is typed is read as the commands, and where it is a submission the master, read it. Raises Fail, Refused."""
    words = shlex.split(span.replace("…", ""))
    command, words = words[0], words[1:]
    if command.startswith("-") and not words:
        assert command[1:] in bsub_table().valued, span
    elif command.startswith("-"):
        _submit("bsub", [*shlex.split(span), "cmd"])
    elif command in ("bsub", "bmod"):
        _submit(command, [word for word in words if word != "<"])
    elif command == "lava":
        assert not words or words[0] in LAVA, span
        if words[:1] and words[0] in COMMANDS:
            read_letters(table_of(words[0]), [word.removeprefix("-") if word[:2] == "--" else word for word in words[1:]])
    elif command == "badmin":
        _administer(words)
    elif command == "blaunch":
        targets.read_words(words)
    else:
        read_letters(table_of(command), words)


def _submit(command: str, words: list[str]) -> None:
    options, rest = read_command_options(bsub_table() if command == "bsub" else bmod_table(), words)
    if "env" in options:
        propagated({}, str(options["env"]))
    sent = {name: value for name, value in options.items() if name in BY_NAME and BY_NAME[name].sent}
    site = world()
    with suppress(NeedsLookup):  # the condition has been read; its jobs are looked for in the store
        if command == "bsub":
            submit(site.cluster, Given(Submit(command="cmd", options=sent), ANN, site.now, NOON))
        elif rest:
            modify(site.cluster, Modify(job="1", options=sent), JobText("cmd"), ANN, site.now, NOON)


def _administer(words: list[str]) -> None:
    if words:
        name = words[0]
        assert name in badmin.COMMANDS.keys() - badmin.WHY_NOT.keys(), words
        row = "".join(line for line in BADMIN.splitlines() if re.search(rf"^    (.*\| )?{name}\b", line))
        flags = " ".join(re.findall(r"(?<![\w-])-(\S+?)(?=[\s\]])", row.replace("-C comment", "")))
        read_letters(Table(name, flags, "C" if "-C" in row else ""), words[1:])


@pytest.mark.parametrize("page", PAGES)
def test_each_command_and_option_is_one(page: str) -> None:
    commands = (*INSTALLED, "lava")
    tried = [span for span in spans(page) if re.match(r"-\w", span) or span.split()[0] in commands]
    assert len(tried) > 9
    wrong = []
    for span in tried:
        try:
            read(span)
        except (Fail, Refused, AssertionError) as error:
            if "reservation" not in str(error.args):  # there is none in the world of this test
                wrong.append(f"{span}: {error.args}")
    assert wrong == []


@pytest.mark.parametrize("page", PAGES)
def test_each_parameter_and_variable_is_one(page: str) -> None:
    known = {
        *LSB_PARAMS,
        *LSF_CONF,
        *QUEUE,
        *APPLICATION,
        *LIMIT,
        "MEM",
        "RESOURCE",
        "BSUB",
        "SBATCH",
        "IMAGE",
        *_OURS_IN_FRAMEWORKS,
    }
    known |= {name.upper() for name in SiteParams.__struct_fields__}
    code = "".join(path.read_text() for room in ("agent", "cli") for path in (ROOT / room).rglob("*.py"))
    states = {"PEND", "PSUSP", "USUSP", "SSUSP", "DONE", "EXIT", "UNKWN"}
    named = {name for cell in cells(page) for name in _NAME.findall(cell)}
    assert {
        name for name in named if name not in known | states and f'"{name}"' not in code and name not in code.split()
    } == set()


def test_lines_of_files_are_read() -> None:
    lines = [span for page in PAGES for span in spans(page) if " = " in span]
    for line in lines:
        name, _, value = line.partition(" = ")
        QUEUE[name](value, Scope())
    assert lines


def test_fields_of_manifests_are_read() -> None:
    text = (ROOT / "docs" / "begin" / "from-kubernetes.md").read_text()
    rows = [line.split(" | ") for line in text.partition("| Kind |")[2].splitlines() if line.startswith("|")]
    fields = {field for row in rows for field in _SPAN.findall(row[1] if len(row) > 1 else "")}
    source = "".join(path.read_text() for path in (ROOT / "cli" / "jobs").glob("*.py"))
    assert {field for field in fields if f'"{field}"' not in source} == set()
    assert {"slotsPerWorker", "minAvailable"} <= fields


def test_what_is_said_not_to_be_there_is_not() -> None:
    table = (ROOT / "docs" / "begin" / "from-lsf.md").read_text().partition("| LSF | lava |")[2].partition("\n\n")[0]
    names = re.findall(
        r"\b(?:b|ls|ch)[a-z]*\b", " ".join(row.split("|")[1] for row in table.splitlines() if row.startswith("| "))
    )
    assert len(names) > 10
    assert set(names) & set(COMMANDS) == set()
