"""The string of bsub -gpu."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lavad.core.lang.gpureq import GpuReq, GpuReqError, merge, mig_sizes, model_of, parse, show

WORDS = [
    "num=2",
    "num=4/task",
    "num=1/host",
    "mode=shared",
    "mode=exclusive_process",
    "mps=yes,shared,nocvd",
    "mps=per_gpu",
    "mps=no",
    "j_exclusive=yes",
    "aff=no",
    "block=yes",
    "gpack=no",
    "gvendor=nvidia",
    "gmodel=TeslaK80-12G",
    "gtile=2",
    "gtile='!'",
    "gmem=10G",
    "gmem=512",
    "glink=yes",
    "nvlink=yes",
    "mig=3/2",
]


@pytest.mark.parametrize("word", WORDS)
def test_each_option_shows_what_it_read(word):
    req = parse(word)
    assert req != GpuReq()
    assert parse(show(req)) == req


def test_the_options_together():
    req = parse("num=2/task:mode=exclusive_process:mps=yes,share:gmem=10G:gmodel=K80-12G")
    assert (req.num, req.per, req.mps, req.gmem_mb) == (2, "task", "yes,shared", 10240.0)
    assert model_of(req) == ("K80", 12288.0)
    assert model_of(parse("gmodel=NVIDIAA100_SXM4_40GB")) == ("NVIDIAA100_SXM4_40GB", None)
    assert parse("gmem=2", unit_mb=1024).gmem_mb == 2048


def test_a_dash_names_nothing_and_takes_the_levels_one_by_one():
    merged = merge(parse("-"), parse("gmem=1G"), parse("num=4/task:mode=shared"), parse("num=8:mps=yes"))
    assert show(merged) == "num=4/task:mode=shared:mps=yes:j_exclusive=no:gmem=1024M"
    assert show(merge(parse("-"))) == "num=1:mode=shared:mps=no:j_exclusive=no"
    assert show(parse("-")) == "-"


def test_the_unit_of_num_comes_from_its_own_level():
    assert merge(parse("num=2"), parse("num=1/task")).per == "host"


def test_an_exclusive_process_excludes_other_jobs():
    assert merge(parse("mode=exclusive_process:j_exclusive=no")).j_exclusive is True


def test_blocks_come_before_nearness() -> None:
    assert merge(parse("block=yes:aff=yes")).aff is False
    assert merge(parse("block=no:aff=yes")).aff is True


@pytest.mark.parametrize(("text", "sizes"), [("num=1", None), ("mig=3", (3, 1)), ("mig=3/2", (3, 2)), ("mig=7/7", (7, 7))])
def test_a_compute_instance_that_is_not_named_has_one_slice(text: str, sizes: object) -> None:
    assert mig_sizes(parse(text)) == sizes


@given(
    st.lists(st.sampled_from(WORDS), max_size=5).map(":".join) | st.text(alphabet="num=1/task:gemps,!'-", max_size=30) | st.text()
)
def test_any_text_parses_or_is_refused(text):
    try:
        req = parse(text)
    except GpuReqError:
        return
    assert show(req) == "-" or parse(show(req)) == req
