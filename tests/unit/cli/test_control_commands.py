"""Output and exit status of the commands that control jobs, as LSF's captures have them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.cli.caller import Caller
from tests.unit.cli.scripted_master import ScriptedMaster


def ok(*results: tuple[str, str]):
    return [{"ok": {"results": [{"id": job, "ok": not why, "why": why} for job, why in results]}}]


NONE = [{"ok": {"results": [], "none": "No matching job found"}}]
FINISHED = "Job has already finished"

CASES = [
    ("bkill 352", ok(("352", "")), 0, "Job <352> is being terminated\n", ""),
    (
        "bkill 353 354 99999 103",
        ok(("353", ""), ("354", ""), ("99999", "No matching job found"), ("103", FINISHED)),
        255,
        "Job <353> is being terminated\nJob <354> is being terminated\n",
        "Job <99999>: No matching job found\nJob <103>: Job has already finished\n",
    ),
    ("bkill -J nosuch", NONE, 255, "", "Job <nosuch> is not found\n"),
    ("bkill 0", NONE, 255, "", "No matching job found\n"),
    ("bkill -s USR1 352", ok(("352", "")), 0, "Job <352> is being signaled\n", ""),
    ("bkill -s SIGSTOP 352", ok(("352", "")), 0, "Job <352> is being stopped\n", ""),
    ("bkill -s 18 352", ok(("352", "")), 0, "Job <352> is being resumed\n", ""),
    ("bkill -r 122", ok(("122", "")), 0, "Job <122> is being terminated\n", ""),
    ("bstop 360", ok(("360", FINISHED)), 255, "", "Job <360>: Job has already finished\n"),
    ("bstop 105[3]", ok(("105[3]", "")), 0, "Job <105[3]> is being stopped\n", ""),
    ("bresume 352", ok(("352", "")), 0, "Job <352> is being resumed\n", ""),
    ("brequeue 251", ok(("251", "")), 0, "Job <251> is being requeued \n", ""),
    (
        "brequeue 251",
        ok(("251", "Job has not started yet")),
        255,
        "",
        "Job <251> : Job has not started yet\n",
    ),
    ("bmig 352", ok(("352", "")), 0, "Job <352> is being migrated\n", ""),
    ("bchkpnt 352", ok(("352", "Job is not checkpointable")), 255, "", "Job <352>: Job is not checkpointable\n"),
    ("bchkpnt -p 1:30 352", ok(("352", "")), 0, "Job <352> is being checkpointed\n", ""),
    ("bswitch fair 354", ok(("354", "")), 0, "Job <354> is switched to queue <fair>\n", ""),
    ("bswitch nosuch 354", [{"refused": "nosuch: No such queue", "exit": 255}], 255, "", "nosuch: No such queue\n"),
    ("bswitch fair 103", ok(("103", FINISHED)), 255, "", "Job <103>: Job has already finished\n"),
    (
        "btop 354 2",
        [{"ok": {"job": "354", "place": 2}}],
        0,
        "",
        "Job <354> has been moved to position 2 from top.\n",
    ),
    ("bbot 354", [{"ok": {"job": "354", "place": 1}}], 0, "", "Job <354> has been moved to position 1 from bottom.\n"),
    ("btop 99999", [{"refused": "No matching job found"}], 255, "", "99999: No matching job found\n"),
    ("btop 354", [{"refused": "354: User permission denied"}], 255, "", "354: User permission denied\n"),
    ("bmod -J new 353", [{"ok": {"job": "353"}}], 0, "Parameters of job <353> are being changed\n", ""),
    (
        "bmod -q nosuch 354",
        [{"refused": "nosuch: No such queue"}],
        255,
        "",
        "nosuch: No such queue. Job not modified.\n",
    ),
    ("bmod -J x 103", [{"refused": FINISHED}], 255, "", "Job has already finished. Job not modified.\n"),
    (
        "bmod -smt 1 103",
        [],
        255,
        "",
        "bmod: option -smt is not supported by lava: it is for IBM Power hosts\n. Job not modified.\n",
    ),
    ("badmin hclose ol3", [{"ok": {"results": [{"host": "ol3", "ok": True}]}}], 0, "", "Close <ol3> ...... done\n"),
    (
        "badmin hclose --migrate ol3 ol4",
        [
            {
                "ok": {
                    "results": [
                        {"host": "ol3", "ok": True, "leave": 1, "stay": 2},
                        {"host": "ol4", "ok": True, "leave": 0, "stay": 1},
                    ]
                }
            }
        ],
        0,
        "",
        "Close <ol3> ...... done\nol3: 1 job is migrated, 2 jobs run on\n"
        "Close <ol4> ...... done\nol4: 0 jobs are migrated, 1 job runs on\n",
    ),
    (
        "badmin hopen ol3",
        [{"ok": {"results": [{"host": "ol3", "ok": False, "why": "User permission denied"}]}}],
        255,
        "",
        "Open <ol3> ...... Host control failed.: User permission denied\n",
    ),
    ("badmin gpuclose ol3:1", [{"ok": {"results": [{"gpu": "ol3:1", "ok": True}]}}], 0, "", "Close <ol3:1> ...... done\n"),
    (
        "badmin gpuopen ol3:1",
        [{"ok": {"results": [{"gpu": "ol3:1", "ok": False, "why": "User permission denied"}]}}],
        255,
        "",
        "Open <ol3:1> ...... GPU control failed.: User permission denied\n",
    ),
    ("badmin gpuclose ol3:9", [{"refused": "ol3:9: No such GPU on host <ol3>"}], 255, "", "ol3:9: No such GPU on host <ol3>\n"),
    (
        "badmin hclose nosuch",
        [{"refused": "Bad host name, host group name or cluster name"}],
        255,
        "",
        "Bad host name, host group name or cluster name\n",
    ),
    (
        "badmin qact fair",
        [{"ok": {"results": [{"queue": "fair", "ok": True}]}}],
        0,
        "Queue <fair> is activated\n",
        "",
    ),
    (
        "badmin qclose nosuch",
        [{"ok": {"results": [{"queue": "nosuch", "ok": False, "why": "No such queue"}]}}],
        255,
        "",
        "nosuch: No such queue\n",
    ),
    (
        "badmin lease extend 30m",
        [{"ok": {"text": "No job is ended or taken for lost in the next 1800 seconds"}}],
        0,
        "No job is ended or taken for lost in the next 1800 seconds\n",
        "",
    ),
    (
        "bmig 9",
        [{"ok": {"results": [{"id": "9", "ok": False, "why": "Job has not started yet"}]}}],
        0,
        "",
        "Job <9>: Job has not started yet\n",
    ),
    (
        "bswitch priority 9",
        [{"ok": {"results": [{"id": "9", "ok": False, "why": "priority: User cannot use the queue"}]}}],
        255,
        "",
        "priority: User cannot use the queue\n",
    ),
    ("brun 9", [{"refused": "9: No matching job found"}], 255, "", "Failed to run the job: No matching job found\n"),
    ("bpeek 359", [{"out": "line1\n"}, {"out": "<< x >>\n"}, {"exit": 0}], 0, "line1\n<< x >>\n", ""),
    ("bpeek 116", [{"refused": "Job <116> : Not yet started."}], 255, "", "Job <116> : Not yet started.\n"),
]


@pytest.mark.parametrize(("line", "answer", "status", "out", "err"), CASES, ids=[case[0] for case in CASES])
def test_output_is_lsfs(caller: Caller, line, answer, status, out, err):
    command, *words = line.split()
    with ScriptedMaster(caller.socket, answer):
        assert caller.run(command, *words) == (status, out, err)


EVERY = ["RUN", "USUSP", "SSUSP", "PSUSP", "UNKWN", "DONE", "EXIT"]
ASKS = [
    ("bstop -C why 7", {"ask": "stop", "reason": "why"}),
    ("bresume -C why 7", {"ask": "resume", "reason": "why"}),
    ("brequeue -C why 7", {"ask": "requeue", "reason": "why"}),
    ("bkill -J 'x' 1", {"ask": "kill", "jobs": {"ids": ["1"], "name": "'x'"}, "signal": 0, "now": False, "reason": ""}),
    (
        "bkill -C why -q n -u all -m h -g /g -app a 0",
        {"reason": "why", "jobs": {"ids": ["0"], "queue": "n", "user": "all", "host": "h", "group": "/g", "app": "a"}},
    ),
    ("bkill -sKILL -r 12[1-3]", {"signal": 9, "now": True, "jobs": {"ids": ["12[1-3]"]}}),
    ("bstop -a", {"ask": "stop", "jobs": {"ids": ["0"]}}),
    ("bresume -u all 0", {"ask": "resume", "jobs": {"ids": ["0"], "user": "all"}}),
    (
        "brequeue -aH 5",
        {"ask": "requeue", "hold": True, "states": EVERY},
    ),
    ("brequeue -e -d 5", {"states": ["DONE", "EXIT"], "hold": False}),
    ("bmig -f -m h1 5", {"ask": "migrate", "hosts": ["h1"], "force": True, "jobs": {"ids": ["5"]}}),
    ("bchkpnt -k -p 90 5", {"ask": "checkpoint", "kill": True, "force": False, "period": 90}),
    ("bchkpnt 5", {"period": -1}),
    ("bswitch -a prof new 0", {"ask": "switch", "queue": "new", "jobs": {"ids": ["0"], "app": "prof"}}),
    ("bswitch -q old new 5 6", {"ask": "switch", "queue": "new", "jobs": {"ids": ["5", "6"], "queue": "old"}}),
    ("brsvmod -on -nosusp res", {"ask": "changereservation", "name": "res", "open": False, "no_suspend": True}),
    ("brsvmod -o -nonsuspn res", {"open": True, "no_suspend": False}),
    ("btop 5 3", {"ask": "move", "job": "5", "top": True, "place": 3}),
    ("bbot 5[2]", {"job": "5[2]", "top": False, "place": 1}),
    (
        "bmod -n 2 -Rn -bn 7",
        {"ask": "modify", "job": "7", "options": {"n": "2", "Rn": True, "bn": True}},
    ),
    ("bmod -Z hostname 7", {"command": "hostname", "options": {}}),
    ("bpeek -f -J x", {"ask": "peek", "job": "", "select": {"name": "x"}, "follow": True}),
    ("badmin hclose -C swap h1 h2", {"ask": "hosts", "hosts": ["h1", "h2"], "close": True, "comment": "swap"}),
    (
        "badmin hclose h1 --migrate -C swap",
        {"ask": "hosts", "hosts": ["h1"], "close": True, "comment": "swap", "migrate": True},
    ),
    (
        "badmin gpuclose h1:0,GPU-1 h2:3 -C hot",
        {"ask": "gpus", "gpus": ["h1:0,GPU-1", "h2:3"], "close": True, "comment": "hot"},
    ),
    ("badmin qinact a", {"ask": "queues", "queues": ["a"], "what": "qinact", "comment": ""}),
    (
        "badmin hist -t .-1,. x",
        {"command": "badmin", "options": {"t": ".-1,."}, "words": ["hist", "x"]},
    ),
    ("badmin lease extend 2h", {"ask": "lease", "seconds": 7200.0}),
    (
        "bjobs -aJ *x* -noheader -o jobid",
        {
            "ask": "query",
            "command": "bjobs",
            "options": {"a": True, "J": "*x*", "noheader": True, "o": "jobid"},
            "words": [],
        },
    ),
    ("bjobs -wa -u all 1 2[3]", {"options": {"w": True, "a": True, "u": "all"}, "words": ["1", "2[3]"]}),
    ("bjobs -a -o -hms -json jobid", {"options": {"a": True, "o": "jobid", "hms": True, "json": True}, "words": []}),
    ("bjobs -p3 -ualice", {"options": {"p3": True, "u": "alice"}}),
    ("bhist -la 3", {"command": "bhist", "options": {"l": True, "a": True}, "words": ["3"]}),
    (
        "bhosts -w -R select[mem>1] h",
        {"command": "bhosts", "options": {"w": True, "R": "select[mem>1]"}, "words": ["h"]},
    ),
]


@pytest.mark.parametrize(("line", "want"), ASKS, ids=[case[0] for case in ASKS])
def test_the_ask_says_what_the_words_say(caller: Caller, line: str, want: dict[str, Any]) -> None:
    command, *words = line.split()
    answer: list[dict[str, Any]] = (
        [{"out": ""}, {"exit": 0}]
        if want.get("ask") in ("query", "peek") or command in ("bjobs", "bhist", "bhosts") or "hist" in words
        else ok()
    )
    with ScriptedMaster(caller.socket, answer) as master:
        caller.run(command, *words)
    ask = master.asks[0]
    assert {name: ask.get(name) for name in want} == want


USAGE_FAILS = [
    ("bkill", "Job ID or one of '-m', '-u' '-q' -'g' and '-J' must be specified\nUsage: bkill "),
    ("bkill abc", "abc: Illegal job ID.\n"),
    ("bkill 12[x]", "12[x]: Illegal job ID.\n"),
    ("bkill 99999999999", "99999999999: Illegal job ID.\n"),
    ("bkill -s NOSUCH 1", "NOSUCH: Illegal signal value\n"),
    ("bkill -cleanup 1", "bkill: option -cleanup is not supported by lava\n"),
    ("bmod -aps admin=5 1", "bmod: option -aps is not supported by lava: values of APS come from the queue alone; "),
    ("bgmod -u ann /g", "bgmod: option -u is not supported by lava: a job group is named by its path alone, "),
    ("bhosts -attr", "bhosts: option -attr is not supported by lava: hosts have no attributes\n"),
    ("lshosts -loc", "lshosts: option -loc is not supported by lava: hosts have no locations; "),
    ("blimits -o name", "blimits: option -o is not supported by lava: its columns are fixed\n"),
    ("bkill -y 1", "bkill: invalid option -- 'y'\nUsage: bkill "),
    ("bkill -J", "bkill: option requires an argument -- 'J'\nUsage: bkill "),
    ("bmod -q fair", "Usage: bmod "),
    ("bmod -zz 1", "bmod: illegal option -- zz\n. Job not modified.\n"),
    ("bswitch", "Usage: bswitch "),
    ("btop", "Usage: btop "),
    ("btop 1 0", "0: Position value must be a positive integer.\n"),
    ("bchkpnt -p x 1", "x: Illegal checkpoint period\n"),
    ("bchkpnt -p 99999999999 1", "99999999999: Illegal checkpoint period\n"),
    ("badmin nosuch", "Invalid command <nosuch> \nUsage: badmin "),
    ("badmin lease extend x", "x: Bad time specification\n"),
    ("bjobs -y", "bjobs: invalid option -- 'y'\nUsage: bjobs "),
    ("bjobs -o", "bjobs: option requires an argument -- 'o'\nUsage: bjobs "),
    ("bjobs -uax -q", "bjobs: option requires an argument -- 'q'\nUsage: bjobs "),
    ("bjobs -h", "Usage: bjobs "),
]


@pytest.mark.parametrize(("line", "err"), USAGE_FAILS, ids=[case[0] for case in USAGE_FAILS])
def test_a_wrong_use_is_said_before_anyone_is_asked(caller: Caller, line, err):
    command, *words = line.split()
    ran = caller.run(command, *words)
    assert (ran.status, ran.out) == (255, "")
    assert ran.err == err if err.endswith("\n") else ran.err.startswith(err)


@pytest.mark.parametrize("command", ["", "  "])
def test_a_blank_command_of_bmod_is_refused(caller: Caller, command):
    ran = caller.run("bmod", "-Z", command, "1")
    assert (ran.status, ran.out, ran.err) == (255, "", "No command is specified. Job not modified.\n")


@pytest.mark.parametrize("command", ["lsid", "lsload", "lshosts", "lsclusters", "bparams"])
def test_help_of_the_base_commands_is_no_failure(caller: Caller, command):
    ran = caller.run(command, "-h")
    assert (ran.status, ran.out) == (0, "")
    assert ran.err.startswith(f"Usage: {command} ")


def test_signals_are_listed(caller: Caller):
    ran = caller.run("bkill", "-l")
    assert ran.status == 255
    assert ran.out.startswith("HUP INT QUIT ILL ")


@pytest.mark.parametrize("command", ["bsub", "bjobs", "badmin", "bkill", "bmod", "btop"])
def test_the_version_goes_to_stderr(caller: Caller, command):
    ran = caller.run(command, "-V")
    assert (ran.status, ran.out) == (0, "")
    assert ran.err.startswith("lava 0.")


def test_a_site_may_show_the_version_that_tools_look_for(tmp_path):
    caller = Caller(tmp_path, 'LSF_COMPAT_VERSION="IBM Spectrum LSF Standard 10.1.0.0, x"\n')
    assert caller.run("bjobs", "-V") == (0, "", "IBM Spectrum LSF Standard 10.1.0.0, x\n")


def test_the_columns_that_the_environment_sets_go_along(caller: Caller):
    with ScriptedMaster(caller.socket, [{"exit": 0}]) as master:
        caller.run("bjobs")
        caller.run("bjobs", "-o", "queue", LSB_BJOBS_FORMAT="user")
    assert [ask["options"] for ask in master.asks] == [{}, {"o": "queue", "LSB_BJOBS_FORMAT": "user"}]


def test_a_dialogue_goes_on_after_a_failure(caller: Caller):
    with ScriptedMaster(caller.socket, [{"ok": {"results": [{"queue": "a", "ok": True}]}}]):
        ran = caller.run("badmin", stdin=b"nosuch\n\nqopen a\nquit\nqopen b\n")
    assert ran.status == 0
    assert ran.out == "badmin> badmin> badmin> Queue <a> is opened\nbadmin> "
    assert ran.err.startswith("Invalid command <nosuch> \n")


def test_the_configuration_is_checked_here(caller: Caller):
    (caller.folder / "lsb.queues").write_text("Begin Queue\nQUEUE_NAME = a\nPRIORITY = x\nEnd Queue\n")
    ran = caller.run("badmin", "ckconfig")
    assert ran.status == 255
    assert ran.err == "\nChecking configuration files ...\n\n"
    assert "lsb.queues:3: error:" in ran.out
    ran = caller.run("badmin", "reconfig")
    assert ran.status == 255
    assert ran.err.endswith("There are fatal errors.\n\nReconfiguration aborted.\n")


def test_so_are_the_requirements_in_it(caller: Caller):
    (caller.folder / "lsb.queues").write_text("Begin Queue\nQUEUE_NAME = a\nSTOP_COND = select[ut>\nEnd Queue\n")
    for command in ("ckconfig", "reconfig"):
        ran = caller.run("badmin", command)
        assert ran.status == 255
        assert "lsb.queues:3: error: queue a: STOP_COND: " in ran.out


def test_a_good_configuration_is_read_again(caller: Caller):
    status, out, err = caller.run("badmin", "ckconfig")
    assert (status, out.splitlines()[-2:], err) == (0, ["No errors found.", ""], "\nChecking configuration files ...\n\n")
    with ScriptedMaster(caller.socket, [{"ok": {"text": ""}}], [{"refused": "User permission denied"}]):
        assert caller.run("badmin", "reconfig").out.endswith("No errors found.\n\nReconfiguration initiated\n")
        ran = caller.run("badmin", "reconfig")
    assert (ran.status, ran.out.splitlines()[-1]) == (255, "Failed: User permission denied")


def test_a_warning_is_asked_about(caller: Caller):
    (caller.folder / "lsb.params").write_text("Begin Parameters\nNO_SUCH_PARAMETER = 1\nEnd Parameters\n")
    ran = caller.run("badmin", "reconfig")
    assert ran.status == 255
    assert ran.err.endswith("Reconfiguration aborted.\n")
    with ScriptedMaster(caller.socket, [{"ok": {"text": "Reconfiguration initiated"}}]):
        assert caller.run("badmin", "reconfig", stdin=b"n\ny\n").out.endswith("Reconfiguration initiated\n")
        assert caller.run("badmin", "reconfig", "-f").status == 0


def test_showconf_has_an_equal_sign_on_each_line_but_the_first(caller: Caller):
    """snakemake's plugin drops the first line and splits the others at ' = '."""
    ran = caller.run("badmin", "showconf", "mbd")
    shown = dict(line.strip().split(" = ", 1) for line in ran.out.splitlines()[1:])
    assert shown["LAVA_RUNDIR"] == str(caller.folder)
    assert {"LSB_SHAREDIR", "LSF_CONFDIR"} <= shown.keys()


def test_showconf_of_a_host_names_it_and_refuses_one_that_is_not_there(caller: Caller):
    """Where hosts may join that no file names, any may be there."""
    for host in ("h1", "joined"):
        assert caller.run("badmin", "showconf", "sbd", host).out.splitlines()[0].endswith(f" on {host}")
    (caller.folder / "lsf.cluster.c").write_text("Begin Host\nHOSTNAME model type server\nh1 ! ! 1\nEnd Host\n")
    assert caller.run("badmin", "showconf", "sbd", "h1").out.splitlines()[0].endswith(" on h1")
    ran = caller.run("badmin", "showconf", "sbd", "nosuch")
    assert (ran.status, ran.out, ran.err) == (255, "", "nosuch: Bad host name, host group name or cluster name\n")


@pytest.mark.parametrize(("command", "number"), [("bpost -i 3 -d text -J night", 3), ("bstatus -d text -J night", 0)])
def test_a_message_to_a_job_by_its_name(caller: Caller, command: str, number: int) -> None:
    with ScriptedMaster(caller.socket, [{"ok": {"job": "7"}}]) as master:
        ran = caller.run(*command.split())
    assert (ran.status, ran.out) == (0, "Message to job 7 posted all right.\n")
    [asked] = master.asks
    assert (asked["job"], asked["select"], asked["number"]) == ("", {"name": "night"}, number)


@pytest.mark.parametrize("words", ["", "-J night 7", "7 8"])
def test_a_message_is_for_one_job(caller: Caller, words: str) -> None:
    assert "sage: bpost" in caller.run("bpost", *words.split()).err
