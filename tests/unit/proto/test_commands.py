"""The registry of commands: what the rows name is there."""

from __future__ import annotations

from importlib import import_module

import pytest

from proto.commands import COMMANDS, INSTALLED, NATIVE, OF_LAVA, SUBCOMMANDS, Subcommand


@pytest.mark.parametrize("row", SUBCOMMANDS.values(), ids=lambda row: row.name)
def test_every_subcommand_has_a_main_and_says_whose_it_is(row: Subcommand) -> None:
    assert callable(import_module(row.module).main)
    assert row.of_lavad == row.module.startswith("lavad.")
    assert row.help.rstrip(".") == row.help != ""


def test_what_the_master_renders_of_lava_is_one_of_its_subcommands() -> None:
    rendered = {row.name for row in SUBCOMMANDS.values() if row.module == "cli.listing"}
    assert rendered | {"status"} == set(OF_LAVA)
    assert not set(OF_LAVA) & set(INSTALLED)


def test_what_only_shows_is_native() -> None:
    assert {name for name in INSTALLED if COMMANDS[name].module == "cli.listing"} < set(NATIVE)
    assert set(NATIVE) & {"bsub", "lava"} == {"bsub"}
