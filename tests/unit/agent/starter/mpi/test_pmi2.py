"""The PMI-2 server against a scripted client: every command, what is hostile, and two versions in one job."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.starter.mpi.pmi import Pmi
from agent.starter.mpi.pmi2 import MAX_WAITS, fields_of
from agent.starter.mpi.pmi_job import MAX_MESSAGE, Abort, Action, Barrier, Broken, Send

MAPPING = "(vector,(0,2,2))"
NAME = "lava_c_1_1_abc"
INIT = b"cmd=init pmi_version=2 pmi_subversion=0\n"
INIT1 = b"cmd=init pmi_version=1 pmi_subversion=1\n"
TAKEN = Send(0, b"cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n")
NO_NAMES = "rc=1;errmsg=names are not offered;"
NO_CONNECT = "rc=1;errmsg=jobs are not connected;"
FINISH = "cmd=finalize;"


def framed(text: str | bytes) -> bytes:
    body = text.encode() if isinstance(text, str) else text
    return b"%6d%b" % (len(body), body)


@pytest.fixture
def pmi() -> Pmi:
    """Two of four ranks, which have said that they speak PMI-2."""
    one = Pmi(NAME, 4, MAPPING, [0, 1])
    for rank in (0, 1):
        assert one.feed(rank, INIT) == [TAKEN._replace(rank=rank)]
    return one


def shown(actions: list[Action]) -> list[tuple[int, str]]:
    """(rank, answer without its length) of actions that only send."""
    found = []
    for action in actions:
        assert isinstance(action, Send)
        assert int(action.data[:6]) == len(action.data) - 6
        found.append((action.rank, action.data[6:].decode()))
    return found


def ask(pmi: Pmi, rank: int, text: str) -> str:
    answers = shown(pmi.feed(rank, framed(text)))
    assert [to for to, _ in answers] == [rank]
    return answers[0][1]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (
            "cmd=fullinit;pmijobid=1;pmirank=7;threaded=FALSE;",
            "cmd=fullinit-response;pmi-version=2;pmi-subversion=0;rank=1;size=4;appnum=0;debugged=FALSE;pmiverbose=FALSE;rc=0;",
        ),
        ("cmd=job-getid;thrid=0x7f;", f"cmd=job-getid-response;thrid=0x7f;jobid={NAME};rc=0;"),
        ("cmd=job-connect;jobid=other;", f"cmd=job-connect-response;{NO_CONNECT}"),
        ("cmd=job-disconnect;jobid=other;", f"cmd=job-disconnect-response;{NO_CONNECT}"),
        ("cmd=kvs-put;key=a;value=b;", "cmd=kvs-put-response;rc=0;"),
        ("cmd=kvs-put;key=a;value=b", "cmd=kvs-put-response;rc=0;"),
        (f"cmd=kvs-put;key=a;value={'x' * 1025};", "cmd=kvs-put-response;rc=1;errmsg=value_too_long;"),
        (f"cmd=kvs-put;key={'k' * 65};value=x;", "cmd=kvs-put-response;rc=1;errmsg=bad_key;"),
        ("cmd=kvs-put;value=x;", "cmd=kvs-put-response;rc=1;errmsg=bad_key;"),
        ("cmd=kvs-get;key=none;", "cmd=kvs-get-response;found=FALSE;rc=0;"),
        ("cmd=kvs-get;", "cmd=kvs-get-response;found=FALSE;rc=0;"),
        (f"cmd=kvs-get;jobid={NAME};srcid=-1;key=PMI_process_mapping;", f"cmd=kvs-get-response;found=TRUE;value={MAPPING};rc=0;"),
        ("cmd=kvs-get;jobid=other;key=PMI_process_mapping;", "cmd=kvs-get-response;found=FALSE;rc=0;"),
        ("cmd=info-getjobattr;key=universeSize;", "cmd=info-getjobattr-response;found=TRUE;value=4;rc=0;"),
        ("cmd=info-getjobattr;key=hasNameServ;", "cmd=info-getjobattr-response;found=TRUE;value=FALSE;rc=0;"),
        ("cmd=info-getjobattr;key=PMI_process_mapping;", f"cmd=info-getjobattr-response;found=TRUE;value={MAPPING};rc=0;"),
        ("cmd=info-getjobattr;key=physTopology;", "cmd=info-getjobattr-response;found=FALSE;rc=0;"),
        ("cmd=info-getnodeattr;key=a;wait=FALSE;", "cmd=info-getnodeattr-response;found=FALSE;rc=0;"),
        ("cmd=info-getnodeattr;key=;wait=TRUE;", "cmd=info-getnodeattr-response;rc=1;errmsg=bad_key;"),
        ("cmd=info-putnodeattr;key=;value=a;", "cmd=info-putnodeattr-response;rc=1;errmsg=bad_key;"),
        ("cmd=name-publish;name=s;port=p;infokeycount=0;", f"cmd=name-publish-response;{NO_NAMES}"),
        ("cmd=name-unpublish;name=s;", f"cmd=name-unpublish-response;{NO_NAMES}"),
        ("cmd=name-lookup;name=s;", f"cmd=name-lookup-response;{NO_NAMES}"),
        ("cmd=spawn;ncmds=1;subcmd=a;maxprocs=2;subcmd=b;", "cmd=spawn-response;rc=1;errmsg=spawn is not offered;"),
        (FINISH, "cmd=finalize-response;rc=0;"),
        ("cmd=dance;thrid=a;;b;", "cmd=dance-response;thrid=a;;b;rc=1;errmsg=unknown command;"),
        ("cmd=a b\n;", "cmd=unknown-response;rc=1;errmsg=unknown command;"),
        ("key=a;", "cmd=unknown-response;rc=1;errmsg=unknown command;"),
        ("", "cmd=unknown-response;rc=1;errmsg=unknown command;"),
    ],
)
def test_every_command(pmi: Pmi, text: str, answer: str) -> None:
    assert ask(pmi, 1, text) == answer


def test_a_spawn_of_several_messages_is_answered_once(pmi: Pmi) -> None:
    sent = framed("cmd=spawn;thrid=3;ncmds=2;") + framed("cmd=spawn-cmd;thrid=3;argv0=a;") * 2
    assert shown(pmi.feed(0, sent)) == [(0, "cmd=spawn-response;thrid=3;rc=1;errmsg=spawn is not offered;")]


def test_a_value_may_have_any_character(pmi: Pmi) -> None:
    assert ask(pmi, 0, "cmd=kvs-put;key=k;value=a=b;;c \n\0;;;").endswith(";rc=0;")
    assert ask(pmi, 1, "cmd=kvs-get;key=k;") == "cmd=kvs-get-response;found=TRUE;value=a=b;;c \n\0;;;rc=0;"
    assert pmi.feed(0, framed(b"cmd=kvs-put;key=k;value=\xff;")) == [Send(0, framed("cmd=kvs-put-response;rc=0;"))]
    assert pmi.feed(1, framed("cmd=kvs-get;key=k;"))[0].data.endswith(b";value=\xff;rc=0;")  # type: ignore[union-attr]


def test_a_fence_carries_the_puts_once_and_releases_all(pmi: Pmi) -> None:
    ask(pmi, 0, "cmd=kvs-put;key=k0;value=v0;")
    assert pmi.feed(0, framed("cmd=kvs-fence;thrid=9;")) == []
    again = "cmd=kvs-fence-response;thrid=8;rc=1;errmsg=the rank is in a fence;"
    assert ask(pmi, 0, "cmd=kvs-fence;thrid=8;") == again
    assert pmi.feed(1, framed("cmd=kvs-fence;")) == [Barrier({"k0": "v0"}, 2)]
    released = pmi.release({"k0": "v0", "k2": "v2"})
    assert shown(released) == [(0, "cmd=kvs-fence-response;thrid=9;rc=0;"), (1, "cmd=kvs-fence-response;rc=0;")]
    assert ask(pmi, 1, "cmd=kvs-get;srcid=3;key=k2;") == "cmd=kvs-get-response;found=TRUE;value=v2;rc=0;"
    pmi.feed(1, framed("cmd=kvs-fence;"))
    assert pmi.feed(0, framed("cmd=kvs-fence;")) == [Barrier({}, 2)]


def test_an_attribute_of_the_host_ends_the_waits_for_it(pmi: Pmi) -> None:
    assert pmi.feed(1, framed("cmd=info-getnodeattr;thrid=1;key=a;wait=TRUE;")) == []
    assert pmi.feed(1, framed("cmd=info-getnodeattr;thrid=2;key=b;wait=true;")) == []
    assert shown(pmi.feed(0, framed("cmd=info-putnodeattr;key=a;value=x;"))) == [
        (0, "cmd=info-putnodeattr-response;rc=0;"),
        (1, "cmd=info-getnodeattr-response;thrid=1;found=TRUE;value=x;rc=0;"),
    ]
    found = "cmd=info-getnodeattr-response;found=TRUE;value=x;rc=0;"
    assert ask(pmi, 0, "cmd=info-getnodeattr;key=a;wait=TRUE;") == found
    assert ask(pmi, 0, "cmd=kvs-get;key=a;") == "cmd=kvs-get-response;found=FALSE;rc=0;"


def test_a_rank_waits_for_so_many_attributes_at_most(pmi: Pmi) -> None:
    for number in range(MAX_WAITS):
        assert pmi.feed(0, framed(f"cmd=info-getnodeattr;key=k{number};wait=TRUE;")) == []
    assert ask(pmi, 0, "cmd=info-getnodeattr;key=x;wait=TRUE;").endswith(";rc=1;errmsg=too many waits;")
    assert len(pmi.feed(1, framed("cmd=info-putnodeattr;key=k0;value=x;"))) == 2
    assert pmi.feed(0, framed("cmd=info-getnodeattr;key=x;wait=TRUE;")) == []


def test_whoever_waits_is_told_that_the_job_ends(pmi: Pmi) -> None:
    """The others of a fence in which one has died, and whoever comes to it afterwards."""
    pmi.feed(0, framed("cmd=info-getnodeattr;thrid=1;key=a;wait=TRUE;"))
    pmi.feed(0, framed("cmd=kvs-fence;thrid=2;"))
    assert shown(pmi.fail("rank 1 ended; so")) == [
        (0, "cmd=kvs-fence-response;thrid=2;rc=1;errmsg=rank 1 ended;; so;"),
        (0, "cmd=info-getnodeattr-response;thrid=1;rc=1;errmsg=rank 1 ended;; so;"),
    ]
    assert ask(pmi, 1, "cmd=kvs-fence;") == "cmd=kvs-fence-response;rc=1;errmsg=rank 1 ended;; so;"
    assert ask(pmi, 1, "cmd=info-getnodeattr;key=a;wait=TRUE;").endswith("rc=1;errmsg=rank 1 ended;; so;")
    assert pmi.release({}) == []


def test_in_pmi_1_nothing_tells_a_rank_in_a_barrier_that_the_job_ends() -> None:
    pmi = Pmi(NAME, 2, MAPPING, [0, 1])
    pmi.feed(0, INIT1 + b"cmd=barrier_in\n")
    assert pmi.fail("rank 1 ended") == []


def test_abort_and_unfinished(pmi: Pmi) -> None:
    assert pmi.begun(0)
    assert pmi.unfinished(0)
    assert pmi.feed(0, framed("cmd=abort;isworld=TRUE;msg=out of luck;")) == [Abort(0, 1, "out of luck")]
    mpich = "Abort(9) on node 0 (rank 0 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 9) - process 0"
    assert pmi.feed(0, framed(f"cmd=abort;isworld=TRUE;msg={mpich};")) == [Abort(0, 9, mpich)]
    assert pmi.feed(0, framed("cmd=abort;exitcode=7;message=bye;")) == [Abort(0, 7, "bye")]
    assert pmi.feed(0, framed("cmd=abort;exitcode=seven;")) == [Abort(0, 1, "")]
    ask(pmi, 0, FINISH)
    assert not pmi.unfinished(0)


def test_the_next_program_of_a_rank_begins_anew(pmi: Pmi) -> None:
    ask(pmi, 0, FINISH)
    assert pmi.feed(0, INIT) == [TAKEN]
    assert ask(pmi, 0, "cmd=job-getid;") == f"cmd=job-getid-response;jobid={NAME};rc=0;"


def test_messages_come_in_pieces_and_together() -> None:
    pmi = Pmi(NAME, 1, MAPPING, [0])
    sent = INIT + framed("cmd=info-getjobattr;key=universeSize;") * 2
    expected = [TAKEN, *[Send(0, framed("cmd=info-getjobattr-response;found=TRUE;value=1;rc=0;"))] * 2]
    assert pmi.feed(0, sent) == expected
    found = []
    pmi = Pmi(NAME, 1, MAPPING, [0])
    for at in range(len(sent)):
        found += pmi.feed(0, sent[at : at + 1])
    assert found == expected


@pytest.mark.parametrize(
    "length", [b"abcdef", b"    -1", b"1 2   ", b"      ", b"cmd=ge", b"+00012", b"%6d" % (MAX_MESSAGE + 1), b"\xff" * 6]
)
def test_a_length_that_is_none_or_too_large_breaks_the_rank_only(pmi: Pmi, length: bytes) -> None:
    found = pmi.feed(0, framed("cmd=job-getid;") + length + b"cmd=x;")
    said = length.decode("ascii", "backslashreplace")
    assert found[1:] == [Broken(0, f"rank 0 sent a PMI-2 message of no valid length: '{said}'")]
    assert ask(pmi, 1, "cmd=job-getid;").endswith("rc=0;")


def test_the_blanks_of_a_length_may_be_behind_it(pmi: Pmi) -> None:
    assert pmi.feed(0, b"13    cmd=finalize;") == [Send(0, framed("cmd=finalize-response;rc=0;"))]


def test_the_longest_message_is_taken(pmi: Pmi) -> None:
    assert ask(pmi, 0, "cmd=dance;x=" + "y" * (MAX_MESSAGE - 12)).startswith("cmd=dance-response;rc=1;")


def test_the_ranks_of_a_job_speak_one_version(pmi: Pmi) -> None:
    why = "rank 2 speaks PMI-1, another rank of the job PMI-2"
    pmi = Pmi(NAME, 4, MAPPING, [2, 3])
    pmi.feed(3, INIT)
    assert pmi.feed(2, INIT1) == [Send(2, b"cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=-1\n"), Broken(2, why)]
    assert not pmi.begun(2)
    pmi = Pmi(NAME, 4, MAPPING, [2, 3])
    pmi.feed(3, INIT1)
    why = "rank 2 speaks PMI-2, another rank of the job PMI-1"
    assert pmi.feed(2, INIT) == [Send(2, b"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n"), Broken(2, why)]


def test_a_rank_that_connects_by_a_port_says_who_it_is_first() -> None:
    pmi = Pmi(NAME, 1, MAPPING, [0])
    assert len(pmi.feed(0, b"cmd=initack pmiid=0\n")) == 4
    assert pmi.feed(0, INIT) == [TAKEN]


@given(st.lists(st.binary(max_size=60), max_size=20), st.booleans())
def test_nothing_a_rank_sends_can_raise(chunks: list[bytes], in_frames: bool) -> None:
    pmi = Pmi("k", 2, "", [0, 1])
    pmi.feed(0, INIT)
    for chunk in chunks:
        pmi.feed(0, framed(chunk) if in_frames else chunk)


COMMANDS = ["kvs-put", "kvs-get", "kvs-fence", "info-putnodeattr", "info-getnodeattr", "spawn", "abort", "finalize", "fullinit"]
KEYS = ["key", "value", "wait", "thrid", "jobid", "exitcode", "cmd"]


@given(
    st.lists(
        st.tuples(st.sampled_from(COMMANDS), st.dictionaries(st.sampled_from(KEYS), st.text(max_size=9), max_size=4)), max_size=12
    )
)
def test_no_request_can_raise_and_every_answer_is_whole(requests: list[tuple[str, dict[str, str]]]) -> None:
    pmi = Pmi("k", 1, "", [0])
    for cmd, fields in requests:
        if not pmi.feed(0, INIT + framed("cmd=job-getid;")):
            return
        text = f"cmd={cmd};" + "".join(f"{name}={value};" for name, value in fields.items())
        for action in pmi.feed(0, framed(text.encode("utf-8", "surrogatepass"))):
            assert not isinstance(action, Send) or int(action.data[:6]) == len(action.data) - 6


NAMES = st.text("abcdefg", min_size=1, max_size=5)


@given(st.dictionaries(NAMES, st.text("x;=\n ", max_size=8), max_size=5))
def test_fields_round_trip(fields: dict[str, str]) -> None:
    text = "".join(f"{name}={value.replace(';', ';;')};" for name, value in fields.items())
    found = fields_of(text)
    assert {name: found[name] for name in fields} == fields


def test_the_first_of_two_fields_of_a_name_counts() -> None:
    assert fields_of("cmd=kvs-get;key=a;key=b")["key"] == "a"
