"""``-a "modules(…)"``, conda, venv and container: what is taken and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lavad.core.decide.submit import esubs
from lavad.core.lang.asks import Refused
from tests.support.worlds.bench import Bench


def taken(text: str) -> tuple[tuple[str, ...], ...]:
    """What the text of a job has of one ``-a``."""
    found = [esubs.step_of(*one) for one in esubs.names(text) if one[0] in esubs.SOFTWARE]
    return esubs.in_order(found)


def test_what_is_taken() -> None:
    """In the order in which they surround the command, whatever order they are given in."""
    assert taken("mpi venv(/v) modules(gcc/12 openmpi)") == (("modules", "gcc/12", "openmpi"), ("venv", "/v"))
    assert taken("conda(my env)") == (("conda", "my env"),)
    assert taken("conda(x) container(/i.sif, runner=apptainer, pull=never)") == (
        ("container", "/i.sif", "apptainer", "never"),
        ("conda", "x"),
    )
    assert taken("container(docker://a/b:1)") == (("container", "docker://a/b:1", "", "missing"),)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("mpi pytorch(gpu)", "mpi and pytorch: a job's tasks are started in one way; give one of them with -a"),
        ("modules", '-a modules needs something in parentheses, as in -a "modules(gcc/12 openmpi)"'),
        ("venv()", "-a venv needs something"),
        ("modules(a;b)", "Bad module name"),
        ("modules(-f)", "Bad module name"),
        ("container(x runner=docker)", "where lava can neither limit nor end them"),
        ("container(x runner=lxc)", "the runners are apptainer, singularity, podman, unshare"),
        ("container(x pull=often)", "pull is one of"),
        ("container(x y)", "only runner=… and pull=… may follow the image"),
        ("container(--privileged)", "Bad image"),
        ("conda(-x)", "Bad name"),
        ("conda(a) venv(/b)", "a job has one of them"),
        ("venv(/a) venv(/b)", "given twice"),
        ("mpi(", "mpi(: Bad -a specification: a parenthesis is missing"),
        ("venv(/a", "venv(/a: Bad -a specification: a parenthesis is missing"),
        ("pytorch gpu)", "pytorch gpu): Bad -a specification: a parenthesis is missing"),
        ("mpi(gpu)", "mpi(gpu): -a mpi takes no words in parentheses"),
    ],
)
def test_what_is_refused_by_name(bench: Bench, text: str, why: str) -> None:
    with pytest.raises(Refused) as refused:
        bench.bsub(a=[text])
    assert why in refused.value.text


@pytest.mark.parametrize(
    "program", ["./prune", "prunes.py", "accelerated", "srunner -x", "/opt/mpirunner", "mpirun_test", "echo mpirun"]
)
@pytest.mark.parametrize("name", ["mpi", "pytorch", "torchrun"])
def test_programs_whose_names_begin_like_a_launcher_are_taken(bench: Bench, name: str, program: str) -> None:
    bench.bsub(command=program, a=[name])


@pytest.mark.parametrize("name", ["mpi", "pytorch"])
@pytest.mark.parametrize(
    "program", ["mpirun", "/usr/bin/mpiexec.hydra -n 4 x", "mpirun_rsh x", "mpirun-4.1 x", "srun x", "prun x"]
)
def test_launchers_are_not_started_as_ranks(bench: Bench, name: str, program: str) -> None:
    with pytest.raises(Refused, match="starts every rank itself"):
        bench.bsub(command=program, a=[name])


@given(st.text(max_size=60), st.sampled_from(esubs.SOFTWARE))
def test_nothing_else_comes_through(inside: str, name: str) -> None:
    try:
        step = esubs.step_of(name, inside)
    except Refused:
        return
    assert step[0] == name
    assert not any(char in value for value in step for char in "\t\n\0")
    assert not step[1].startswith("-")
