"""A site's esub programs, real ones."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path

import pytest

from cli.client.context import Fail
from cli.submit.esub_file import file_lines, from_file, names_of, parse_assignments
from cli.submit.script import Work
from lavad.core.lang import when
from tests.unit.cli.caller import Caller
from tests.unit.cli.scripted_master import ScriptedMaster

SUBMITTED = [{"ok": {"job": 103, "queue": "normal", "default": True}}]


@pytest.fixture
def site(tmp_path: Path) -> Caller:
    (tmp_path / "etc").mkdir()
    return Caller(tmp_path, f"LSF_SERVERDIR={tmp_path}/etc\n")


def program(caller: Caller, name: str, text: str) -> None:
    path = caller.folder / "etc" / name
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)


def submit(caller: Caller, *words: str):
    with ScriptedMaster(caller.socket, SUBMITTED) as master:
        ran = caller.run("bsub", *words)
    caller.socket.unlink()
    return ran, master.asks


def test_an_esub_reads_and_changes_the_submission(site: Caller):
    program(
        site,
        "esub",
        ". $LSB_SUB_PARM_FILE\n"
        '[ "$LSB_SUB_QUEUE" = normal ] && echo \'LSB_SUB_QUEUE="night"\' >> $LSB_SUB_MODIFY_FILE\n'
        "echo LSB_SUB_EXCLUSIVE=Y >> $LSB_SUB_MODIFY_FILE\necho 'ADDED=\"x y\"' >> $LSB_SUB_MODIFY_ENVFILE\n"
        "echo LSB_SUB_JOB_NAME=SUB_RESET >> $LSB_SUB_MODIFY_FILE; echo seen; echo $LSF_INVOKE_CMD\n",
    )
    ran, (ask,) = submit(site, "-q", "normal", "-J", "n", "true")
    assert ran.err == "seen\nbsub\n"
    assert ask["options"] == {"q": "night", "x": True}
    assert ask["env"]["ADDED"] == "x y"


def test_an_esub_aborts(site: Caller):
    program(site, "esub", 'echo "not today" >&2\nexit $LSB_SUB_ABORT_VALUE\n')
    ran, asks = submit(site, "true")
    assert ran == (255, "", "not today\nRequest aborted by esub. Job not submitted.\n")
    assert asks == []


def test_the_sites_program_wins_over_a_built_in_name(site: Caller):
    program(site, "esub.mpi", 'echo "$@"; . $LSB_SUB_PARM_FILE; echo $LSB_SUB_ADDITIONAL\n')
    ran, (ask,) = submit(site, "-a", "mpi(x, y) openmpi", "mpirun", "./x")
    assert ran.err == "x y\nmpi(x, y) openmpi\n"
    assert ask["options"] == {"a": ["openmpi"]}
    assert ask["env"]["LAVA_ESUBS"] == "mpi(x, y) openmpi"


def test_mandatory_esubs_run_and_epsubs_hear_of_the_job(tmp_path: Path):
    (tmp_path / "etc").mkdir()
    caller = Caller(tmp_path, f'LSF_SERVERDIR={tmp_path}/etc\nLSB_ESUB_METHOD="site"\n')
    program(caller, "esub.site", "echo before\n")
    program(caller, "epsub.site", 'echo "$LSB_SUB_JOB_ID in $LSB_SUB_JOB_QUEUE"\n')
    ran, _ = submit(caller, "true")
    assert ran.err == "before\n103 in normal\n"


def test_a_program_that_cannot_run_is_named(site: Caller):
    program(site, "esub", "")
    (site.folder / "etc" / "esub").write_text("#!/no/such/interpreter\n")
    ran, asks = submit(site, "true")
    assert ran.err.startswith(f"{site.folder}/etc/esub: ")
    assert asks == []


def test_the_parameter_file_has_lsfs_names():
    lines = file_lines(Work("myjob"), {"q": "normal", "x": True, "P": "p", "R": ["a", "b"], "n": "90", "W": "1:30"}, [])
    assert lines == (
        'LSB_SUB_PROJECT_NAME="p"\nLSB_SUB_QUEUE="normal"\nLSB_SUB_RES_REQ="a && b"\nLSB_SUB_RLIMIT_RUN="5400"\n'
        'LSB_SUB_EXCLUSIVE=Y\nLSB_SUB_NUM_PROCESSORS=90\nLSB_SUB_MAX_NUM_PROCESSORS=90\nLSB_SUB_COMMAND_LINE="myjob"\n'
    )


def test_changes_find_their_options():
    options: dict[str, str | bool | list[str]] = {"oo": "a", "n": "1", "R": ["x", "y"]}
    work = Work("old")
    changes = parse_assignments(
        "LSB_SUB_OUT_FILE=\"b\"\nLSB_SUB_RES_REQ='z'\nLSB_SUB_RLIMIT_RUN=61\nLSB_SUB_NUM_PROCESSORS=2\n"
        "LSB_SUB_MAX_NUM_PROCESSORS=4\nLSB_SUB_COMMAND_LINE=new\n# no\nLSB_SUB_ADDITIONAL=x\n"
    )
    from_file(changes, work, options)
    assert options == {"oo": "b", "R": ["z"], "W": "2", "n": "2,4"}
    assert work.command == "new"


def test_names_may_have_arguments():
    assert names_of("license fluent(a, b) c ()") == [("license", []), ("fluent", ["a", "b"]), ("c", [])]
    for wrong in ("a(b", "../x", "(x)"):
        with pytest.raises(Fail, match="Bad esub"):
            names_of(wrong)


def lines(command: str = "bsub", **options: str | bool | list[str]) -> dict[str, str]:
    return parse_assignments(file_lines(None, dict(options), [], command))


def test_what_an_esub_reads_is_in_lsfs_units_and_parts():
    found = lines(W="1:30/hostA", k="/ck init=2 10 method=app", f=["a > b", "c < d"], sp="5", J='a"b$c')
    assert found == {
        "LSB_SUB_RLIMIT_RUN": "5400",
        "LSB_SUB_HOST_SPEC": "hostA",
        "LSB_SUB_CHKPNT": "/ck init=2 10 method=app",
        "LSB_SUB_CHKPNT_DIR": "/ck",
        "LSB_SUB_CHKPNT_PERIOD": "600",
        "LSB_SUB3_INIT_CHKPNT_PERIOD": "120",
        "LSB_SUB_CHKPNT_METHOD": "app",
        "LSB_SUB_OTHER_FILES": "2",
        "LSB_SUB_OTHER_FILES_0": "a > b",
        "LSB_SUB_OTHER_FILES_1": "c < d",
        "LSB_SUB_USER_PRIORITY": "5",
        "LSB_SUB2_JOB_PRIORITY": "5",
        "LSB_SUB_JOB_NAME": 'a"b$c',
    }


@pytest.mark.parametrize("name", ["LSB_SUB4_GPU_REQ", "LSB_SUB6_GPU_REQ"])
def test_an_esub_reads_and_changes_gpus(name: str):
    assert lines(gpu="num=2:gmem=1G")[name] == "num=2:gmem=1G"
    options: dict[str, str | bool | list[str]] = {"gpu": "num=2"}
    from_file(parse_assignments(f'{name}="num=4"\n'), Work("x"), options)
    assert options == {"gpu": "num=4"}


@pytest.mark.parametrize("form", ["HOUR:00", "1:HOUR:00", "2:1:HOUR:05", "HOUR:59"])
def test_a_date_is_the_next_of_its_kind_in_seconds(form: str):
    text = form.replace("HOUR", str((datetime.now().hour + 3) % 24))  # not of this minute, which is over in a moment
    seconds = int(lines(b=text)["LSB_SUB_BEGIN_TIME"])
    assert time.time() - 60 <= seconds <= time.time() + 370 * 86400
    assert time.localtime(seconds)[3:5] == tuple(int(word) for word in text.split(":")[-2:])
    options: dict[str, str | bool | list[str]] = {"b": text}
    from_file({"LSB_SUB_BEGIN_TIME": str(seconds)}, None, options)
    assert lines(b="x")["LSB_SUB_BEGIN_TIME"] == "x"
    assert when.parse_point(str(options["b"]), datetime.now()).timestamp() == pytest.approx(seconds, abs=60)


def test_what_an_esub_writes_is_taken_in_the_same_units():
    options: dict[str, str | bool | list[str]] = {"k": "/ck 10", "f": ["x > y"]}
    changes = {
        "LSB_SUB_RLIMIT_RUN": "61",
        "LSB_SUB_CHKPNT_PERIOD": "1200",
        "LSB_SUB_OTHER_FILES": "1",
        "LSB_SUB_OTHER_FILES_0": "p < q",
        "LSB_SUB2_JOB_GROUP": "/g",
        "LSB_SUB4_ORPHAN_TERM_NO_WAIT": "Y",
        "LSB_SUB3_RESIZE_NOTIFY_CMD": "/bin/true",
    }
    from_file(changes, None, options)
    assert options == {"W": "2", "k": "/ck 20", "f": ["p < q"], "g": "/g", "ti": True, "rnc": "/bin/true"}


def test_bmod_tells_and_takes_resets():
    assert lines("bmod", Wn=True, J="n") == {"LSB_SUB_MODIFY": "Y", "LSB_SUB_RLIMIT_RUN": "SUB_RESET", "LSB_SUB_JOB_NAME": "n"}
    options: dict[str, str | bool | list[str]] = {"J": "n"}
    from_file({"LSB_SUB_JOB_NAME": "SUB_RESET", "LSB_SUB_QUEUE": "night"}, None, options, "bmod")
    assert options == {"Jn": True, "q": "night"}


def test_an_esub_changes_which_variables_are_passed_on(site: Caller):
    program(site, "esub", "echo 'LSF_SUB4_SUB_ENV_VARS=\"none, A=1\"' > $LSB_SUB_MODIFY_FILE\n")
    _, (ask,) = submit(site, "true")
    assert ask["env"] == {"A": "1"}
