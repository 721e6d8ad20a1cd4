"""Select expressions on hosts' values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lavad.core.lang.resreq.eval import compile_select
from lavad.core.lang.resreq.text import expr_text, parse

HOST: dict[str, float | str | bool] = {
    "mem": 8192.0,
    "ncpus": 8,
    "r1m": 0.5,
    "tmp": 100.0,
    "type": "linux",
    "model": "IntelI5",
    "hname": "node-01",
    "os": "rhel8",
    "cs": True,
    "fs": False,
    "ver": "10.1",
    "linux": True,
    "healthy": 1,
    "status": "ok",
    "empty": "",
}


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("mem>4G", True),
        ("mem>8G", False),
        ("mem>=8G", True),
        ("mem>1T", False),
        ("ncpus*2 >= 16", True),
        ("ncpus/2 == 4", True),
        ("mem - 192 == 8000", True),
        ("2+3*4==14", True),
        ("(2+3)*4==20", True),
        ("10-4-3==3", True),
        ("-ncpus<0", True),
        ("ncpus/0>1", False),
        ("cs", True),
        ("fs", False),
        ("!fs", True),
        ("cs && !fs", True),
        ("cs||nosuch", True),
        ("nosuch", False),
        ("nosuch>1", False),
        ("nosuch!=1", False),
        ("!(nosuch>1)", True),
        ("nosuch+1>0", False),
        ("defined(mem)", True),
        ("defined(nosuch)", False),
        ("type==linux", True),
        ("type==any", True),
        ("type==local", True),
        ("type!=local", False),
        ("type!=any", False),
        ("type==aix", False),
        ("model==IntelI5", True),
        ("hname==node-01", True),
        ("hname!='node-01'", False),
        ('hname=="node-02"', False),
        ("os==rhel8", True),
        ("os!=rhel7", True),
        ("ver==10.1", True),
        ("os>1", False),
        ("os==8", False),
        ("healthy==1", True),
        ("cs==1", True),
        ("status==ok", True),
        ("login<5", False),
        ("cpu<1", True),
        ("empty", False),
        ("os", True),
        ("mem==r1m", False),
        ("'a'=='a'", True),
        ("os+1==2", False),
    ],
)
def test_what_a_host_says(text, fits):
    expr = parse(text).select
    assert compile_select(expr, "linux")(HOST) is fits


def test_a_word_beside_a_text_is_no_resource():
    assert compile_select(parse("os==linux").select)({"os": "linux", "linux": True}) is True


def test_local_means_the_submission_hosts_type():
    assert compile_select(parse("type==local").select, "aix")(HOST) is False
    assert compile_select(parse("type!=local").select, "aix")(HOST) is True
    assert compile_select(parse("type==local").select)(HOST) is True


def test_values_come_through():
    assert compile_select(parse("mem/2+1==4097").select)(HOST) is True
    assert compile_select(parse("nosuch*2").select)(HOST) is False
    assert compile_select(None)({}) is True


NUMBERS = st.sampled_from(["1", "2.5", "3", "mem", "ncpus", "4G", "nosuch"])
SUMS = st.recursive(
    NUMBERS,
    lambda inner: st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda t: f"({t[0]}{t[1]}{t[2]})"),
    max_leaves=6,
)
TESTS = st.tuples(SUMS, st.sampled_from(["==", "!=", "<", ">=", "<=", ">"]), SUMS).map(" ".join) | st.sampled_from(
    ["cs", "type==any", "defined(mem)"]
)
EXPRS = st.recursive(
    TESTS,
    lambda inner: (
        inner.map("!({})".format)
        | st.tuples(inner, st.sampled_from(["&&", "||"]), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})")
    ),
    max_leaves=8,
)


@given(EXPRS)
def test_text_and_tree_agree(text):
    expr = parse(text).select
    assert expr is not None
    assert parse(expr_text(expr)).select == expr
    assert compile_select(expr, "linux")(HOST) in (True, False)


@given(EXPRS)
def test_logic_is_pythons(text):
    expr = parse(text).select
    fits = compile_select(expr, "linux")
    assert compile_select(parse(f"!({text})").select, "linux")(HOST) is not fits(HOST)
