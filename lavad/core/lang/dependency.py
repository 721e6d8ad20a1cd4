"""Dependency conditions: `bsub -w 'done(105) && numdone("sweep", >= 10)'`.

Rule: a condition is a tree of tuples whose leaves are `Question`s. `judge` answers one question from the counts of the jobs that
it names, `evaluate` combines the answers: True, False (not yet) or None (can never become true). No job record is read here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, cast

import msgspec

from lavad.core.lang.ranges import MAX_INDEX, Ranges
from lavad.core.lang.text_cache import text_cache
from lavad.core.lang.windows import WindowError, parse_windows

if TYPE_CHECKING:
    from lark import Lark, Token

Tree = tuple[str, *tuple["Tree | Question", ...]]
"""("and" or "or", branch...) or ("not", branch)."""
Answer = bool | None

MAX_TEXT = 8192
MAX_DEPTH = 100
SYNTAX = "Dependency condition syntax error"
COUNTERS = ("numdone", "numended", "numexit", "numhold", "numpend", "numrun", "numstart")
_STATES = ("done", "ended", "exit", "started", "post_done", "post_err")


class DependencyError(ValueError):
    """The message is the line a user sees, without `Job not submitted.`"""


class JobRef(msgspec.Struct, frozen=True):
    """The jobs that a question is about: an id, or a name (`prefix`: `name*`); `same_index` is `[*]`, element by element."""

    id: int = 0
    name: str = ""
    prefix: bool = False
    indices: Ranges | None = None
    same_index: bool = False


class Question(msgspec.Struct, frozen=True):
    """One function call: `exit(J, > 3)`, `numdone(J, *)` (number None), `external(J, "text")`, `time(window)`."""

    function: str
    ref: JobRef = JobRef()
    op: str = ""
    number: int | None = None
    text: str = ""


class JobCounts(msgspec.Struct, frozen=True):
    """Elements of one job by state (a plain job has one element); `start` is RUN, USUSP and SSUSP together."""

    pend: int = 0
    hold: int = 0
    start: int = 0
    run: int = 0
    done: int = 0
    exit: int = 0
    exit_codes: tuple[int, ...] = ()
    post_done: int = 0
    post_err: int = 0
    messages: tuple[str, ...] = ()

    @property
    def ended(self) -> int:
        return self.done + self.exit

    @property
    def total(self) -> int:
        return self.pend + self.hold + self.start + self.ended


_GRAMMAR = r"""
?start: or_
?or_: and_ ("||" and_)*
?and_: not_ ("&&" not_)*
?not_: "!" not_ -> negated | atom
?atom: "(" or_ ")"
     | FUNCTION "(" ref ")" -> call
     | FUNCTION "(" ref "," [OP] (ID | STAR) ")" -> call
     | FUNCTION "(" ref "," STRING ")" -> call
     | TIME -> time
     | ref -> bare
ref: (ID | NAME | STRING) [INDEX]

FUNCTION.3: /[a-z_]+(?=\s*\()/
TIME.4: /time\s*\([^()]*\)/
ID.2: /[0-9]+(?![^\s()&|!,<>="'\[\]])/
NAME.1: /[^\s()&|!,<>="'\[\]*]+\*?/
STRING: /"[^"]*"|'[^']*'/
INDEX: /\[[^\[\]]*\]/
OP: "==" | "!=" | ">=" | "<=" | ">" | "<"
STAR: "*"
%ignore /\s+/
"""


@cache
def _parser() -> Lark:
    from lark import Lark, Token, Transformer, v_args

    @v_args(inline=True)
    class Build(Transformer[Token, "Tree | Question"]):
        def or_(self, *parts: Tree | Question) -> Tree:
            return ("or", *parts)

        def and_(self, *parts: Tree | Question) -> Tree:
            return ("and", *parts)

        def negated(self, inner: Tree | Question) -> Tree:
            return ("not", inner)

        def call(self, function: Token, ref: JobRef, *condition: Token | None) -> Question:
            return _call(str(function), ref, *condition)

        def time(self, token: Token) -> Question:
            return _time(token)

        def bare(self, ref: JobRef) -> Question:
            return Question("done", ref)

        def ref(self, token: Token, index: Token | None) -> JobRef:
            return _ref(token, index)

    return Lark(_GRAMMAR, parser="lalr", transformer=Build(), maybe_placeholders=True)


def _call(name: str, ref: JobRef, *condition: Token | None) -> Question:
    if name in COUNTERS and len(condition) == 2:
        return Question(name, ref, str(condition[0] or "=="), _number(condition[1]))
    if name == "external" and len(condition) == 1:
        return Question(name, ref, text=str(condition[0])[1:-1])
    if name == "exit" and len(condition) == 2 and condition[1] != "*":
        return Question(name, ref, str(condition[0] or "=="), _number(condition[1]))
    if name in _STATES and not condition:
        return Question(name, ref)
    raise ValueError(name)


def _number(token: Token | None) -> int | None:
    if token == "*":
        return None
    if token is None or len(token) > 10:
        raise ValueError(token)
    return int(token)


def _time(token: str) -> Question:
    text = token[token.index("(") + 1 : -1].strip()
    if not text:
        raise ValueError(token)
    parse_windows(text)
    return Question("time", text=text)


_INDEXED = re.compile(r"([^\[\]]+)(\[(?:\*|[0-9][0-9,:-]*)\])")
"""A quoted name with the indices inside the quotes."""


def _ref(token: Token, index: str | None) -> JobRef:
    if token.type == "STRING" and index is None and (inside := _INDEXED.fullmatch(str(token)[1:-1])):
        name, index = inside.groups()
        token = token.update(value=f'"{name}"')
    same = index is not None and index[1:-1].strip() == "*"
    indices = None if index is None or same else Ranges.parse(index[1:-1])
    if token.type == "ID":
        if len(token) > 10 or not 1 <= int(token) <= MAX_INDEX:
            raise ValueError(token)
        return JobRef(id=int(token), indices=indices, same_index=same)
    name = str(token)[1:-1] if token.type == "STRING" else str(token)
    prefix = name.endswith("*")
    if not name.removesuffix("*") or "*" in name[:-1]:
        raise ValueError(name)
    return JobRef(name=name.removesuffix("*"), prefix=prefix, indices=indices, same_index=same)


@text_cache
def parse(text: str) -> Tree | Question:
    from lark.exceptions import LarkError

    if len(text) > MAX_TEXT:
        raise DependencyError(f"Dependency condition is longer than {MAX_TEXT} characters")
    try:
        tree = cast("Tree | Question", _parser().parse(text))
    except (LarkError, WindowError, ValueError):
        given = " ".join(text.split())
        raise DependencyError(f"{given}: {SYNTAX}" if given else SYNTAX) from None
    if _too_deep(tree):
        raise DependencyError("Dependency condition is too deeply nested")
    return tree


def _too_deep(tree: Tree | Question) -> bool:
    level: list[Tree | Question] = [tree]
    for _ in range(MAX_DEPTH):
        level = [branch for node in level if isinstance(node, tuple) for branch in node[1:]]
        if not level:
            return False
    return True


def questions_of(tree: Tree | Question) -> list[Question]:
    if isinstance(tree, Question):
        return [tree]
    return [question for branch in tree[1:] for question in questions_of(branch)]


def evaluate(tree: Tree | Question, lookup: Callable[[Question], Answer]) -> Answer:
    """`lookup` answers one question (see `judge`); `!` of a question that can never become true is true."""
    if isinstance(tree, Question):
        return lookup(tree)
    answers = [evaluate(branch, lookup) for branch in tree[1:]]
    if tree[0] == "not":
        return not answers[0]
    return _all(answers) if tree[0] == "and" else _any(answers)


def _all(answers: Sequence[Answer]) -> Answer:
    return None if None in answers else all(answers)


def _any(answers: Sequence[Answer]) -> Answer:
    if True in answers:
        return True
    return False if False in answers else None


def judge(question: Question, jobs: Sequence[JobCounts]) -> Answer:
    """True if every job fulfils the question; None (never) where no job is left."""
    if not jobs:
        return None
    return _all([_judge_one(question, job) for job in jobs])


def _judge_one(question: Question, job: JobCounts) -> Answer:
    if question.function in COUNTERS:
        return _judge_count(question, job)
    match question.function:
        case "done":
            return None if job.exit else job.done == job.total
        case "ended":
            return job.ended == job.total
        case "exit":
            return _judge_exit(question, job)
        case "started":
            return job.pend + job.hold == 0
        case "post_done":
            return None if job.post_err else job.post_done == job.total
        case "post_err":
            return None if job.post_done else job.post_err == job.total
        case "external":
            return any(question.text in (message, *message.split()[:1]) for message in job.messages)
    raise ValueError(f"{question.function} is no question about a job")


def _judge_exit(question: Question, job: JobCounts) -> Answer:
    wrong = question.op and not all(compare(code, question.op, question.number or 0) for code in job.exit_codes)
    if job.done or wrong:
        return None
    return job.exit == job.total


def _judge_count(question: Question, job: JobCounts) -> Answer:
    now = int(getattr(job, question.function.removeprefix("num")))
    wanted = job.total if question.number is None else question.number
    if compare(now, question.op, wanted):
        return True
    open_ = job.total - job.ended
    low, high = (now, now + open_) if question.function in ("numdone", "numexit", "numended") else (0, open_)
    return False if _reachable(low, high, question.op, wanted) else None


def _reachable(low: int, high: int, op: str, wanted: int) -> bool:
    if op == "==":
        return low <= wanted <= high
    return compare(high if op in (">", ">=") else low, op, wanted) or (op == "!=" and high != wanted)


def compare(left: int, op: str, right: int) -> bool:
    match op:
        case "==":
            return left == right
        case "!=":
            return left != right
        case ">":
            return left > right
        case ">=":
            return left >= right
        case "<":
            return left < right
    return left <= right
