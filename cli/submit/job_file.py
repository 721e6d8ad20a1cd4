"""Submissions from files: ``bsub -json FILE`` and ``-yaml FILE`` (option names, perhaps under categories), -jsdl, -pack.

Rule: the command line wins over the file, and the file over the script.
"""

from __future__ import annotations

import sys

from cli.client.context import Context, Fail
from proto.options import OPTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.client.frames import Json
    from cli.client.options import Options, Table

LARGEST, LARGEST_PACK = 1 << 20, 64 << 20
KINDS = ("json", "yaml", "jsdl", "jsdl_strict")
NAMES = {key: option.name for option in OPTIONS for key in option.json.split()}
"""What keys of job files are called beside the options' own names: as IBM's examples have them, else in their manner."""
PACK_REFUSES = frozenset(("pack", "I", "Ip", "Is", "IX", "XF", "K"))


def read_text(context: Context, name: str, stdin: bool = False, most: int = LARGEST) -> str:
    """A text file of at most so many characters; with ``stdin`` standard input, and ``name`` is for errors alone."""
    try:
        with open(context.stdin if stdin else context.path(name), encoding="utf-8", closefd=not stdin) as file:
            text = file.read(most + 1)
    except OSError as error:
        raise Fail(f"{name}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Fail(f"{name}: not a text in UTF-8") from None
    if len(text) > most:
        raise Fail(f"{name}: larger than {most} characters")
    return text


def read_job_file(context: Context, options: Options, table: Table) -> tuple[Options, str]:
    """-> (the options that the file of -json, -yaml or -jsdl gives, its command); takes that option away from ``options``."""
    kinds = [kind for kind in KINDS if kind in options]
    if len(kinds) > 1:
        raise Fail(f"-{kinds[0]} and -{kinds[1]} cannot be given together")
    kind = kinds[0]
    name = str(options.pop(kind))
    text = read_text(context, name)
    if kind.startswith("jsdl"):
        from cli.submit.jsdl import read_jsdl

        values = read_jsdl(name, text, strict=kind == "jsdl_strict")
    else:
        values = _json(name, text) if kind == "json" else _yaml(name, text)
    command = values.pop("command", None)
    if not isinstance(command, str | None):
        raise Fail(f"{name}: command: it is one line of text")
    return _options(name, values, table), command or ""


def _json(name: str, text: str) -> dict[str, Json]:
    import json

    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Fail(f"{name}: no JSON: {error}") from None
    if not isinstance(value, dict):
        raise Fail(f"{name}: a job file is one object of options")
    return _flat(value)


def _flat(value: dict[str, Json]) -> dict[str, Json]:
    """Categories (io, limit, resource …) only group the options."""
    found: dict[str, Json] = {}
    for key, item in value.items():
        if isinstance(item, dict):
            found.update(_flat(item))
        else:
            found[str(key)] = item
    return found


def _yaml(name: str, text: str) -> dict[str, Json]:
    if sys.flags.no_site:
        # Commands start without site-packages; the few that read YAML need them.
        import site

        site.main()
    from cli.submit.yaml_text import read_yaml

    documents = read_yaml(name, text)
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise Fail(f"{name}: a job file is one mapping of options")
    return _flat(documents[0])


def _options(name: str, values: dict[str, Json], table: Table) -> Options:
    found: Options = {}
    for key, value in values.items():
        option = key.lstrip("-")
        option = NAMES.get(option, option)
        if option not in table.valued:
            raise Fail(f"{name}: {key}: illegal option")
        if not table.valued[option]:
            if value in (None, True, "", "yes", "y", "Y", "true"):
                table.keep(found, option, True)
            elif value not in (False, "no", "n", "N", "false"):
                raise Fail(f"{name}: {key}: it takes no value")
            continue
        if isinstance(value, list) and option not in table.repeated:
            raise Fail(f"{name}: {key}: it takes one value")
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, bool | list | dict):
                raise Fail(f"{name}: {key}: it takes a text or a number")
            if item is not None:
                table.keep(found, option, str(item))
    return found


def pack_lines(context: Context, name: str, table: Table) -> list[tuple[int, list[str]]]:
    """The number and the words of each line of a -pack file that is a submission."""
    from cli.client.options import read_command_options
    from cli.submit.directives import words_of

    found = []
    for number, line in enumerate(read_text(context, name, most=LARGEST_PACK).splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        try:
            words = words_of(text)
        except ValueError:
            raise Fail(f"{name}: line {number}: a quote is not closed") from None
        if words[:1] == ["bsub"]:
            words = words[1:]
        try:
            given, _ = read_command_options(table, words)
        except Fail:
            given = {}  # the line is refused by itself
        if not PACK_REFUSES.isdisjoint(given):
            raise Fail(f"{name}: line {number}: -pack, -I, -Ip, -Is and -K cannot be used in a pack file")
        found.append((number, words))
    return found
