"""Resource requirements: the language of `bsub -R` and RES_REQ.

Rule: a scanner that respects quotes and brackets splits the string into sections, and each section has its own small grammar. The
canonical text parses back to an equal requirement: store the text, not the tree.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator

import msgspec

from lavad.core.lang.resreq import sections
from lavad.core.lang.resreq.grammar import COMPARISONS, Affinity, Expr, ResReqError, parse_affinity, parse_select, without_quotes
from lavad.core.lang.resreq.sections import Cu, Order, Rusage, RusageItem, Span
from lavad.core.lang.text_cache import text_cache

__all__ = [
    "BUILT_IN",
    "FOUND",
    "Affinity",
    "Cu",
    "Expr",
    "ResReq",
    "ResReqError",
    "Rusage",
    "RusageItem",
    "Span",
    "combine",
    "in_mb",
    "merge",
    "names_in",
    "parse",
    "show",
    "unknown_names",
]

MAX_TEXT = 8192
FOUND = ("criu",)
"""Boolean resources that the agent of a host finds out by itself: CRIU works there."""
BUILT_IN = frozenset(
    (
        *FOUND,
        "r15s",
        "r1m",
        "r15m",
        "ut",
        "pg",
        "io",
        "ls",
        "it",
        "tmp",
        "swp",
        "mem",
        "ncpus",
        "ndisks",
        "maxmem",
        "maxswp",
        "maxtmp",
        "cpuf",
        "type",
        "model",
        "status",
        "rexpri",
        "server",
        "hname",
        "slots",
        "maxslots",
        "ngpus",
        "nprocs",
        "ncores",
        "nthreads",
        "healthy",
        "ngpus_physical",
        "ngpus_shared",
        "ngpus_excl_p",
    )
)
PACKING = ("binpack", "spread")
"""Words of order[] that do not name a resource: the fullest or the emptiest host first."""
_KEYWORDS = "select|filter|order|rusage|span|same|cu|affinity"
_SECTION = re.compile(rf"({_KEYWORDS})\s*\[", re.ASCII)
_QUOTES = r"\"[^\"]*\"|'[^']*'"
_NEXT = re.compile(rf"{_QUOTES}|\b({_KEYWORDS})\s*\[", re.ASCII)
_TERM = re.compile(r"\s*(?:(\d{1,6})\s*\*\s*)?\{", re.ASCII)
_AFTER_TERM = re.compile(r"\s*(?:@\s*(\d{1,7})\s*)?(\+|\|\||$)", re.ASCII)
_BRACKETS = {pair: re.compile(rf"{_QUOTES}|[{re.escape(pair)}]") for pair in ("[]", "{}")}
_MAX_NESTED = 3


class ResReq(msgspec.Struct, frozen=True):
    """`compound`: (tasks, requirement), 0 tasks for the rest; `alternatives`: (requirement, delay in seconds)."""

    select: Expr | None = None
    order: Order = ()
    rusage: tuple[Rusage, ...] = ()
    span: Span | None = None
    same: tuple[str, ...] = ()
    cu: Cu | None = None
    affinity: Affinity | None = None
    compound: tuple[tuple[int, ResReq], ...] = ()
    alternatives: tuple[tuple[ResReq, int], ...] = ()
    text: str = ""


@text_cache
def parse(text: str, unit_mb: float = 1.0) -> ResReq:
    """`unit_mb`: MB in the unit of a plain amount of memory (LSF_UNIT_FOR_LIMITS); the result is in MB. Raises ResReqError."""
    _check_length(len(text))
    return _parse(without_quotes(text), unit_mb, 0)


def _check_length(characters: int) -> None:
    if characters > MAX_TEXT:
        raise ResReqError(f"longer than {MAX_TEXT} characters")


def _parse(text: str, unit_mb: float, nested: int) -> ResReq:
    if _TERM.match(text):
        if nested == _MAX_NESTED:
            raise ResReqError("braces are nested too deeply")
        return _braced(text, unit_mb, nested)
    req = ResReq()
    for keyword, body in _sections(text):
        req = _joined(req, _section(keyword, body, unit_mb), strict=True)
    return _finished(req)


def _section(keyword: str, body: str, unit_mb: float) -> ResReq:
    match keyword:
        case "select" | "filter":
            return ResReq(select=parse_select(body, unit_mb))
        case "order":
            return ResReq(order=sections.parse_order(body))
        case "rusage":
            return ResReq(rusage=sections.parse_rusage(body, unit_mb))
        case "span":
            return ResReq(span=sections.parse_span(body))
        case "same":
            return ResReq(same=sections.parse_same(body))
        case "cu":
            return ResReq(cu=sections.parse_cu(body))
    return ResReq(affinity=parse_affinity(body))


def _sections(text: str) -> Iterator[tuple[str, str]]:
    """(keyword, body) of each section; text outside brackets is a select expression."""
    at = 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        opened = _SECTION.match(text, at)
        if opened:
            end = _closing(text, opened.end(), "[]")
            yield opened[1], text[opened.end() : end]
            at = end + 1
        else:
            end = next((found.start() for found in _NEXT.finditer(text, at) if found[1]), len(text))
            yield "select", text[at:end].strip()
            at = end


def _closing(text: str, at: int, pair: str) -> int:
    depth = 1
    for found in _BRACKETS[pair].finditer(text, at):
        depth += {pair[0]: 1, pair[1]: -1}.get(found[0], 0)
        if depth == 0:
            return found.start()
    raise ResReqError(f"{pair[1]} is missing")


def _braced(text: str, unit_mb: float, nested: int) -> ResReq:
    terms: list[tuple[int | None, ResReq, int | None]] = []
    joints: set[str] = set()
    at = 0
    while True:
        opened = _TERM.match(text, at)
        if opened is None:
            raise ResReqError("{ is missing")
        end = _closing(text, opened.end(), "{}")
        after = _AFTER_TERM.match(text, end + 1)
        if after is None:
            raise ResReqError("only + or || may follow }")
        count = int(opened[1]) if opened[1] else None
        body = _parse(text[opened.end() : end], unit_mb, nested + 1)
        terms.append((count, body, int(after[1]) if after[1] else None))
        if not after[2]:
            return _terms(terms, joints)
        joints.add(after[2])
        at = after.end()


def _terms(terms: list[tuple[int | None, ResReq, int | None]], joints: set[str]) -> ResReq:
    counts = [count for count, _, _ in terms]
    reqs = [req for _, req, _ in terms]
    delays = [wait for _, _, wait in terms]
    if joints == {"+"} or (not joints and counts[0] is not None):
        if any(delays) or any(req.compound or req.alternatives for req in reqs) or 0 in counts:
            raise ResReqError("a compound requirement holds simple ones only")
        if None in counts[:-1]:
            raise ResReqError("each part of a compound requirement but the last needs its number of tasks")
        return _finished(ResReq(compound=tuple((count or 0, req) for count, req, _ in terms)))
    if joints == {"+", "||"} or any(count is not None for count in counts) or any(req.alternatives for req in reqs):
        raise ResReqError("alternatives are {..} || {..}@delay, with a compound one in braces of its own")
    if not joints and delays[0] is None:
        return reqs[0]
    return _finished(ResReq(alternatives=tuple((req, (wait or 0) * 60) for _, req, wait in terms)))


def merge(texts: list[str], unit_mb: float = 1.0) -> str:
    """Several -R of one job as one string, in MB. A single one that is in MB already stays as the user wrote it."""
    # before they are joined one by one, which takes time with the square of their number
    _check_length(sum([len(text) for text in texts]))
    reqs = [(without_quotes(text).strip(), parse(text, unit_mb)) for text in texts if text.strip()]
    if len(reqs) < 2:
        return "" if not reqs else reqs[0][0] if unit_mb == 1.0 else reqs[0][1].text
    merged = ResReq()
    for _, req in reqs:
        if req.compound or req.alternatives:
            raise ResReqError("a compound or alternative requirement cannot be merged with another -R")
        merged = _joined(merged, req, strict=True)
    return parse(_text(merged)).text


def in_mb(text: str, unit_mb: float) -> str:
    """A requirement of a configuration file with amounts in MB; one that does not parse is returned unchanged."""
    try:
        return merge([text], unit_mb)
    except ResReqError:
        return text


def combine(*levels: ResReq) -> ResReq:
    """Combine levels, outermost first (queue, application, job): selects are joined with &&, other sections overridden."""
    combined = ResReq()
    for level in levels:
        combined = _level(combined, level)
    return combined


def _level(outer: ResReq, inner: ResReq) -> ResReq:
    if inner.compound:
        return _finished(ResReq(compound=tuple((count, _level(outer, req)) for count, req in inner.compound)))
    if inner.alternatives:
        return _finished(ResReq(alternatives=tuple((_level(outer, req), wait) for req, wait in inner.alternatives)))
    if outer.compound or outer.alternatives:
        if inner == ResReq():
            return outer
        # LSF: a simple requirement of the job replaces the queue's compound one, whose parts have no counterpart
        return inner
    return _finished(_joined(outer, inner, strict=False))


def _joined(outer: ResReq, inner: ResReq, *, strict: bool) -> ResReq:
    span = inner.span or outer.span
    if strict and outer.span and inner.span and outer.span.kind != inner.span.kind:
        raise ResReqError(f"span[{sections.span_text(outer.span)}] and span[{sections.span_text(inner.span)}]")
    rusage = inner.rusage or outer.rusage
    if strict or len(outer.rusage) < 2 or len(inner.rusage) < 2:
        rusage = sections.join_rusage(outer.rusage, inner.rusage)
    order = tuple(dict.fromkeys(outer.order + inner.order)) if strict else inner.order or outer.order
    return ResReq(
        select=_both(outer.select, inner.select),
        order=order,
        rusage=rusage,
        span=span,
        same=tuple(dict.fromkeys(outer.same + inner.same)),
        cu=inner.cu or outer.cu,
        affinity=inner.affinity or outer.affinity,
    )


def _both(outer: Expr | None, inner: Expr | None) -> Expr | None:
    if outer is None or inner is None:
        return outer or inner
    parts = [part for expr in (outer, inner) for part in (expr[1:] if expr[0] == "and" else (expr,))]
    return ("and", *dict.fromkeys(parts)) if len(set(parts)) > 1 else outer


def _finished(req: ResReq) -> ResReq:
    return msgspec.structs.replace(req, text=_text(req))


def show(req: ResReq) -> str:
    """As bjobs -l prints combined requirements: amounts of rusage with two digits."""
    return _text(req, ".2f")


def with_rusage(req: ResReq, rusage: tuple[Rusage, ...]) -> str:
    """A requirement with other reservations, as users write it."""
    return _text(msgspec.structs.replace(req, rusage=rusage))


def without_ptile(req: ResReq) -> str:
    """A requirement without the one ``span[ptile=N]`` that ``-nnodes`` makes, as users write it."""
    made = req.span is not None and req.span == sections.Span("ptile", req.span.n)
    return _text(msgspec.structs.replace(req, span=None)) if made else req.text


def _text(req: ResReq, digits: str = "") -> str:
    if req.compound:
        return "+".join((f"{count}*" if count else "") + f"{{{_text(part, digits)}}}" for count, part in req.compound)
    if req.alternatives:
        return " || ".join(
            f"{{{_text(part, digits)}}}" + (f"@{wait // 60}" if wait or len(req.alternatives) == 1 else "")
            for part, wait in req.alternatives
        )
    found = {
        "select": expr_text(req.select) if req.select else "",
        "order": sections.order_text(req.order),
        "rusage": sections.rusage_text(req.rusage, digits),
        "span": sections.span_text(req.span) if req.span else "",
        "same": ":".join(req.same),
        "cu": sections.cu_text(req.cu) if req.cu else "",
        "affinity": sections.affinity_text(req.affinity) if req.affinity else "",
    }
    return " ".join(f"{keyword}[{body}]" for keyword, body in found.items() if body)


_BINDING = {"or": 1, "and": 2, "+": 4, "-": 4, "*": 5, "/": 5, "not": 6, "neg": 6} | dict.fromkeys(COMPARISONS, 3)
_TEXTS = ("type", "model", "hname", "status")
_WORD = re.compile(r"[\w.\-]+", re.ASCII)


def expr_text(expr: Expr) -> str:
    kind = expr[0]
    if kind == "num":
        return str(expr[2])
    if kind == "str":
        return f"'{expr[1]}'" if '"' in expr[1] else f'"{expr[1]}"'
    if kind in ("name", "defined"):
        return f"defined({expr[1]})" if kind == "defined" else str(expr[1])
    if kind in ("and", "or"):
        return (" && " if kind == "and" else " || ").join(_inside(part, kind, 1) for part in expr[1:])
    if kind in ("not", "neg"):
        return ("!" if kind == "not" else "-") + _inside(expr[1], kind, 0)
    left, right = expr[1], expr[2]
    word = right[0] == "str" and _WORD.fullmatch(right[1]) is not None
    if word and kind in ("==", "!=") and left[0] == "name" and left[1] in _TEXTS:
        return f"{left[1]}{kind}{right[1]}"
    return f"{_inside(left, kind, kind in COMPARISONS)}{kind}{_inside(right, kind, 1)}"


def _inside(expr: Expr, kind: str, strictly: int) -> str:
    own, around = _BINDING.get(expr[0], 9), _BINDING[kind]
    text = expr_text(expr)
    return f"({text})" if own < around + strictly else text


def names_in(expr: Expr | None) -> tuple[str, ...]:
    """Resources that an expression reads; the right operand of a name's == or != is a literal, not a resource."""
    if expr is None or expr[0] in ("num", "str"):
        return ()
    if expr[0] in ("name", "defined"):
        return (expr[1],)
    parts = expr[1:]
    if expr[0] in ("==", "!=") and expr[1][0] == "name" and expr[2][0] == "name":
        parts = expr[1:2]
    return tuple(dict.fromkeys(name for part in parts for name in names_in(part)))


def unknown_names(req: ResReq, known: Container[str]) -> list[str]:
    """Names that are neither built in nor known to the cluster: reason to refuse a submission."""
    parts: list[ResReq] = [part for _, part in req.compound] + [part for part, _ in req.alternatives]
    names = [
        *names_in(req.select),
        *(name.lstrip("!") for name, _ in req.order if name not in PACKING),
        *(use.name for rusage in req.rusage for use in rusage.uses),
        *req.same,
        *(name for part in parts for name in unknown_names(part, known)),
    ]
    return [name for name in dict.fromkeys(names) if name not in BUILT_IN and name not in known]


def unit_types(req: ResReq) -> tuple[str, ...]:
    """Types of compute units that cu[] asks for; "" is the default type."""
    parts = [*(part for _, part in req.compound), *(part for part, _ in req.alternatives)]
    own = (req.cu.type,) if req.cu is not None else ()
    return (*own, *(kind for part in parts for kind in unit_types(part)))


def is_exclusive(req: ResReq) -> bool:
    """Whether any part asks for exclusive compute units."""
    return (req.cu is not None and req.cu.excl) or any(is_exclusive(part) for part, _ in req.alternatives)


def unsupported(req: ResReq) -> str:
    """The first feature that is parsed but not supported, as the user wrote it; "" if there is none."""
    missing = (
        ("span[gtile]", req.span is not None and bool(req.span.gtile)),
        ("cu[excl] in a part of a requirement", any(part.cu is not None and part.cu.excl for _, part in req.compound)),
    )
    parts = [*(part for _, part in req.compound), *(part for part, _ in req.alternatives)]
    found = next((what for what, asked in missing if asked), "")
    return found or next((what for part in parts if (what := unsupported(part))), "")
