"""Dependency conditions: grammar, answers, and what never can be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lavad.core.lang.dependency import DependencyError, JobCounts, JobRef, Question, evaluate, judge, parse
from lavad.core.lang.ranges import Ranges


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("105", Question("done", JobRef(id=105))),
        ("done(105)", Question("done", JobRef(id=105))),
        ("ended(fairjob)", Question("ended", JobRef(name="fairjob"))),
        ('done("my job")', Question("done", JobRef(name="my job"))),
        ("started(sim*)", Question("started", JobRef(name="sim", prefix=True))),
        ("done(105[3])", Question("done", JobRef(id=105, indices=Ranges.parse("3")))),
        ("done(105[*])", Question("done", JobRef(id=105, same_index=True))),
        ('done("arr"[*])', Question("done", JobRef(name="arr", same_index=True))),
        ("exit(105)", Question("exit", JobRef(id=105))),
        ("exit(105, 3)", Question("exit", JobRef(id=105), "==", 3)),
        ("exit(a-b.c, >= 3)", Question("exit", JobRef(name="a-b.c"), ">=", 3)),
        ("numdone(105, *)", Question("numdone", JobRef(id=105), "==", None)),
        ("numrun(arr,<4)", Question("numrun", JobRef(name="arr"), "<", 4)),
        ('external(105, "ready")', Question("external", JobRef(id=105), text="ready")),
        ("post_done(1)", Question("post_done", JobRef(id=1))),
        ("time(8:00-9:00)", Question("time", text="8:00-9:00")),
        ("123abc", Question("done", JobRef(name="123abc"))),
        ("done", Question("done", JobRef(name="done"))),
    ],
)
def test_one_question(text, expected):
    assert parse(text) == expected


def test_operators_bind_as_in_c():
    a, b, c = (Question("done", JobRef(name=name)) for name in "abc")
    assert parse("a || b && !c") == ("or", a, ("and", b, ("not", c)))
    assert parse("(a||b)&&!(c)") == ("and", ("or", a, b), ("not", c))
    assert parse("a && b && c") == ("and", a, b, c)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "done(",
        "done()",
        "foo(1)",
        "a b",
        "a &&",
        "&& a",
        "a & b",
        "numdone(1)",
        "numdone(1, x)",
        "exit(1, *)",
        "done(1, 2)",
        "external(1)",
        "done(1[0])",
        "done(1[])",
        "time(99-1)",
        "time()",
        "a**",
        "a*b",
        "0",
        "done(99999999999)",
        '""',
        "(a",
        "a)",
    ],
)
def test_syntax_errors(text):
    with pytest.raises(DependencyError, match=r"(^|\S: )Dependency condition syntax error$"):
        parse(text)


@pytest.mark.parametrize("text", ["(" * 5000 + "a" + ")" * 3000, "!" * 8000 + "a", "!(" * 2000 + "a" + ")" * 2000, "a" * 9000])
def test_depth_and_length_are_bounded(text):
    with pytest.raises(DependencyError):
        parse(text)


def test_long_conditions_are_fine():
    condition = parse("&&".join(["done(1)"] * 900))
    assert isinstance(condition, tuple)
    assert len(condition) == 901


PENDING = JobCounts(pend=1)
RUNNING = JobCounts(start=1, run=1)
DONE = JobCounts(done=1)
FAILED = JobCounts(exit=1, exit_codes=(3,))
ARRAY = JobCounts(pend=4, hold=1, start=2, run=1, done=2, exit=1, exit_codes=(9,))


@pytest.mark.parametrize(
    ("text", "counts", "answer"),
    [
        ("done(1)", PENDING, False),
        ("done(1)", DONE, True),
        ("done(1)", FAILED, None),
        ("ended(1)", RUNNING, False),
        ("ended(1)", FAILED, True),
        ("exit(1)", FAILED, True),
        ("exit(1)", DONE, None),
        ("exit(1, 3)", FAILED, True),
        ("exit(1, >3)", FAILED, None),
        ("started(1)", PENDING, False),
        ("started(1)", RUNNING, True),
        ("started(1)", DONE, True),
        ("post_done(1)", JobCounts(done=1, post_done=1), True),
        ("post_done(1)", JobCounts(done=1, post_err=1), None),
        ("post_err(1)", JobCounts(done=1, post_err=1), True),
        ("post_err(1)", DONE, False),
        ("numdone(1, >=2)", ARRAY, True),
        ("numdone(1, 9)", ARRAY, False),
        ("numdone(1, *)", ARRAY, None),
        ("numdone(1, 10)", ARRAY, None),
        ("numdone(1, <2)", ARRAY, None),
        ("numexit(1, >7)", ARRAY, False),
        ("numended(1, *)", ARRAY, False),
        ("numpend(1, 4)", ARRAY, True),
        ("numhold(1, 0)", ARRAY, False),
        ("numrun(1, >7)", ARRAY, None),
        ("numstart(1, 2)", ARRAY, True),
        ("numpend(1, 1)", DONE, None),
        ('external(1, "ready")', JobCounts(start=1, messages=("ready at 5",)), True),
        ('external(1, "x")', RUNNING, False),
    ],
)
def test_answers(text: str, counts: JobCounts, answer: bool | None) -> None:
    question = parse(text)
    assert isinstance(question, Question)
    assert judge(question, [counts]) is answer


def test_a_name_with_several_jobs_needs_them_all():
    question = parse("done(sim*)")
    assert isinstance(question, Question)
    assert judge(question, [DONE, DONE]) is True
    assert judge(question, [DONE, PENDING]) is False
    assert judge(question, [DONE, FAILED]) is None
    assert judge(question, []) is None


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("t && f", False),
        ("t && n", None),
        ("f && n", None),
        ("t || n", True),
        ("f || n", False),
        ("n || n", None),
        ("!n", True),
        ("!t", False),
    ],
)
def test_three_values(text, answer):
    values = {"t": True, "f": False, "n": None}
    assert evaluate(parse(text), lambda question: values[question.ref.name]) is answer


@given(st.text(alphabet="done(1a\"*[])&|!<>=, '", max_size=60) | st.text(max_size=60))
def test_any_text_parses_or_is_refused(text):
    try:
        tree = parse(text)
    except DependencyError as error:
        refused = str(error)
    else:
        refused = ""
    assert "\n" not in refused
    assert refused or evaluate(tree, lambda question: True) in (True, False)


ATOMS = st.sampled_from(["105", "done(a)", "numdone(x, >= 3)", 'ended("b c")', "exit(7[2], !=1)"])


def joined(inner):
    pairs = st.tuples(inner, inner)
    return inner.map("!{}".format) | pairs.map("({0[0]} && {0[1]})".format) | pairs.map("{0[0]}||{0[1]}".format)


TEXTS = st.recursive(ATOMS, joined)


@given(TEXTS)
def test_well_formed_conditions_parse(text):
    parse(text)
