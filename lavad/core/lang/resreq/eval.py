"""Whether a host satisfies a select expression.

Rule: an expression is compiled once into closures over a mapping of a host's values; a missing value makes its comparison
false, never an error.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from lavad.core.lang.resreq.grammar import COMPARISONS, Expr

Value = float | str | bool
Values = Mapping[str, Value]
_Found = Value | None
_Test = Callable[[Values], _Found]

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
"""How a comparison is made. Of an array of numbers and a number it makes an array."""
_SUMS: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


def value_of(text: str) -> Value:
    """The configured value of a resource: a number where it is one; without a value the resource is boolean."""
    if not text:
        return True
    try:
        return float(text)
    except ValueError:
        return text


def compile_select(expr: Expr | None, local_type: str = "") -> Callable[[Values], bool]:
    """A fast test of one host's values; `local_type` is the submission host's type ("": any)."""
    if expr is None:
        return lambda values: True
    test = _compiled(expr, local_type)
    return lambda values: _truth(test(values))


@lru_cache(maxsize=128)
def _compiled(expr: Expr, local_type: str) -> _Test:
    return _compile(expr, local_type)


def _truth(value: _Found) -> bool:
    return bool(value)


def _compile(expr: Expr, local_type: str) -> _Test:
    kind = expr[0]
    if kind in COMPARISONS:
        return _comparison(kind, expr[1], expr[2], local_type)
    if kind in _SUMS:
        return _arithmetic(_SUMS[kind], _compile(expr[1], local_type), _compile(expr[2], local_type))
    if kind in ("num", "str"):
        constant: Value = expr[1]
        return lambda values: constant
    if kind in ("name", "defined"):
        return _named(kind, expr[1])
    parts = [_compile(part, local_type) for part in expr[1:]]
    if kind == "and":
        return lambda values: all(_truth(part(values)) for part in parts)
    if kind == "or":
        return lambda values: any(_truth(part(values)) for part in parts)
    if kind == "not":
        return lambda values: not _truth(parts[0](values))
    return _arithmetic(operator.sub, lambda values: 0.0, parts[0])


def _named(kind: str, name: str) -> _Test:
    if kind == "defined":
        return lambda values: name in values
    return lambda values: values.get(name)


def _arithmetic(sum_: Callable[[float, float], float], left: _Test, right: _Test) -> _Test:
    def total(values: Values) -> _Found:
        first, second = left(values), right(values)
        if first is None or second is None or isinstance(first, str) or isinstance(second, str):
            return None
        if sum_ is operator.truediv and second == 0:
            return None
        return sum_(float(first), float(second))

    return total


def _comparison(kind: str, left: Expr, right: Expr, local_type: str) -> _Test:
    if left == ("name", "type") and kind in ("==", "!=") and right in (("str", "any"), ("str", "local")):
        return _type_test(kind, right[1], local_type)
    if left[0] == "name" and right[0] == "num":
        return _against_number(kind, left[1], right[1], right[2])
    op, first, second = COMPARE[kind], _compile(left, local_type), _compile(right, local_type)
    word = right[1] if left[0] == "name" and right[0] == "name" else None

    def compare(values: Values) -> bool:
        a = first(values)
        # `os == linux`: the operand beside a string resource is a literal, even where a resource has that name
        b = word if word is not None and isinstance(a, str) else second(values)
        if a is None or b is None:
            return False
        if isinstance(a, str) != isinstance(b, str):
            return kind == "!="
        return op(a, b) if kind in ("==", "!=") or not isinstance(a, str) else False

    return compare


def _type_test(kind: str, wanted: str, local_type: str) -> _Test:
    if wanted == "any" or not local_type:
        return lambda values: kind == "=="
    return lambda values: "type" in values and (values["type"] == local_type) == (kind == "==")


def _against_number(kind: str, name: str, number: float, text: str) -> _Test:
    op = COMPARE[kind]

    def compare(values: Values) -> bool:
        value = values.get(name)
        if value is None:
            return False
        if isinstance(value, str):
            return kind in ("==", "!=") and op(value, text)
        return op(value, number)

    return compare
