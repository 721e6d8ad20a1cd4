"""The PMI-1 server against a scripted client: every command, and nonsense."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.starter.mpi.pmi import Pmi
from agent.starter.mpi.pmi1 import fields_of
from agent.starter.mpi.pmi_job import Abort, Barrier, Broken, Send

MAPPING = "(vector,(0,2,2))"
NAME = "lava_c_1_1_abc"
BY_INDEX = "cmd=getbyidx_results"


@pytest.fixture
def pmi() -> Pmi:
    return Pmi("lava_c_1_1_abc", 4, MAPPING, [0, 1])


def ask(pmi: Pmi, rank: int, line: str) -> str:
    actions = pmi.feed(rank, line.encode() + b"\n")
    assert all(isinstance(a, Send) and a.rank == rank for a in actions)
    return "".join(a.data.decode() for a in actions if isinstance(a, Send))


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("cmd=init pmi_version=1 pmi_subversion=1", "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"),
        ("cmd=get_maxes", "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n"),
        ("cmd=get_appnum", "cmd=appnum appnum=0\n"),
        ("cmd=get_universe_size", "cmd=universe_size size=4\n"),
        ("cmd=get_my_kvsname", "cmd=my_kvsname kvsname=lava_c_1_1_abc\n"),
        (f"cmd=get kvsname={NAME} key=PMI_process_mapping", f"cmd=get_result rc=0 msg=success value={MAPPING}\n"),
        ("cmd=get kvsname=other key=a", "cmd=get_result rc=-1 msg=key_a_not_found value=unknown\n"),
        ("cmd=get kvsname=lava_c_1_1_abc key=no", "cmd=get_result rc=-1 msg=key_no_not_found value=unknown\n"),
        (f"cmd=getbyidx kvsname={NAME} idx=0", f"{BY_INDEX} rc=0 nextidx=1 key=PMI_process_mapping val={MAPPING}\n"),
        ("cmd=getbyidx kvsname=lava_c_1_1_abc idx=1", "cmd=getbyidx_results rc=-1 reason=no_more_keyvals\n"),
        ("cmd=put kvsname=wrong key=a value=b", "cmd=put_result rc=-1 msg=no_such_kvs\n"),
        (f"cmd=put kvsname=lava_c_1_1_abc key=a value={'x' * 1025}", "cmd=put_result rc=-1 msg=value_too_long\n"),
        (f"cmd=put kvsname=lava_c_1_1_abc key={'k' * 65} value=x", "cmd=put_result rc=-1 msg=bad_key\n"),
        ("cmd=create_kvs", "cmd=newkvs rc=-1 msg=one_space_only\n"),
        ("cmd=destroy_kvs kvsname=x", "cmd=kvs_destroyed rc=-1 msg=one_space_only\n"),
        ("cmd=publish_name service=s port=p", "cmd=publish_result rc=-1 info=notok msg=names_are_not_offered\n"),
        ("cmd=unpublish_name service=s", "cmd=unpublish_result rc=-1 info=notok msg=names_are_not_offered\n"),
        ("cmd=lookup_name service=s", "cmd=lookup_result rc=-1 info=notok msg=names_are_not_offered\n"),
        ("cmd=initack pmiid=1", "cmd=initack rc=0\ncmd=set size=4\ncmd=set rank=1\ncmd=set debug=0\n"),
        ("mcmd=spawn\nnprocs=2\nendcmd", "cmd=spawn_result rc=-1 msg=spawn_is_not_offered\n"),
        ("cmd=finalize", "cmd=finalize_ack\n"),
        ("cmd=dance", "cmd=dance_result rc=-1 msg=unknown_command\n"),
        ("", "cmd=unknown_result rc=-1 msg=unknown_command\n"),
    ],
)
def test_every_command(pmi: Pmi, line: str, answer: str) -> None:
    """Scripted client for every command."""
    assert ask(pmi, 1, line) == answer


def test_a_value_is_the_rest_of_the_line(pmi: Pmi) -> None:
    assert ask(pmi, 0, "cmd=put kvsname=lava_c_1_1_abc key=bc value=a b=c d") == "cmd=put_result rc=0 msg=success\n"
    assert ask(pmi, 1, "cmd=get kvsname=lava_c_1_1_abc key=bc").endswith("value=a b=c d\n")


def test_a_barrier_carries_the_puts_once_and_releases_all(pmi: Pmi) -> None:
    ask(pmi, 0, "cmd=put kvsname=lava_c_1_1_abc key=k0 value=v0")
    assert pmi.feed(0, b"cmd=barrier_in\n") == []
    assert pmi.feed(1, b"cmd=barrier_in\n") == [Barrier({"k0": "v0"})]
    released = pmi.release({"k0": "v0", "k2": "v2"})
    assert released == [Send(0, b"cmd=barrier_out\n"), Send(1, b"cmd=barrier_out\n")]
    assert ask(pmi, 0, "cmd=get kvsname=lava_c_1_1_abc key=k2").endswith("value=v2\n")
    pmi.feed(1, b"cmd=barrier_in\n")
    assert pmi.feed(0, b"cmd=barrier_in\n") == [Barrier({})]


def test_abort_and_unfinished(pmi: Pmi) -> None:
    assert not pmi.unfinished(0)
    ask(pmi, 0, "cmd=init pmi_version=1 pmi_subversion=1")
    assert pmi.unfinished(0)
    assert pmi.feed(0, b"cmd=abort exitcode=7\n") == [Abort(0, 7, "")]
    assert pmi.feed(0, b"cmd=abort exitcode=x error_msg=out of luck\n") == [Abort(0, 1, "out of luck")]
    ask(pmi, 0, "cmd=finalize")
    assert not pmi.unfinished(0)


def test_lines_come_in_pieces(pmi: Pmi) -> None:
    assert pmi.feed(0, b"cmd=get_ap") == []
    assert pmi.feed(0, b"pnum\ncmd=get_appnum\nc") == [Send(0, b"cmd=appnum appnum=0\n")] * 2


def test_a_line_without_end_breaks_the_rank_only(pmi: Pmi) -> None:
    actions = pmi.feed(0, b"x" * 70_000)
    assert actions == [Broken(0, "rank 0 sent a PMI line without an end")]


def test_a_rank_has_begun_from_its_first_init_on(pmi: Pmi) -> None:
    ask(pmi, 0, "cmd=get_maxes")
    assert not pmi.begun(0)
    ask(pmi, 0, "cmd=init pmi_version=1 pmi_subversion=1")
    ask(pmi, 0, "cmd=finalize")
    assert pmi.begun(0)
    assert not pmi.begun(1)


@given(st.lists(st.binary(max_size=60), max_size=20))
def test_nothing_a_rank_sends_can_raise(chunks: list[bytes]) -> None:
    pmi = Pmi("k", 2, "", [0, 1])
    for chunk in chunks:
        pmi.feed(0, chunk)


NAMES = st.text("abcdefg", min_size=1, max_size=5)


@given(st.dictionaries(NAMES, st.text("xyz=.:#", max_size=8), max_size=5), st.text("pq r=", max_size=9))
def test_fields_round_trip(fields: dict[str, str], value: str) -> None:
    line = " ".join(f"{k}={v}" for k, v in fields.items()) + f" value={value}x"
    assert fields_of(line) == {**fields, "value": f"{value}x"}
