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

from config.model.values import INDEX_ALIASES

if TYPE_CHECKING:
    from lark import Lark, Token

Expr = tuple[Any, ...]
"""Its first element, the kind, says how many others there are and of what type."""
_Options = dict[str, str | int | tuple[str, str]]
"""Fields of an ``Affinity``."""

MAX_DEPTH = 100
MAX_AMOUNT = 1e15
MEMORY_NAMES = frozenset(("mem", "swp", "tmp", "maxmem", "maxswp", "maxtmp"))
COMPARISONS = frozenset(("==", "!=", ">=", "<=", ">", "<"))
_UNITS = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3, "E": 1024.0**4, "Z": 1024.0**5}
LEVELS = ("numa", "socket", "core", "thread")
"""Of the CPUs of a host, as affinity[] names them."""
_NUMBER = re.compile(r"(\d{1,15}(?:\.\d{0,9})?)([KMGTPEZ]?)(B?)", re.ASCII | re.IGNORECASE)


class ResReqError(ValueError):
    """`DETAIL: Bad resource requirement syntax`, one line; `detail` is for callers with a text of their own."""

    def __init__(self, detail: str) -> None:
        self.detail = _shortened(detail)
        super().__init__(f"{self.detail}: Bad resource requirement syntax")


class NotSupported(ResReqError):
    """LSF's syntax for what lava does not do; ``detail`` names it."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.args = (f"Bad resource requirement: {self.detail} is not supported by lava",)


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

_WHOLE = re.compile(r"""\s*(["'])((?:(?!\1).)*)\1\s*""", re.DOTALL)

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
    from lark import Lark, Token, Transformer, v_args

    @v_args(inline=True)
    class Build(Transformer[Token, Expr]):
        def or_(self, *parts: Expr) -> Expr:
            return _flat("or", parts)

        def and_(self, *parts: Expr) -> Expr:
            return _flat("and", parts)

        def compared(self, left: Expr, op: Token, right: Expr) -> Expr:
            return (str(op), left, right)

        def chain(self, left: Expr, *rest: Token | Expr) -> Expr:
            return _chain(left, rest)

        def negated(self, inner: Expr) -> Expr:
            return ("not", inner)

        def minus(self, inner: Expr) -> Expr:
            return ("neg", inner)

        def number(self, token: Token) -> Expr:
            return ("num", read_number(str(token))[0], str(token))

        def quoted(self, token: Token) -> Expr:
            return ("str", str(token)[1:-1])

        def words(self, token: Token) -> Expr:
            left, op, right = re.split(r"\s*([=!]=)\s*", str(token), maxsplit=1)
            return (op, ("name", left), ("str", right))

        def defined(self, token: Token) -> Expr:
            return ("defined", resource_name(str(token).partition("(")[2].strip(" \t\r\n)")))

        def name(self, token: Token) -> Expr:
            return ("name", resource_name(str(token)))

    return Lark(_SELECT, parser="lalr", transformer=Build())


@cache
def _affinity_parser() -> Lark:
    from lark import Lark, Token, Transformer, v_args

    @v_args(inline=True)
    class Build(Transformer[Token, Affinity]):
        def same(self, level: Token) -> _Options:
            return {"same": _level(level)}

        def exclusive(self, level: Token, scope: Token | None) -> _Options:
            return {"exclusive": (_level(level), _known("exclusive", str(scope or "intask"), ("intask", "injob", "alljobs")))}

        def unit(self, name: Token, count: Token | None, *rest: _Options | Token | None) -> _Options:
            *extra, times = rest
            found: _Options = {"unit": _level(name), "count": int(count or 1), "times": int(str(times or 1))}
            for piece in extra:
                if isinstance(piece, dict):
                    found |= piece
            return found

        def option(self, name: Token, value: Token, level: Token | None, count: Token | None) -> _Options:
            return _affinity_option(str(name), str(value), level, count)

        def start(self, *pieces: _Options) -> Affinity:
            found: _Options = {}
            for piece in pieces:
                found |= piece
            return msgspec.convert(found, Affinity)

    return Lark(_AFFINITY, parser="lalr", transformer=Build(), maybe_placeholders=True)


def without_quotes(text: str) -> str:
    """What is in quotes as a whole, as programs pass it that call bsub without a shell; a text alone would be no condition."""
    found = _WHOLE.fullmatch(text)
    return found[2] if found else text


def parse_select(text: str, unit_mb: float = 1.0) -> Expr:
    """`unit_mb`: MB in the unit of a plain number that is compared with an amount of memory. Raises ResReqError."""
    from lark.exceptions import LarkError

    try:
        expr = cast("Expr", _select_parser().parse(without_quotes(text)))
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
    return INDEX_ALIASES.get(name, name)


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 200 else line[:200] + "..."


def _flat(kind: str, items: tuple[Expr, ...]) -> Expr:
    parts: list[Expr] = []
    for item in items:
        parts.extend(item[1:] if item[0] == kind else (item,))
    return (kind, *parts)


def _chain(left: Expr, rest: tuple[Token | Expr, ...]) -> Expr:
    for op, right in zip(rest[::2], rest[1::2], strict=True):
        left = (str(op), left, right)
    return left


def _too_deep(expr: Expr) -> bool:
    level = [expr]
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


def _level(name: str) -> str:
    return _known("unit", str(name), LEVELS)


def _affinity_option(name: str, value: str, level: Token | None, count: Token | None) -> _Options:
    if name == "distribute" and value == "pack" and level is not None:
        return {"distribute": f"pack({_level(level)}={count})" if count else f"pack({_level(level)})"}
    if level is not None:
        raise ValueError(name)
    allowed = {
        "cpubind": LEVELS,
        "membind": ("localonly", "localprefer"),
        "distribute": ("pack", "balance", "any"),
    }.get(name)
    return {name: _known(name, value, allowed or ())}
