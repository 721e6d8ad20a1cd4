"""bsub from its words to the ask, and from the answer to what the user sees."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from cli import bsub
from cli.client.context import Context, finish
from cli.submit.submission import exit_status
from tests.unit.cli.caller import Caller
from tests.unit.cli.scripted_master import ScriptedMaster

SUBMITTED = [{"ok": {"job": 103, "queue": "normal", "default": True}}]
SCRIPT = b"#!/bin/sh\n#BSUB -q fair -n 2\n#BSUB -J inside\necho hi\n"


def ask_of(caller: Caller, *words: str, stdin: bytes = b"", **environ: str):
    with ScriptedMaster(caller.socket, SUBMITTED) as master:
        ran = caller.run("bsub", *words, stdin=stdin, **environ)
    assert ran.status == 0, ran.err
    (ask,) = master.asks
    return ask


def test_a_submission_is_told_as_lsf_tells_it(caller: Caller):
    named = [{"ok": {"job": 104, "queue": "fair", "default": False, "notices": ["Job will be scheduled after X"]}}]
    with ScriptedMaster(caller.socket, SUBMITTED, named, SUBMITTED):
        assert caller.run("bsub", "true") == (0, "Job <103> is submitted to default queue <normal>.\n", "")
        ran = caller.run("bsub", "-q", "fair", "true")
        assert ran == (0, "Job <104> is submitted to queue <fair>.\n", "Job will be scheduled after X\n")
        assert caller.run("bsub", "true", BSUB_QUIET="1") == (0, "", "")


def test_a_job_is_told_of_although_there_is_no_room_for_its_line(caller: Caller):
    """Who does not hear its number submits it again."""
    with ScriptedMaster(caller.socket, SUBMITTED), open("/dev/full", "wb") as full, tempfile.TemporaryFile() as err:
        context = Context(["true"], str(caller.folder), caller.environ, 0, full.fileno(), err.fileno())
        assert finish(bsub.run, context) == 255
        err.seek(0)
        told = "Job <103> is submitted to default queue <normal>.\noutput: No space left on device\n"
        assert err.read().decode() == told


FULL = [{"refused": "Pending job threshold reached", "exit": 255, "retry": 1}]


def test_a_user_with_too_many_jobs_is_asked_to_wait(caller: Caller):
    again = "Pending job threshold reached. Retrying in 1 seconds...\n"
    with ScriptedMaster(caller.socket, FULL, SUBMITTED) as master:
        assert caller.run("bsub", "true") == (0, "Job <103> is submitted to default queue <normal>.\n", again)
    assert len({ask["uuid"] for ask in master.asks}) == 2
    caller.socket.unlink()
    with ScriptedMaster(caller.socket, FULL) as master:
        ran = caller.run("bsub", "true", LSB_NTRIES="2")
    assert ran == (255, "", f"{again}Pending job threshold reached. Job not submitted.\n")
    assert len(master.asks) == 2


def test_the_ask_carries_where_the_user_is(caller: Caller):
    ask = ask_of(caller, "-n", "2", "-R", "a", "-R", "b", "-H", "sleep", "a b")
    assert ask["command"] == 'sleep "a b"'
    assert ask["options"] == {"n": "2", "R": ["a", "b"], "H": True}
    assert (ask["cwd"], ask["home"], ask["shell"]) == (str(caller.folder), "/home/alice", "/bin/bash")
    assert ask["env"] == caller.environ
    assert ask["script"] == ""


def test_the_ask_is_what_the_master_decodes(caller: Caller):
    import msgspec

    from lavad.core.lang.asks import any_ask

    ask = ask_of(caller, "-n", "2", "-R", "a", stdin=SCRIPT)
    assert msgspec.json.decode(msgspec.json.encode(ask), type=any_ask()).options["n"] == "2"


def test_a_script_on_stdin_gives_options_and_the_command_line_wins(caller: Caller):
    ask = ask_of(caller, "-J", "outside", stdin=SCRIPT)
    assert ask["script"] == SCRIPT.decode()
    assert ask["options"] == {"q": "fair", "n": "2", "J": "outside"}


def test_a_script_by_name_is_the_same_where_the_site_wants_it(tmp_path: Path):
    caller = Caller(tmp_path, "LSB_BSUB_PARSE_SCRIPT=Y\n")
    (tmp_path / "t.sh").write_bytes(SCRIPT)
    named, given = ask_of(caller, "t.sh"), ask_of_again(caller, SCRIPT)
    assert named["command"] == "t.sh"
    assert (named["script"], named["options"]) == (given["script"], given["options"])


def ask_of_again(caller: Caller, script: bytes):
    caller.socket.unlink()
    return ask_of(caller, stdin=script)


def test_defaults_of_the_environment_give_way_to_options(caller: Caller):
    environ: dict[str, Any] = {"LSB_DEFAULTQUEUE": "fair", "LSB_DEFAULTPROJECT": "pp"}
    assert ask_of(caller, "true", **environ)["options"] == {"q": "fair", "P": "pp"}
    caller.socket.unlink()
    assert ask_of(caller, "-q", "x", "true", **environ)["options"] == {"q": "x", "P": "pp"}


def test_env_is_resolved_here(caller: Caller):
    ask = ask_of(caller, "-env", "HOME, X=1", "true")
    assert ask["env"] == {"HOME": "/home/alice", "X": "1"}
    assert "env" not in ask["options"]


@pytest.mark.parametrize(("end", "said"), [("\r\n", ["bsub: lines of the script end with CR LF, as in DOS"]), ("\n", [])])
def test_lines_that_end_as_in_dos_are_said(caller: Caller, end: str, said: list[str]):
    with ScriptedMaster(caller.socket, SUBMITTED):
        ran = caller.run("bsub", stdin=end.join(["#BSUB -J a", "true", ""]).encode())
    assert ran.status == 0
    assert [line.partition(": a shell")[0] for line in ran.err.splitlines()] == said


def test_a_variable_that_is_no_text_is_left_out_and_said(caller: Caller):
    with ScriptedMaster(caller.socket, SUBMITTED) as master:
        ran = caller.run("bsub", "true", BAD="x\udcff", GOOD="grün")
    assert ran.err == "bsub: the variable BAD holds bytes that are not UTF-8 and is not passed on\n"
    assert "BAD" not in master.asks[0]["env"]
    assert master.asks[0]["env"]["GOOD"] == "grün"


REFUSALS = [
    ("No such queue", "nosuch: No such queue", "nosuch: No such queue. Job not submitted.\n"),
    ("with a dot", "Bad resource requirement syntax.", "Bad resource requirement syntax. Job not submitted.\n"),
    (
        "an option",
        "option -mig is not supported by lava",
        "bsub: option -mig is not supported by lava\n. Job not submitted.\n",
    ),
]


@pytest.mark.parametrize(("text", "err"), [case[1:] for case in REFUSALS], ids=[case[0] for case in REFUSALS])
def test_a_refusal_ends_with_lsfs_words(caller: Caller, text, err):
    with ScriptedMaster(caller.socket, [{"refused": text, "exit": 255}]):
        assert caller.run("bsub", "true") == (255, "", err)


WRONG = [
    (("-QQ", "true"), "bsub: illegal option -- QQ\n. Job not submitted.\n"),
    (("-q",), "bsub: option requires an argument -- q\n. Job not submitted.\n"),
    (
        ("-freq", "2GHz", "true"),
        "bsub: option -freq is not supported by lava: a host's CPU frequency is not set for a job\n. Job not submitted.\n",
    ),
    ((), "No command is specified in the script file. Job not submitted.\n"),
    (("-env", "a b", "true"), "a b: Bad -env specification. Job not submitted.\n"),
    (("e\udcff",), "The command holds bytes that are not UTF-8: e\\xff. Job not submitted.\n"),
    (("-J", "\udcff", "x"), "-J holds bytes that are not UTF-8: \\xff. Job not submitted.\n"),
]


@pytest.mark.parametrize(("words", "err"), WRONG, ids=[repr(case[0]) for case in WRONG])
def test_a_wrong_use_is_said_before_anyone_is_asked(caller: Caller, words, err):
    """An option that lava has not is refused by name."""
    assert caller.run("bsub", *words) == (255, "", err)


def test_mpi_ranks_are_not_started_twice(caller: Caller):
    ran = caller.run("bsub", "-a", "mpi", "-n", "4", "/usr/bin/mpirun", "-n", "4", "./x")
    assert ran.status == 255
    assert ran.err.startswith("-a mpi starts every rank itself")
    assert ran.err.endswith(". Job not submitted.\n")
    assert ask_of(caller, "-a", "openmpi", "mpirun", "./x")["options"] == {"a": ["openmpi"]}


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ({"state": "DONE", "status": 0, "host": "h"}, 0),
        ({"state": "EXIT", "status": 5 << 8, "host": "h"}, 5),
        ({"state": "EXIT", "status": 11, "host": "h"}, 139),
        ({"state": "EXIT", "status": 0, "host": ""}, 126),
    ],
)
def test_k_waits_and_gives_the_jobs_status(caller: Caller, answer, status):
    with ScriptedMaster(caller.socket, SUBMITTED, [{"ok": answer}]) as master:
        ran = caller.run("bsub", "-K", "x")
    assert ran == (
        status,
        "Job <103> is submitted to default queue <normal>.\n",
        "<<Waiting for dispatch ...>>\n<<Job is finished>>\n",
    )
    assert master.asks[1]["ask"] == "wait"
    assert master.asks[1]["job"] == 103


@pytest.mark.parametrize("state", ["RUN", "DONE"])
def test_k_says_where_the_job_starts_and_names_it_at_its_end(tmp_path: Path, state):
    """Also of one that is over before it is asked; not of one that ends while it waits, and of no array."""
    started = [{"ok": {"state": state, "status": 0, "host": "h2"}}]
    never = [{"ok": {"state": "EXIT", "status": 0, "host": ""}}]
    done = [{"ok": {"state": "DONE", "status": 0, "host": "h2"}}]
    caller = Caller(tmp_path, "LSB_SUBK_SHOW_EXEC_HOST=Y\nLSB_SUBK_SHOW_JOBID=N\n")
    with ScriptedMaster(caller.socket, SUBMITTED, started, done, SUBMITTED, never, never, SUBMITTED, done) as master:
        ran = caller.run("bsub", "-K", "x", LSB_SUBK_SHOW_JOBID="y")
        assert ran.err == "<<Waiting for dispatch ...>>\n<<Starting on h2>>\n<<Job <103> is finished>>\n"
        assert caller.run("bsub", "-K", "x").err == "<<Waiting for dispatch ...>>\n<<Job is finished>>\n"
        assert caller.run("bsub", "-K", "-J", "a[1-3]", "x").err == "<<Waiting for dispatch ...>>\n<<Job is finished>>\n"
    waits = ["submit", "started", "finished", "submit", "started", "finished", "submit", "finished"]
    assert [ask.get("until", ask["ask"]) for ask in master.asks] == waits


def test_k_asks_again_after_a_break(caller: Caller):
    done = [{"ok": {"state": "DONE", "status": 0, "host": "h"}}]
    with ScriptedMaster(caller.socket, SUBMITTED, [], done):
        assert caller.run("bsub", "-K", "x", BSUB_QUIET2="").err == ""


def test_exit_status_is_a_shells():
    assert exit_status("DONE", 0) == 0
    assert exit_status("EXIT", os.W_EXITCODE(200, 0) if hasattr(os, "W_EXITCODE") else 200 << 8) == 200
    assert exit_status("EXIT", 9) == 137


def test_brestart_asks_for_the_checkpoint_of_a_job(caller: Caller):
    for folder in ("77/gen-1", "77/gen-4", "77/gen-9.tmp", "78/gen-2", "80.3/gen-7"):
        (caller.folder / "ck" / folder).mkdir(parents=True)
        (caller.folder / "ck" / folder / "MANIFEST").touch()
    with ScriptedMaster(caller.socket, SUBMITTED) as master:
        ran = caller.run("brestart", "-q", "fair", "ck", "77")
        caller.run("brestart", f"{caller.folder}/ck/78")
        missing = caller.run("brestart", "ck", "79")
        denied = caller.run("brestart", "-f", "ck", "77")
        caller.run("brestart", "ck", "80[3]")
        caller.run("brestart", f"{caller.folder}/ck/80.3")
        wrong = [caller.run("brestart", "ck", word).err for word in ("80[", "80[1-2]", "[3]", "80[3].1", "x")]
    assert ran.out == "Job <103> is submitted to default queue <normal>.\n"
    assert master.asks[0]["restart_of"] == 77
    assert master.asks[0]["options"] == {"q": "fair", "k": f"{caller.folder}/ck"}
    assert master.asks[0]["restart_from"] == 4
    assert (master.asks[1]["restart_of"], master.asks[1]["options"]["k"]) == (78, f"{caller.folder}/ck")
    assert missing.out == ran.out
    assert "restart_from" not in master.asks[2], "the master knows whether it is staged"
    assert denied.err == "brestart: option -f is not supported by lava\n. Job not submitted.\n"
    for ask in master.asks[3:]:
        assert (ask["restart_of"], ask["restart_index"], ask["restart_from"]) == (80, 3, 7)
    assert wrong == [f"{word}: Illegal job ID\n" for word in ("80[", "80[1-2]", "[3]", "80[3].1", "x")]


def test_a_requirement_may_be_checked_alone(caller: Caller):
    """BSUB_CHK_RESREQ; no master is asked."""
    good = (0, "The resource requirement is valid. Nothing is submitted, as BSUB_CHK_RESREQ is set.\n", "")
    bad = (255, "", "Bad resource requirement syntax. Job not submitted.\n")
    assert caller.run("bsub", "-R", "select[mem>1] rusage[mem=2]", "true", BSUB_CHK_RESREQ="y") == good
    assert caller.run("bsub", "true", BSUB_CHK_RESREQ="") == good
    assert caller.run("bsub", "-R", "order[mem]", "-R", "select[mem>", "true", BSUB_CHK_RESREQ="y") == bad
    assert caller.run("bsub", stdin=b"#BSUB -R 'select[mem>'\ntrue\n", BSUB_CHK_RESREQ="y") == bad
