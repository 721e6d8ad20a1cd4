"""rusage[ngpus_physical=N] and its kin ask for GPUs as -gpu does."""

from __future__ import annotations

import pytest

from lavad.core.lang.asks import Refused
from lavad.core.lang.gpureq import show
from tests.support.worlds.bench import Bench


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"R": "rusage[ngpus_physical=2]"}, "num=2:mode=shared:mps=no:j_exclusive=no"),
        ({"R": "select[ngpus>0] rusage[ngpus_excl_p=1:mem=5]"}, "num=1:mode=exclusive_process:mps=no:j_exclusive=yes"),
        ({"R": "rusage[ngpus_shared=1/task]"}, "num=1/task:mode=shared:mps=no:j_exclusive=no"),
        ({"R": "rusage[ngpus_physical=2]", "gpu": "num=1"}, "num=1:mode=shared:mps=no:j_exclusive=no"),
    ],
)
def test_gpus_in_rusage(bench: Bench, options, wanted) -> None:
    gpu = bench.cluster.spec_of(bench.bsub(**options)["job"]).gpu
    assert gpu is not None
    assert show(gpu) == wanted


@pytest.mark.parametrize(
    "text", ["rusage[ngpus_physical=1.5]", "1*{rusage[ngpus_physical=1]}+1*{}", "rusage[ngpus_physical=1 || mem=1]"]
)
def test_gpus_that_cannot_be(bench: Bench, text) -> None:
    with pytest.raises(Refused, match="GPUs"):
        bench.bsub(R=text)


def test_none_asked(bench: Bench) -> None:
    assert bench.cluster.spec_of(bench.bsub(R="select[ngpus>0] rusage[ngpus_physical=0]")["job"]).gpu is None
