"""options.md: every command with its options, as ``--help`` has them; those that lava refuses, with the reason."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from cli import completion, lava, manpages, secret, web
from cli.client.options import why_not
from cli.live import top, watch
from cli.terminal.targets import USAGE as BLAUNCH
from docs.generate.markdown import cell, code, sentence, table
from lavad.database import main as database
from lavad.queries.explain import main as explain
from lavad.replay import main as whatif
from lavad.replay import repeat
from proto.commands import COMMANDS, INSTALLED, OF_LAVA
from proto.help.lookup import NOTHING, RESETS, rows
from proto.help.usages import BADMIN, LAVA, LSADMIN
from proto.options import OPTIONS

_HEAD = """\
# Commands and options

Each command with its options, as `COMMAND --help` has them. `-h` prints LSF's usage on standard error, `-V` the version. What the
commands are for: [commands](../commands.md).
"""
_USAGES = {"badmin": BADMIN, "lsadmin": LSADMIN, "blaunch": BLAUNCH}
_PLAIN = {
    "top": top.USAGE,
    "watch": watch.USAGE,
    "secret": secret.USAGE,
    "completion": completion.USAGE,
    "man": manpages.USAGE,
}
"""Subcommands of lava that have no options to speak of."""


def page() -> str:
    return "".join([_HEAD, *map(_command, (name for name in INSTALLED if name != "lava")), *_lava()])


def _command(name: str) -> str:
    row = COMMANDS[name]
    parts = [f"\n## {name}\n\n{sentence(row.help)}\n"]
    if name in _USAGES:
        parts.append(f"\n```text\n{_USAGES[name]}\n```\n")
    parts += [_table(name), _left_out(name)]
    if name == "bmod":
        parts.append(f"\n{RESETS}\n")
    return "".join(parts)


def _table(name: str, dash: str = "-") -> str:
    found = [(option, value, words) for option, value, words in rows(name) if words != NOTHING]
    text = table(
        ("Option", ""),
        ((code(f"{'' if option[0] == '-' else dash}{option} {value}".rstrip()), cell(words)) for option, value, words in found),
    )
    without = [f"`-{option}`" for option, _, words in rows(name) if words == NOTHING]
    return (f"\n{text}" if text else "") + (f"\nTaken as in LSF, without effect: {', '.join(without)}.\n" if without else "")


def _left_out(name: str) -> str:
    """The options of LSF that lava knows and refuses, by their reasons."""
    if name in ("bsub", "bmod"):
        why = {option.name: option.unsupported for option in OPTIONS if option.unsupported and option.only in ("", name)}
    else:
        why = {option: why_not(name, option) for option in COMMANDS[name].refused.split()}
    said = []
    for reason in dict.fromkeys(why.values()):
        names = " ".join(f"`-{option}`" for option, one in why.items() if one == reason)
        said.append(f"{names} ({reason})" if reason else names)
    return f"\nRefused: {'; '.join(said)}.\n" if said else ""


def _lava() -> Iterator[str]:
    yield f"\n## lava\n\n{sentence(COMMANDS['lava'].help)}\n"
    parsers = {
        **_children(lava.parser()),
        "web": web.parser("web"),
        "token": web.parser("token"),
        "whatif": whatif.parser(),
        "replay": repeat.parser(),
        "explain": explain.parser(),
    }
    for name, about in LAVA.items():
        yield f"\n### lava {name}\n\n{sentence(about)}\n"
        if name in OF_LAVA:
            yield _table(name, "--")
        elif name == "run":
            yield "\n`lava run [OPTION ...] FILE ... [OPTION ...]`: bsub's options, `--dry-run` to see what the files mean and "
            yield "`--dry-run=server` also whether the master would take them, `--set NAME=VALUE` for their variables.\n"
        elif name == "jupyter":
            yield "\n`lava jupyter [OPTION ...] [-- WORDS]`: bsub's options, and words for `jupyter lab`.\n"
        elif name in _PLAIN:
            yield f"\n```text\n{_PLAIN[name][7:]}\n```\n"
        elif name == "db":
            for verb, parser in _children(database.parser()).items():
                yield f"\n`lava db {verb}`: {cell(parser.description or '')}.\n{_arguments(parser)}"
        else:
            yield _arguments(parsers[name])


def _children(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parsers of its subcommands."""
    found = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return dict(found.choices)


def _arguments(parser: argparse.ArgumentParser) -> str:
    lines = []
    for action in parser._actions:
        if action.help == argparse.SUPPRESS or isinstance(action, argparse._HelpAction):
            continue
        value = "" if action.nargs == 0 else str(action.metavar or action.dest.upper())
        many = "[ ...]" if action.nargs in ("+", "*") else ""
        name = action.option_strings[-1] if action.option_strings else ""
        lines.append((code(f"{name} {value}{many}".strip()), cell(action.help or "")))
    text = table(("Option", ""), lines)
    return f"\n{text}" if text else ""
