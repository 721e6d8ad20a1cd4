"""The help of options: each has its line, in words that fit, and --help prints it."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from cli.client.context import Context, Fail
from cli.client.options import Table
from cli.jobs import run
from cli.live import jupyter
from cli.submit.submit_options import bmod_table, bsub_table
from proto.commands import COMMANDS, INSTALLED, OF_LAVA
from proto.help import others, submitting
from proto.help.lookup import rows, shown
from proto.help.usages import BADMIN, LSADMIN
from proto.options import LEFT_OUT, OPTIONS
from tests.unit.cli.caller import Caller

ALL = (*INSTALLED, *OF_LAVA, "lava run", "lava jupyter")


@pytest.mark.parametrize("command", ALL)
def test_each_option_has_its_line(command: str) -> None:
    found = rows(command)
    assert all(words and not words.endswith(".") and len(words) < 120 for _, _, words in found)
    row = COMMANDS.get(command)
    if row is not None and command not in others.OWN:
        refused = row.refused.split()
        taken = [name for name in f"{row.flags} {row.valued}".split() if name not in refused]
        assert command in ("bsub", "bmod") or [name for name, _, _ in found] == taken
        assert [name for name, value, _ in found if not value and name in row.valued.split()] == []


@pytest.mark.parametrize(("command", "table"), [("bsub", bsub_table()), ("bmod", bmod_table())])
def test_a_value_is_named_where_there_is_one(command: str, table: Table) -> None:
    valued = table.valued
    assert {name for name, value, _ in rows(command) if bool(value) != valued[name]} == set()


def test_no_line_is_of_an_option_that_is_not_there() -> None:
    names = {line.split()[0] for line in submitting.BSUB.splitlines()}
    assert names == {option.name for option in OPTIONS if not option.unsupported and not option.same_as and option.only != "bmod"}
    for command, block in others.COMMANDS.items():
        row = COMMANDS[command]
        taken = {*f"{row.flags} {row.valued}".split()} - {*row.refused.split()}
        assert {line.split()[0] for line in block.splitlines()} <= taken, command


@pytest.mark.parametrize("command", ALL)
def test_the_lines_fit_on_a_terminal(command: str) -> None:
    text = shown(command if command not in OF_LAVA else f"lava {command}")
    assert text.startswith(f"Usage: {'lava ' if command in OF_LAVA else ''}{command}")
    assert max(map(len, text.splitlines()[2:])) <= 100


@pytest.mark.parametrize("command", [name for name in INSTALLED if name not in ("lava", "mpirun.lsf", "blaunch")])
def test_help_with_two_dashes_is_the_long_one_and_does_nothing_else(command: str, tmp_path: Path) -> None:
    ran = Caller(tmp_path).run(command, "--help")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == {"badmin": f"{BADMIN}\n", "lsadmin": f"{LSADMIN}\n"}.get(command, shown(command))


@pytest.mark.parametrize("words", ["badmin hclose -h", "badmin mbdrestart --help", "lsadmin reconfig -h", "badmin qinact -help"])
def test_help_of_a_subcommand_changes_nothing(words: str, tmp_path: Path) -> None:
    ran = Caller(tmp_path).run(*words.split())
    assert (ran.status, ran.out) == (0, "")
    assert ran.err.startswith("Usage: ")


@pytest.mark.parametrize(("command", "module"), [("lava run", run), ("lava jupyter", jupyter)])
def test_what_a_subcommand_refuses_is_not_in_its_help(command: str, module: ModuleType) -> None:
    left_out = {name for name, _, _ in rows("bsub")} - {name for name, _, _ in rows(command)}
    assert left_out == {*LEFT_OUT[command]}
    for name in left_out:
        words = [f"-{name}", "1"] if bsub_table().valued[name] else [f"-{name}"]
        with pytest.raises(Fail, match=f"^{command}: -.* cannot be given here"):
            module.run(Context([*words, "--"], "/", {}))
