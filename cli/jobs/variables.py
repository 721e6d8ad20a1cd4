"""Variables of job files: ``${{name}}`` in any value, with defaults under ``vars`` and values by ``lava run --set name=value``.

Rule: a value is put in after the file is parsed, so that it is one value whatever is in it, and is not read for variables itself.
``${{`` is an error in every shell, so that no text which a shell could run is taken for one; ``$${{`` stands for ``${{``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from cli.client.context import Fail
from cli.submit.yaml_text import LARGEST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from yaml import Node, SafeLoader

    from cli.submit.yaml_text import Fill

SECTION = "vars"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_USE = re.compile(r"(\$?)\$\{\{([^{}\n]*)\}\}")
_TEXT = "tag:yaml.org,2002:str"
_RULE = "a variable's name is letters, digits and _, and begins with no digit"


class Variables:
    """What ``--set`` gives (``name=value`` each), for all files of a command."""

    def __init__(self, settings: Iterable[str]) -> None:
        self._given: dict[str, str] = {}
        self._known: set[str] = set()
        for word in settings:
            name, equals, value = word.partition("=")
            if not equals or not _NAME.fullmatch(name):
                raise Fail(f"--set {word[:64]}: it is name=value; {_RULE}")
            if name in self._given:
                raise Fail(f"--set {name[:64]}: it is given twice")
            self._given[name] = value

    def of_file(self, name: str) -> Fill:
        """What puts the values into the documents of a file, one after the other: see ``read_yaml``."""
        return _File(name, self._given, self._known).fill

    def refuse_unknown(self, files: Iterable[str]) -> None:
        """A value for a variable that no file has, once all are read."""
        for name in self._given:
            if name not in self._known:
                raise Fail(f"--set {name[:64]}: no variable of {', '.join(files)}")


class _File:
    """The variables of one file: the defaults of a document hold for it and for those behind it."""

    def __init__(self, name: str, given: dict[str, str], known: set[str]) -> None:
        self._file = name
        self._given = given
        self._known = known
        self._defaults: dict[str, str | None] = {}
        self._left = LARGEST

    def fill(self, root: Node, loader: SafeLoader) -> Node | None:
        """A document with the values in it (changed in place); None where it has nothing but ``vars``."""
        if root.id == "mapping":
            for at, (key, value) in enumerate(root.value):
                if key.value == SECTION:
                    self._read_defaults(value)
                    del root.value[at]
                    break
            if not root.value:
                return None
        for node in _scalars(root):
            if "${{" in node.value:
                self._fill(node, loader)
        return root

    def _read_defaults(self, section: Node) -> None:
        if section.id != "mapping":
            raise self._fail(section, f"{SECTION}: this is no mapping of variables")
        for key, value in section.value:
            if key.id != "scalar" or not _NAME.fullmatch(key.value):
                raise self._fail(key, f"{SECTION}: {_RULE}")
            if value.id != "scalar" or _USE.search(value.value):
                raise self._fail(value, f"{SECTION}: {key.value[:64]}: a default is a text or a number without variables")
            self._known.add(key.value)
            self._defaults[key.value] = None if value.tag.endswith(":null") else value.value

    def _fill(self, node: Node, loader: SafeLoader) -> None:
        filled = _USE.sub(lambda match: self._value(node, match), node.value)
        node.value = filled
        if node.style is None and node.tag == _TEXT:
            # without quotes, a number is a number as it would be if it stood there
            node.tag = loader.resolve(type(node), filled, (True, False))

    def _value(self, node: Node, use: re.Match[str]) -> str:
        if use[1]:
            return use[0][1:]
        name = use[2].strip()
        if not _NAME.fullmatch(name):
            raise self._fail(node, f"{use[0][:64]}: {_RULE}", use[0])
        self._known.add(name)
        value = self._given.get(name, self._defaults.get(name))
        if value is None:
            why = f"no value: give --set {name[:64]}=VALUE, or a default under {SECTION}"
            raise self._fail(node, f"{use[0][:64]}: {why}", use[0])
        self._left -= len(value)
        if self._left < 0:
            raise Fail(f"{self._file}: larger than {LARGEST} characters with the values of its variables")
        return value

    def _fail(self, node: Node, why: str, what: str = "") -> Fail:
        """An error at a node, or at ``what`` in it."""
        start, end = node.start_mark, node.end_mark
        before = start.buffer[start.index : end.index].partition(what)[0] if what and start.buffer else ""
        return Fail(f"{self._file}: line {start.line + 1 + before.count(chr(10))}: {why}")


def _scalars(root: Node) -> Iterator[Node]:
    """All scalars of a document, each once, in its order."""
    to_do, seen = [root], set()
    while to_do:
        node = to_do.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if node.id == "scalar":
            yield node
        else:
            rows = node.value if node.id == "sequence" else [one for pair in node.value for one in pair]
            to_do += reversed(rows)
