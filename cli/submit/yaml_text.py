"""YAML from strangers: plain data only, of bounded size, depth and repetition; whatever is wrong is one line.

Rule: a value means what it looks like: ``22:22``, ``2026-11-20``, ``on`` and ``no`` are texts, a key given twice is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from cli.client.context import Fail
from cli.client.texts import is_text, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from yaml import Node, SafeLoader

    from cli.client.frames import Json

    Fill = Callable[[Node, SafeLoader], Node | None]

LARGEST = 1 << 18
MOST_NODES = 50_000
DEEPEST = 40
MOST_DOCUMENTS = 1_000
_OWN = ("timestamp", "int", "float", "bool")


def read_yaml(name: str, text: str, fill: Fill | None = None) -> list[Json]:
    """The documents of a file.

    ``fill``: changes the node of each before values are made of it, given PyYAML's resolver of plain scalars; None: drop it.
    """
    try:
        import yaml
    except ImportError:
        raise Fail(f"{name}: job files need PyYAML, which is not installed here") from None
    if len(text) > LARGEST:
        raise Fail(f"{name}: larger than {LARGEST} characters")
    try:
        _check_depth(name, yaml.parse(text, yaml.SafeLoader))
        found: list[Json] = [document for document in _documents(_loader(yaml)(text), fill) if document is not None]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}: " if mark is not None else ""
        raise Fail(f"{name}: {where}{_line(error.problem or error.context or 'no YAML')}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise Fail(f"{name}: no YAML: {_line(str(error))}") from None
    except (AttributeError, LookupError, TypeError, OverflowError):
        # PyYAML's own constructors raise what their code runs into
        raise Fail(f"{name}: a value is not of the kind that its tag (!!) names") from None
    if len(found) > MOST_DOCUMENTS:
        raise Fail(f"{name}: more than {MOST_DOCUMENTS} documents")
    left = MOST_NODES
    for document in found:
        left = _count(name, document, left)
    return found


def _documents(loader: SafeLoader, fill: Fill | None) -> Iterator[Json]:
    try:
        while loader.check_node():
            node = loader.get_node()
            if fill is not None:
                node = fill(node, loader)
            if node is not None:
                yield loader.construct_document(node)
    finally:
        loader.dispose()


def _line(text: str) -> str:
    return " ".join(text.split())[:200]


def _check_depth(name: str, events: Iterator[Any]) -> None:
    """Before anything is built: a text may nest deeper than a parser of it can go."""
    depth = 0
    for event in events:
        kind = type(event).__name__
        if kind in ("MappingStartEvent", "SequenceStartEvent"):
            depth += 1
            if depth > DEEPEST:
                raise Fail(f"{name}: line {event.start_mark.line + 1}: nested deeper than {DEEPEST} levels")
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            depth -= 1


def _count(name: str, value: Json, left: int) -> int:
    """What is left of the number of values after this one; those behind an alias count again each time."""
    to_do = [value]
    while to_do:
        one = to_do.pop()
        if isinstance(one, str) and not is_text(one):
            raise Fail(f"{name}: {_line(printable(one))}: not a text in UTF-8")
        left -= 1
        if left < 0:
            raise Fail(f"{name}: more than {MOST_NODES} values")
        if isinstance(one, dict):
            to_do += [*one, *one.values()]
            left += len(one)
        elif isinstance(one, list):
            to_do += one
    return left


def _loader(yaml: Any) -> Any:
    """PyYAML's safe loader without dates, numbers in base 60, ``on`` for true, and silent doubles."""

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        pass

    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in found if tag.rpartition(":")[2] not in _OWN]
        for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"), list("tTfF"))
    Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"[-+]?[0-9]+\Z"), list("-+0123456789"))
    Loader.add_implicit_resolver(
        "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9]+\.[0-9]*(?:[eE][-+]?[0-9]+)?\Z"), list("-+0123456789")
    )

    def mapping(loader: Any, node: Any) -> dict[Any, Any]:
        loader.flatten_mapping(node)
        found: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = loader.construct_object(key_node)
            if not isinstance(key, str | int | float | bool) or key in found:
                why = f"{_line(str(key))} is given twice" if isinstance(key, str) else "a key is no plain word"
                raise yaml.constructor.ConstructorError(None, None, why, key_node.start_mark)
            found[key] = loader.construct_object(value_node, deep=True)
        return found

    Loader.add_constructor("tag:yaml.org,2002:map", mapping)
    Loader.add_constructor("tag:yaml.org,2002:int", _int)
    return Loader


def _int(loader: Any, node: Any) -> int | str:
    text = loader.construct_scalar(node)
    return int(text) if len(text) < 20 else str(text)
