"""Resource requirements: sections, canonical text, merging, names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lavad.core.lang.resreq.sections import Cu, RusageItem, Span
from lavad.core.lang.resreq.text import ResReq, ResReqError, combine, merge, parse, show, unknown_names

GOOD = [
    "mem>10",
    "select[mem>4G && tmp>=500M]",
    "select[type==any] order[-ut:mem] rusage[mem=20,duration=60,decay=1] span[ptile=2]",
    "swp > 15 && hpux order[ut]",
    "select[hname!='host06-x12' && ngpus>0 && defined(scratch) && healthy==1]",
    'select[hname=="ol1" || !(a - b*2 > -3)]',
    "hname==node-01.example.com",
    "type==local",
    "filter[mem>1]",
    "rusage[mem=20||mem=30]",
    "rusage[mem=20:swp=50:duration=1h, license=1:duration=2]",
    "rusage[mem=4G/task:lic=1/job:tmp=1/host]",
    "rusage[mem=5:duration=90s]",
    "order[-slots:maxslots]",
    "order[!mem]",
    "span[hosts=1]",
    "span[hosts=-1]",
    "span[block=4]",
    "span[stripe]",
    "span[stripe=2]",
    "span[ptile='!',HP:8,DELL:4]",
    "span[ptile=4:gtile=2]",
    "span[gtile='!']",
    "same[type:model]",
    "cu[type=enclosure:pref=maxavail:maxcus=2]",
    "cu[pref=bestfit:usablecuslots=4:balance:excl]",
    "affinity[core(1,exclusive=(core,alljobs))*2:cpubind=core:membind=localonly:distribute=pack]",
    "affinity[thread*2]",
    "affinity[numa(1,same=numa):distribute=pack(socket=1)]",
    "rusage[ngpus_physical=2]",
    "2*{select[a] rusage[mem=1] span[ptile=1]}+4*{mem>1}",
    "1*{a}+{b}",
    "{mem>1} || {2*{a}+{b}}@5",
    "",
]


@pytest.mark.parametrize("text", GOOD)
def test_the_text_parses_back_to_the_same(text):
    req = parse(text)
    assert parse(req.text) == req
    assert parse(show(req)).text == req.text


@pytest.mark.parametrize(
    "text",
    [
        "select[mem",
        "mem>",
        "mem>>1",
        "foo[x]",
        "select[]",
        "a b",
        "mem>1GG",
        "mem>1B",
        "a=b",
        "order[]",
        "order[a,b]",
        "rusage[]",
        "rusage[mem]",
        "rusage[mem=x]",
        "rusage[mem=-1]",
        "rusage[mem=20,duration=1:00]",
        "rusage[duration=5]",
        "rusage[mem=1:mem=2]",
        "rusage[mem=1/slot]",
        "rusage[mem=1:decay=2]",
        "rusage[mem=1||]",
        "span[hosts=2]",
        "span[ptile=0]",
        "span[foo=1]",
        "span[]",
        "span[hosts=1] span[ptile=2]",
        "same[]",
        "cu[foo]",
        "cu[maxcus=0]",
        "affinity[]",
        "affinity[core(0)]",
        "affinity[core:cpubind=x]",
        "affinity[disk(1)]",
        "{a",
        "2*{a}+4*{b",
        "2*{a}||{b}",
        "{a}+{b}",
        "0*{a}",
        "2*{a}{b}",
        "2*{a} rusage[mem=1]",
        "2*{a}+1*{b}@3",
        "a<b<c",
        "select[a]]",
        "mem>1 ]",
        "((((a",
        "{{{{{a}}}}}",
        "1e5>mem",
        "'x",
    ],
)
def test_bad_syntax_is_one_line(text):
    with pytest.raises(ResReqError, match=r": Bad resource requirement syntax$") as error:
        parse(text)
    assert "\n" not in str(error.value)
    assert error.value.detail


@pytest.mark.parametrize(
    "text",
    [
        "(" * 8000,
        "(" * 4000 + "a" + ")" * 3999,
        "!(" * 2000 + "a" + ")" * 2000,
        "!" * 8000 + "a",
        "a" + "+a" * 4000,
        "-" * 5000 + "1",
        "{" * 8000,
        "a" * 9000,
        "a[" * 4000,
    ],
)
def test_depth_and_length_are_bounded(text):
    with pytest.raises(ResReqError):
        parse(text)


def test_parentheses_alone_do_not_nest():
    assert parse("(" * 4000 + "a" + ")" * 4000).text == "select[a]"


def test_long_flat_expressions_are_fine():
    select = parse(" || ".join(f"hname==node{n}" for n in range(400))).select
    assert select is not None
    assert len(select) == 401


def test_rusage_amounts_durations_and_what_they_belong_to():
    (first,) = parse("rusage[mem=4G/task:swp=50:duration=1h:decay=1, lic=1:duration=2]").rusage
    assert first.uses == (
        RusageItem("mem", 4096.0, "task", 3600, True),
        RusageItem("swp", 50.0, "", 3600, True),
        RusageItem("lic", 1.0, "", 120),
    )
    (loose,) = parse("rusage[mem=20,duration=60,decay=1]").rusage
    assert loose.uses == (RusageItem("mem", 20.0, "", 3600, True),)
    assert [alternative.amount("mem") for alternative in parse("rusage[mem=20||mem=30]").rusage] == [20.0, 30.0]


def test_sections_as_structures():
    req = parse("order[-ut:cpu:!mem] span[ptile='!',HP:8] same[type:model] cu[type=rack:balance]")
    assert req.order == (("ut", True), ("r1m", False), ("!mem", False))
    assert req.span == Span("ptile", 0, (("HP", 8),))
    assert req.same == ("type", "model")
    assert req.cu == Cu("rack", balance=True)


def test_compound_and_alternatives():
    assert [count for count, _ in parse("2*{a}+{b}").compound] == [2, 0]
    assert [wait for _, wait in parse("{a}||{b}@4").alternatives] == [0, 240]
    assert parse("{a}") == parse("a")


def test_plain_memory_counts_in_the_sites_unit():
    req = parse("mem>4 && ncpus>4 rusage[mem=2:lic=2]", 1024.0)
    assert req == parse("mem>4096 && ncpus>4 rusage[mem=2048:lic=2]")
    assert parse("mem>4M rusage[mem=2M]", 1024.0) == parse("mem>4M rusage[mem=2]")


@pytest.mark.parametrize(
    ("texts", "merged"),
    [
        ([], ""),
        (["mem>1 ||  a"], "mem>1 ||  a"),
        (["mem>1", "swp>2"], "select[mem>1 && swp>2]"),
        (["mem>1||a", "select[b]"], "select[(mem>1 || a) && b]"),
        (["rusage[mem=5:duration=3]", "rusage[mem=6:lic=1]"], "rusage[mem=6:duration=3,lic=1]"),
        (["rusage[mem=1]", "rusage[a=1||b=1]"], "rusage[mem=1:a=1||mem=1:b=1]"),
        (["span[ptile=2]", "span[ptile=4]"], "span[ptile=4]"),
        (["order[r15m]", "order[ut]"], "order[r15m:ut]"),
        (["same[type]", "span[hosts=1]", "type==any"], "select[type==any] span[hosts=1] same[type]"),
    ],
)
def test_several_strings_become_one(texts, merged):
    assert merge(texts) == merged


def test_strings_that_are_too_long_together_are_refused_before_any_is_read():
    with pytest.raises(ResReqError, match="longer than 8192 characters"):
        merge(["select[mem>1]"] * 700 + ["select["])


def test_merged_strings_are_in_plain_megabytes():
    assert merge(["rusage[mem=2]"], 1024.0) == "rusage[mem=2048]"
    assert merge(["rusage[mem=2]", "rusage[swp=4M]"], 1024.0) == "rusage[mem=2048:swp=4]"


@pytest.mark.parametrize("texts", [["span[ptile=2]", "span[hosts=1]"], ["2*{a}+{b}", "mem>1"], ["rusage[a=1||b=1]"] * 2])
def test_what_cannot_be_merged(texts):
    with pytest.raises(ResReqError):
        merge(texts)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ('"rusage[mem=32]"', "rusage[mem=32]"),
        (" 'span[hosts=1] rusage[mem=8]' ", "span[hosts=1] rusage[mem=8]"),
        ('"mem>10"', "mem>10"),
        ("select[\"mem>10 && hname=='a-1'\"]", "select[mem>10 && hname=='a-1']"),
    ],
)
def test_a_requirement_in_quotes_as_a_whole_is_what_is_in_them(given, meant):
    """As programs pass it that quote for a shell and use none: a text would be a condition that holds on every host."""
    assert parse(given) == parse(meant)
    assert merge([given]) in (meant, given)


def test_texts_that_are_compared_keep_their_quotes():
    assert parse('"a-1" == hname').text == parse('select["a-1" == hname]').text
    assert parse("\"a-1\" == hname && model != 'b'").text == parse("select[\"a-1\" == hname && model != 'b']").text


def test_levels_combine_as_in_lsf():
    queue = parse("select[a] order[ut] rusage[mem=200:lic=1:duration=20:decay=1] span[hosts=1]")
    job = parse("select[b] rusage[mem=100] span[ptile=2]")
    assert combine(queue, job).text == "select[a && b] order[ut] rusage[mem=100:lic=1:duration=20:decay=1] span[ptile=2]"
    assert combine(queue, parse("")) == combine(queue) == queue
    assert combine(parse("a"), parse("2*{b}+{c}")) == parse("2*{a && b}+{a && c}")
    assert combine(parse("2*{b}+{c}"), ResReq()) == parse("2*{b}+{c}")


def test_show_prints_two_digits():
    assert show(parse("rusage[mem=50] mem>1")) == "select[mem>1] rusage[mem=50.00]"


def test_unknown_names_are_found_everywhere():
    req = parse("nosuch>1 && os==linux && hname==x && defined(d) order[z:!mem] rusage[lic=1:mem=1] same[s]")
    assert unknown_names(req, {"os"}) == ["nosuch", "d", "z", "lic", "s"]
    assert unknown_names(parse("2*{q>1}+{mem>1}"), ()) == ["q"]
    assert unknown_names(parse("swap>1 && login<5 && cpu<1 && idle>3"), ()) == []


@given(st.integers(0, 10**15), st.integers(0, 10**9), st.sampled_from(["", "K", "M", "G", "T", "E", "ZB"]))
def test_amounts_survive_their_text(whole, part, unit):
    for text in (f"rusage[mem={whole}.{part}{unit}]", f"mem>{whole}.{part}{unit}"):
        for unit_mb in (1 / 1024, 1.0, 1024.0):
            try:
                req = parse(text, unit_mb)
            except ResReqError:
                continue
            assert parse(req.text) == req


PIECES = st.sampled_from(
    [*GOOD, "&&", "||", "(", ")", "{", "}", "]", "select[", "rusage[", "mem", "=", ":", ",", "'", "2*{", "+", "@3", "!"]
)


@given(st.lists(PIECES, max_size=8).map(" ".join) | st.lists(PIECES, max_size=8).map("".join) | st.text(max_size=80))
def test_any_text_parses_or_is_refused(text):
    try:
        req = parse(text)
    except ResReqError as error:
        refused = str(error)
    else:
        refused = ""
    assert "\n" not in refused
    if refused:
        return
    assert parse(req.text) == req
    combine(req, req)
    unknown_names(req, ())
