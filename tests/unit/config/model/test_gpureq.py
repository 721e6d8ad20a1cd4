"""The text of bsub -gpu, GPU_REQ and LSB_GPU_REQ."""

import pytest

from config.model.gpureq import GpuReq, GpuReqError, parse, why_not

BAD = {
    "": "an option is missing",
    ":": "an option is missing",
    "num=1::mode=shared": "an option is missing",
    "foo=1": "there is no option foo",
    "Num=1": "there is no option Num",
    "num": "num is a number from 1",
    "num=0": "num is a number from 1",
    "num=-1": "num is a number from 1",
    "num=1.5": "num is a number from 1",
    "num=x": "num is a number from 1",
    "num=1000000": "num is a number from 1",
    "num=1/slot": "num is a number from 1",
    "num=1/": "num is a number from 1",
    "mode=x": "mode is shared or exclusive_process",
    "mode=exclusive_thread": "mode is shared or exclusive_process",
    "mps=maybe": "mps is yes, per_socket or per_gpu",
    "mps=no,shared": "mps is yes",
    "mps=yes,all": "mps is yes",
    "j_exclusive=1": "j_exclusive is yes or no",
    "j_exclusive": "j_exclusive is yes or no",
    "aff=maybe": "aff is yes or no",
    "block=2": "block is yes or no",
    "gpack=Y": "gpack is yes or no",
    "gvendor=intel": "gvendor is nvidia or amd",
    "gmodel=": "gmodel is a model's name",
    "gmodel=Tesla K80": "gmodel is a model's name",
    "gtile=0": "gtile is a number above 0",
    "gtile=x": "gtile is a number above 0",
    "gmem=": "gmem is a size above 0",
    "gmem=0": "gmem is a size above 0",
    "gmem=-1G": "gmem is a size above 0",
    "gmem=1Q": "gmem is a size above 0",
    "gmem=9999999E": "gmem is a size above 0",
    "glink=no": "glink is yes",
    "nvlink=no": "nvlink is yes",
    "mig=": "mig is GI or GI/CI",
    "mig=0": "mig is GI or GI/CI",
    "mig=5": "mig is GI or GI/CI",
    "mig=1/2": "mig is GI or GI/CI",
    "mig=4/3": "mig is GI or GI/CI",
    "mig=7/5": "mig is GI or GI/CI",
    "mig=7/6": "mig is GI or GI/CI",
    "mig=1g.10gb": "mig is GI or GI/CI",
    "num=1:num=2": "num is given twice",
    "glink=yes:nvlink=yes": "nvlink is given twice",
    "num=1 mode=shared": "num is a number from 1",
    "gmodel=" + "x" * 2000: "longer than 1024 characters",
}


@pytest.mark.parametrize(("text", "why"), BAD.items())
def test_what_is_wrong_is_named_in_one_line(text: str, why: str) -> None:
    with pytest.raises(GpuReqError) as raised:
        parse(text)
    assert str(raised.value).startswith("Bad GPU requirement")
    assert why in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("text", ["num=1\nnum=x", "foo\tbar=1", "mode=\u2028"])
def test_blanks_of_all_kinds_are_shown_as_one(text: str) -> None:
    with pytest.raises(GpuReqError) as raised:
        parse(text)
    assert len(str(raised.value).splitlines()) == 1


def test_a_dash_and_quotes() -> None:
    assert parse("-") == parse('"-"') == GpuReq()
    assert parse("\"num=2:gtile='!'\"") == GpuReq(num=2, per="host", gtile=0)


@pytest.mark.parametrize("text", ["mig=1", "mig=7", "mig=3/2", "mig=2/2", "mig=7/7", "mig=4/4"])
def test_mig_sizes_that_there_are(text: str) -> None:
    assert why_not(parse(text)) == ""


def test_what_cannot_be_had() -> None:
    assert "gvendor=amd is not supported by lava" in why_not(parse("gvendor=amd"))
    assert "exclude each other" in why_not(parse("mig=1:glink=yes"))
    assert why_not(parse("num=2:mps=per_gpu:block=yes:gvendor=nvidia")) == ""
