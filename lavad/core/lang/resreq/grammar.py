"""The two recursive parts of a resource requirement as lark grammars: the select expression and the affinity section.

Rule: the result is plain tuples and structs, never lark's own objects. LALR parses in linear time without recursion; the depth is
checked afterwards, before any recursive walk.

An expression is one of ("num", value, text) ("str", text) ("name", name) ("defined", name) ("not", e) ("neg", e)
("and", e...) ("or", e...) and (op, left, right) for == != >= <= > < + - * /.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import msgspec

if TYPE_CHECKING:
    from lark import Lark

Expr = tuple[Any, ...]

MAX_DEPTH = 100
MAX_AMOUNT = 1e15
ALIASES = {"login": "ls", "swap": "swp", "idle": "it", "cpu": "r1m"}
MEMORY_NAMES = frozenset(("mem", "swp", "tmp", "maxmem", "maxswp", "maxtmp"))
COMPARISONS = frozenset(("==", "!=", ">=", "<=", ">", "<"))
_UNITS = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3, "E": 1024.0**4, "Z": 1024.0**5}
_NUMBER = re.compile(r"(\d{1,15}(?:\.\d{0,9})?)([KMGTPEZ]?)(B?)", re.ASCII | re.IGNORECASE)
_LEVELS = ("numa", "socket", "core", "thread")


class ResReqError(ValueError):
    """`DETAIL: Bad resource requirement syntax`, one line; `detail` is for callers with a text of their own."""

    def __init__(self, detail: str) -> None:
        self.detail = _shortened(detail)
        super().__init__(f"{self.detail}: Bad resource requirement syntax")


class Affinity(msgspec.Struct, frozen=True):
    """`unit(count, same=…, exclusive=(…))*times:cpubind=…:membind=…:distribute=…`"""

    unit: str
    count: int = 1
    times: int = 1
    same: str = ""
    exclusive: tuple[str, str] | None = None
    cpubind: str = ""
    membind: str = ""
    distribute: str = ""


_SELECT = r"""
?start: or_
?or_: and_ ("||" and_)*
?and_: compared ("&&" compared)*
?compared: sum_ (CMP sum_)?
?sum_: product | product (ADD product)+ -> chain
?product: unary | unary (MUL unary)+ -> chain
?unary: "!" unary -> negated | "-" unary -> minus | atom
?atom: "(" or_ ")"
     | NUMBER -> number
     | QUOTED -> quoted
     | WORDS -> words
     | DEFINED -> defined
     | NAME -> name

CMP: "==" | "!=" | ">=" | "<=" | ">" | "<"
ADD: "+" | "-"
MUL: "*" | "/"
WORDS.4: /(?:type|model|hname|status)\s*[=!]=\s*[\w.\-]+(?![\w.\-])/
DEFINED.3: /defined\s*\(\s*[A-Za-z_]\w*\s*\)/
NUMBER.2: /[0-9]{1,15}(?:\.[0-9]{0,9})?(?:[KMGTPEZ]B?)?(?![\w.])/i
NAME: /[A-Za-z_][\w.]*/
QUOTED: /"[^"]*"|'[^']*'/
%ignore /\s+/
"""

_AFFINITY = r"""
start: unit (":" option)*
unit: NAME ["(" NUM (("," same) | ("," exclusive))* ")"] ["*" NUM]
same: "same" "=" NAME
exclusive: "exclusive" "=" "(" NAME ["," NAME] ")"
option: NAME "=" NAME ["(" NAME ["=" NUM] ")"]
NAME: /[a-z]+/
NUM: /[1-9][0-9]{0,5}/
%ignore /\s+/
"""


@cache
def _select_parser() -> Lark:
    from lark import Lark, Token, Transformer

    class Build(Transformer[Token, Any]):
        def or_(self, items: list[Any]) -> Expr:
            return _flat("or", items)

        def and_(self, items: list[Any]) -> Expr:
            return _flat("and", items)

        def compared(self, items: list[Any]) -> Expr:
            return (str(items[1]), items[0], items[2])

        def chain(self, items: list[Any]) -> Expr:
            return _chain(items)

        def negated(self, items: list[Any]) -> Expr:
            return ("not", items[0])

        def minus(self, items: list[Any]) -> Expr:
            return ("neg", items[0])

        def number(self, items: list[Any]) -> Expr:
            return ("num", read_number(str(items[0]))[0], str(items[0]))

        def quoted(self, items: list[Any]) -> Expr:
            return ("str", str(items[0])[1:-1])

        def words(self, items: list[Any]) -> Expr:
            left, op, right = re.split(r"\s*([=!]=)\s*", str(items[0]), maxsplit=1)
            return (op, ("name", left), ("str", right))

        def defined(self, items: list[Any]) -> Expr:
            return ("defined", resource_name(str(items[0]).partition("(")[2].strip(" \t\r\n)")))

        def name(self, items: list[Any]) -> Expr:
            return ("name", resource_name(str(items[0])))

    return Lark(_SELECT, parser="lalr", transformer=Build())


@cache
def _affinity_parser() -> Lark:
    from lark import Lark, Token, Transformer

    class Build(Transformer[Token, Any]):
        def same(self, items: list[Any]) -> dict[str, Any]:
            return {"same": _level(items[0])}

        def exclusive(self, items: list[Any]) -> dict[str, Any]:
            scope = str(items[1] or "intask")
            return {"exclusive": (_level(items[0]), _known("exclusive", scope, ("intask", "injob", "alljobs")))}

        def unit(self, items: list[Any]) -> dict[str, Any]:
            name, count, *extra, times = items
            found = {"unit": _level(name), "count": int(count or 1), "times": int(times or 1)}
            for piece in extra:
                found |= piece or {}
            return found

        def option(self, items: list[Any]) -> dict[str, Any]:
            return _affinity_option(*items)

        def start(self, items: list[Any]) -> Affinity:
            found: dict[str, Any] = {}
            for piece in items:
                found |= piece
            return Affinity(**found)

    return Lark(_AFFINITY, parser="lalr", transformer=Build(), maybe_placeholders=True)


def parse_select(text: str, unit_mb: float = 1.0) -> Expr:
    """`unit_mb`: MB in the unit of a plain number that is compared with an amount of memory. Raises ResReqError."""
    from lark.exceptions import LarkError

    try:
        expr = cast("Expr", _select_parser().parse(text))
    except (LarkError, ValueError):
        raise ResReqError(f"select[{text}]") from None
    if _too_deep(expr):
        raise ResReqError("the select expression is nested too deeply")
    return expr if unit_mb == 1.0 else _scaled(expr, unit_mb)


def parse_affinity(text: str) -> Affinity:
    from lark.exceptions import LarkError

    try:
        return cast("Affinity", _affinity_parser().parse(text))
    except (LarkError, ValueError):
        raise ResReqError(f"affinity[{text}]") from None


def read_number(text: str) -> tuple[float, bool]:
    """(value, whether a unit was given); with a unit the value is in MB. Raises ValueError."""
    match = _NUMBER.fullmatch(text)
    if match is None or (match[3] and not match[2]):
        raise ValueError(text)
    return float(match[1]) * _UNITS[match[2].upper() or "M"], bool(match[2])


def plain_number(value: float) -> str:
    """In digits only, as the grammar has no exponents."""
    return f"{value:.6f}".rstrip("0").rstrip(".")


def resource_name(name: str) -> str:
    return ALIASES.get(name, name)


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 200 else line[:200] + "..."


def _flat(kind: str, items: list[Any]) -> Expr:
    parts: list[Any] = []
    for item in items:
        parts.extend(item[1:] if item[0] == kind else (item,))
    return (kind, *parts)


def _chain(items: list[Any]) -> Expr:
    left: Expr = items[0]
    for op, right in zip(items[1::2], items[2::2], strict=True):
        left = (str(op), left, right)
    return left


def _too_deep(expr: Expr) -> bool:
    level: list[Any] = [expr]
    for _ in range(MAX_DEPTH):
        level = [branch for node in level if isinstance(node, tuple) for branch in node[1:]]
        if not level:
            return False
    return True


def _scaled(expr: Expr, unit_mb: float) -> Expr:
    if expr[0] in COMPARISONS:
        left, right = expr[1], expr[2]
        return (expr[0], _in_units(left, right, unit_mb), _in_units(right, left, unit_mb))
    return tuple(_scaled(part, unit_mb) if isinstance(part, tuple) else part for part in expr)


def _in_units(expr: Expr, other: Expr, unit_mb: float) -> Expr:
    plain = expr[0] == "num" and expr[2][-1] in "0123456789."
    if plain and other[0] == "name" and other[1] in MEMORY_NAMES:
        value = round(expr[1] * unit_mb, 6)
        if value >= MAX_AMOUNT:
            raise ResReqError(f"{other[1]} {expr[2]} is too large")
        return ("num", value, plain_number(value))
    return _scaled(expr, unit_mb)


def _known(option: str, value: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise ValueError(f"{option}={value}")
    return value


def _level(name: Any) -> str:
    return _known("unit", str(name), _LEVELS)


def _affinity_option(name: Any, value: Any, level: Any, count: Any) -> dict[str, Any]:
    text = str(value)
    if name == "distribute" and text == "pack" and level is not None:
        return {"distribute": f"pack({_level(level)}={count})" if count else f"pack({_level(level)})"}
    if level is not None:
        raise ValueError(name)
    allowed = {
        "cpubind": _LEVELS,
        "membind": ("localonly", "localprefer"),
        "distribute": ("pack", "balance", "any"),
    }.get(str(name))
    return {str(name): _known(str(name), text, allowed or ())}
