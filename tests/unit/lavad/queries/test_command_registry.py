"""The registry of commands against what reads it: each command that shows has its renderer, and both know the same options."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path

import pytest

from cli.client.options import read_letters, table_of
from lavad.core.lang.asks import Refused
from lavad.queries.frame.request import Options
from lavad.queries.render import RENDERERS
from proto.commands import COMMANDS, INSTALLED

SHOWS = sorted(name for name, row in COMMANDS.items() if row.shows)
DOCS = Path(__file__).parents[4] / "docs" / "commands.md"


def test_what_shows_has_a_renderer_and_nothing_else_has() -> None:
    assert sorted(RENDERERS) == SHOWS


def test_every_command_is_in_the_documentation() -> None:
    named = DOCS.read_text()
    assert [name for name in INSTALLED if f"`{name}`" not in named] == []


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_the_options_of_a_row_do_not_contradict_each_other(command: str) -> None:
    row = COMMANDS[command]
    flags, valued = row.flags.split(), row.valued.split()
    assert len({*flags, *valued}) == len(flags) + len(valued)
    assert {*row.refused.split(), *row.here.split(), *row.loose.split()} <= {*flags, *valued}
    assert callable(importlib.import_module(row.module).main)
    assert row.help
    assert row.help[0].islower()


@pytest.mark.parametrize("command", SHOWS)
def test_the_master_takes_what_the_command_sends(command: str) -> None:
    row, table = COMMANDS[command], table_of(command)
    for name, valued in table.valued.items():
        if name in {"h", "help", "-help", "V", *row.refused.split(), *row.here.split()}:
            continue
        sent, _ = read_letters(table, [f"-{name}", "x"] if valued else [f"-{name}"])
        assert name in Options(row, sent)
    for name in row.refused.split():
        with pytest.raises(Refused, match=f"option -{name} is not supported by lava"):
            Options(row, {name: "x"})


@pytest.mark.parametrize("command", SHOWS)
def test_a_renderer_looks_at_no_option_that_its_command_has_not(command: str) -> None:
    """Literal names in the renderer's own function: ``"l" in options``, ``options.text("u")`` and the like."""
    row = COMMANDS[command]
    flags, valued = row.options_sent()
    asked = set()
    for node in ast.walk(ast.parse(inspect.getsource(RENDERERS[command]))):
        match node:
            case ast.Compare(left=ast.Constant(value=name), comparators=[ast.Name(id="options")]):
                asked.add(name)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="options")), args=words):
                asked |= {word.value for word in words if isinstance(word, ast.Constant)}
    assert asked <= {*flags, *valued, *row.loose.split()}
