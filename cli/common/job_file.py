"""Submissions from files: ``bsub -json FILE`` and ``-yaml FILE`` (option names, perhaps under categories), ``-pack FILE``.

Rule: the command line wins over the file, and the file over the script.
"""

from __future__ import annotations

from cli.common.fail import Fail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cli.common.context import Context
    from cli.common.options import Options, Table

LARGEST = 1 << 20
PACK_REFUSES = frozenset(("-pack", "-I", "-Ip", "-Is", "-K"))


def read_text(context: Context, name: str) -> str:
    """A small text file."""
    try:
        with open(context.path(name), encoding="utf-8") as file:
            text = file.read(LARGEST + 1)
    except OSError as error:
        raise Fail(f"{name}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Fail(f"{name}: not a text in UTF-8") from None
    if len(text) > LARGEST:
        raise Fail(f"{name}: larger than {LARGEST} characters")
    return text


def read_job_file(context: Context, options: Options, table: Table) -> tuple[Options, str]:
    """-> (the options that the file of -json or -yaml gives, its command); takes these two away from ``options``."""
    found: Options = {}
    command = ""
    for kind in ("json", "yaml"):
        name = options.pop(kind, None)
        if isinstance(name, str):
            text = read_text(context, name)
            values = _json(name, text) if kind == "json" else _yaml(name, text)
            command = str(values.pop("command", "") or command)
            found.update(_options(name, values, table))
    return found, command


def _json(name: str, text: str) -> dict[str, Any]:
    import json

    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Fail(f"{name}: no JSON: {error}") from None
    if not isinstance(value, dict):
        raise Fail(f"{name}: a job file is one object of options")
    return _flat(value)


def _flat(value: dict[str, Any]) -> dict[str, Any]:
    """Categories (io, limit, resource …) only group the options."""
    found: dict[str, Any] = {}
    for key, item in value.items():
        if isinstance(item, dict):
            found.update(_flat(item))
        else:
            found[str(key)] = item
    return found


def _yaml(name: str, text: str) -> dict[str, Any]:
    """The part of YAML that job files use: ``key: value`` lines, indented under categories, and lists of ``- value``."""
    found: dict[str, Any] = {}
    last = ""
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if not bare or bare.startswith("#") or bare in ("---", "..."):
            continue
        if bare.startswith("- ") and last:
            known = found.get(last)
            found[last] = [*(known if isinstance(known, list) else []), _scalar(bare[2:])]
            continue
        key, colon, value = bare.partition(":")
        if not colon or (value and not value[0].isspace()):
            raise Fail(f"{name}: line {number}: no key with a value")
        last = key.strip().strip("'\"")
        if value.strip():
            found[last] = _scalar(value)
    return found


def _scalar(text: str) -> Any:
    text = text.strip()
    if text[:1] in ("'", '"') and text[-1:] == text[0] and len(text) > 1:
        return text[1:-1]
    text = text.partition(" #")[0].strip()
    return {"true": True, "yes": True, "false": False, "no": False}.get(text.lower(), text)


def _options(name: str, values: dict[str, Any], table: Table) -> Options:
    found: Options = {}
    for key, value in values.items():
        option = key.lstrip("-")
        if option not in table.valued:
            raise Fail(f"{name}: {key}: illegal option")
        if value is None or value is False:
            continue
        if not table.valued[option]:
            table.keep(found, option, True)
            continue
        for item in value if isinstance(value, list) else [value]:
            table.keep(found, option, str(item))
    return found


def pack_lines(context: Context, name: str) -> list[list[str]]:
    """The words of each submission of a -pack file."""
    from cli.common.directives import words_of

    found = []
    for number, line in enumerate(read_text(context, name).splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        try:
            words = words_of(text)
        except ValueError:
            raise Fail(f"{name}: line {number}: a quote is not closed") from None
        if words[:1] == ["bsub"]:
            words = words[1:]
        if not PACK_REFUSES.isdisjoint(words):
            raise Fail(f"{name}: line {number}: -pack, -I, -Ip, -Is and -K cannot be used in a pack file")
        found.append(words)
    return found
