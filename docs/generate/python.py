"""python.md: the public names of lava_client, from their docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from concurrent.futures import Future

import lava_client
from docs.generate.markdown import code
from lava_client.options import NAMES

_HEAD = """\
# Python: lava_client

Every public name of the package ([how to use it](../python.md)). `Job` and `CallFuture` are futures of `concurrent.futures`,
which `Cluster` and `Executor` make: what they have from there is not repeated. The word `async` stands in front of a coroutine.
"""


def page() -> str:
    parts = [_HEAD]
    for name in lava_client.__all__:
        parts += _class(name, getattr(lava_client, name))
    options = ", ".join(f"`{name}` (`-{option}`)" for name, option in NAMES.items())
    return "".join([*parts, f"\n## Options\n\nThose of bsub by plain names: {options}. Others by bsub's own names.\n"])


_OF_THE_PACKAGE = ("begin", "end", "abandon", "environ", "frame")
"""What only the package calls."""


def _class(name: str, kind: type) -> Iterator[str]:
    base = kind.__bases__[0]
    yield f"\n## {name}\n"
    if issubclass(kind, BaseException):
        yield f"\nA `{base.__name__}`.\n" if base.__module__.startswith("lava_client") else ""
    elif not issubclass(kind, Future):
        yield f"\n{code(f'{name}{_parameters(kind)}')}\n"
    yield f"\n{_doc(kind)}\n"
    for member, value in _members(kind).items():
        word = "async " if inspect.iscoroutinefunction(value) else ""
        shown = member if isinstance(value, property) else f"{word}{member}{_parameters(value)}"
        yield f"\n### {name}.{member}\n\n{code(shown)}\n\n{_doc(value)}\n"


def _members(kind: type) -> dict[str, object]:
    """Public methods and properties with a docstring, also of bases in the package."""
    found: dict[str, object] = {}
    for one in kind.__mro__:
        if one.__module__.startswith("lava_client"):
            found |= {name: value for name, value in vars(one).items() if name not in found}
    return {
        name: value
        for name, value in found.items()
        if not name.startswith("_") and name not in _OF_THE_PACKAGE
        if (callable(value) or isinstance(value, property)) and inspect.getdoc(value)
    }


def _parameters(value: object) -> str:
    """Names and defaults, without types: these are in the code, which is typed."""
    try:
        found = inspect.signature(value)  # type: ignore[arg-type]
    except ValueError:
        return "()"
    kept = [one.replace(annotation=inspect.Parameter.empty) for one in found.parameters.values() if one.name != "self"]
    return str(found.replace(parameters=kept, return_annotation=inspect.Signature.empty))


def _doc(value: object) -> str:
    text = inspect.getdoc(value) or ""
    return text.replace("``", "`")
