"""Parts with one process: how they start, what they get, how they end. Real starter, real processes."""

from __future__ import annotations

import os
import signal
import stat
import sys
from pathlib import Path

import pytest

from tests.support.daemons.starters import Rig
from tests.support.processes import is_alive
from tests.support.wait import wait_until


def exit_code(status: int) -> int:
    return os.waitstatus_to_exitcode(status)


def test_exit_codes_signals_and_accounting(rig: Rig) -> None:
    assert rig.run("zero", ["/bin/true"])["status"] == 0
    assert exit_code(rig.run("seven", "exit 7")["status"]) == 7
    assert exit_code(rig.run("segv", "kill -SEGV $$")["status"]) == -signal.SIGSEGV
    end = rig.run("busy", "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done")
    assert end["utime"] + end["stime"] > 0.01
    assert end["maxrss_kb"] > 500
    assert end["tasks"][0]["pid"] > 0
    assert end["lease"] is False
    assert end["first"] is None
    assert end["at"] >= end["started"] > 1e9


def test_a_quick_part_has_one_report_and_a_slow_one_tells_its_start(rig: Rig) -> None:
    rig.run("quick", ["/bin/true"])
    assert len(rig.reports["quick"]) <= 2
    rig.order(rig.part("slow", "sleep 100"))
    started = rig.report("slow", "started")
    assert is_alive(started["tasks"][0]["pid"])
    assert started["tasks"][0]["starttime"] > 0
    status = rig.known()["slow"]
    assert (status["state"], status["pid"]) == ("running", started["tasks"][0]["pid"])
    assert status["at"] == started["at"]
    rig.send({"do": "kill", "uids": ["slow"]})
    assert exit_code(rig.end("slow")["status"]) == -9
    rig.gone("slow")
    assert not is_alive(started["tasks"][0]["pid"])


def test_environment_is_what_was_given_and_the_attempt(rig: Rig) -> None:
    env = {"PATH": "/usr/bin:/bin", "BOTH": "template"}
    template = rig.part("x", ["env"], env=env, stdout={"path": rig.out("env")})
    own = {"t": "a", "uid": "env", "env": {"MINE": "own", "BOTH": "own"}}
    rig.order(own, templates={"a": template})
    rig.gone("env")
    lines = set(rig.text("env").splitlines())
    assert lines == {"PATH=/usr/bin:/bin", "BOTH=own", "MINE=own", "LAVA_ATTEMPT=env"}


def test_output_is_emptied_or_appended_and_error_goes_along(rig: Rig) -> None:
    out = {"path": rig.out("o"), "append": False}
    rig.run("o1", "echo one; echo err >&2", stdout=out)
    assert rig.text("o") == "one\nerr\n"
    rig.run("o2", "echo two", stdout=out)
    assert rig.text("o") == "two\n"
    rig.run("o3", "echo three", stdout={**out, "append": True})
    assert rig.text("o") == "two\nthree\n"
    rig.run("o4", "echo four; echo err >&2", stdout=out, stderr={"path": rig.out("e")})
    assert (rig.text("o"), rig.text("e")) == ("four\n", "err\n")
    rig.run("o5", "echo five", stdout={"path": str(rig.folder / "new" / "er" / "f"), "mkdir": True})
    assert (rig.folder / "new" / "er" / "f").read_text() == "five\n"


def test_input_umask_nice_folder_and_session(rig: Rig) -> None:
    (rig.folder / "in").write_text("from the file\n")
    command = 'cat; umask; nice; pwd; read -r _ _ _ _ pgrp sid _ < /proc/self/stat; echo "$pgrp $sid $$"'
    rig.run("misc", command, stdin=str(rig.folder / "in"), umask=0o077, nice=5)
    text, umask, nice, folder, ids = rig.text("misc").splitlines()
    niced = min(19, os.nice(0) + 5)  # a part adds to what the starter has, which it has of this process
    assert (text, umask, nice, folder) == ("from the file", "0077", str(niced), str(rig.folder))
    assert len(set(ids.split())) == 1


def test_limits_are_lowered_clamped_and_not_kept(rig: Rig) -> None:
    command = "ulimit -Sn; ulimit -Hn; ulimit -Sc"
    rig.run("soft", command, rlimits={"NOFILE": [100, -1], "CORE": [0, -1], "NO_SUCH": [1, 1]})
    rig.run("hard", command, rlimits={"NOFILE": [64, 128]})
    rig.run("none", command, rlimits={"NOFILE": [10**9, 10**9]})
    rig.run("stack", "ulimit -s", rlimits={"STACK": [512 << 10, -1], "AS": [1 << 30, -1]})
    assert rig.text("soft").split()[0] == "100"
    assert rig.text("soft").split()[2] == "0"
    assert rig.text("hard").split()[:2] == ["64", "128"]
    assert rig.text("none").split()[0] == rig.text("none").split()[1] == rig.text("soft").split()[1]
    assert rig.text("stack").split() == ["512"]


@pytest.mark.parametrize(
    ("uid", "more", "code", "word"),
    [
        ("cwd", {"cwd": "/no/such"}, "cwd", "/no/such"),
        ("out", {"stdout": {"path": "/no/such/file"}}, "output", "/no/such/file"),
        ("in", {"stdin": "/no/such/in"}, "input", "/no/such/in"),
        ("job", {"jobfile": {"path": "/no/such/job", "text": "x", "mode": 448}}, "jobfile", "/no/such/job"),
        ("pre", {"pre_exec": "exit 3"}, "pre_exec", "code 3"),
        ("lease", {"deadline": 1.0}, "stale", "lease"),
        ("umask", {"umask": "many"}, "bad", "umask"),
        ("user", {"user": {"name": "x"}}, "bad", "user"),
        ("argv", {"argv": []}, "bad", "argv"),
        ("env", {"env": 5}, "bad", "env"),
        ("taskenv", {"tasks": [{"rank": 0, "env": 7}, {"rank": 1}]}, "bad", "taskenv"),
        ("big", {"user": {"name": "who", "uid": 2**40, "gid": 0}}, "no_user", "who"),
        ("neg", {"user": {"name": "who", "uid": -5, "gid": 0}}, "no_user", "who"),
    ],
)
def test_refusals_name_the_object(rig: Rig, uid: str, more: dict[str, object], code: str, word: str) -> None:
    rig.order({**rig.part(uid, "echo ran; touch ran"), **more})
    refused = rig.report(uid, "refused")
    assert refused["code"] == code
    assert word in refused["reason"]
    assert "\n" not in refused["reason"]
    assert not (rig.folder / "ran").exists()
    assert rig.run("after", "exit 4")["status"] == 4 << 8
    assert uid not in rig.known()


def test_a_folder_to_fall_back_on(rig: Rig) -> None:
    rig.run("back", ["pwd"], cwd="/no/such", cwd_else=["/nor/this", "/tmp"])
    assert rig.text("back") == "/tmp\n"


def test_commands_that_cannot_be_started_end_as_a_shell_would_end_them(rig: Rig) -> None:
    (rig.folder / "plain").write_text("x")
    (rig.folder / "noshebang").write_text("echo script $1\n")
    os.chmod(rig.folder / "noshebang", 0o755)
    assert exit_code(rig.run("nf", ["no-such-command"])["status"]) == 127
    assert rig.text("nf") == "no-such-command: command not found\n"
    assert exit_code(rig.run("np", ["/no/such"])["status"]) == 127
    assert rig.text("np") == "/no/such: No such file or directory\n"
    assert exit_code(rig.run("px", [str(rig.folder / "plain")])["status"]) == 126
    assert "Permission denied" in rig.text("px")
    assert exit_code(rig.run("pn", [str(rig.folder / "plain")], nice=1)["status"]) == 126
    assert rig.run("sh", [str(rig.folder / "noshebang"), "7"])["status"] == 0
    assert rig.text("sh") == "script 7\n"


def test_jobfile_is_written_and_removed(rig: Rig) -> None:
    path = rig.folder / "job.sh"
    jobfile = {"path": str(path), "text": "#!/bin/sh\necho é $0\n", "mode": 0o700, "remove": True}
    rig.run("jf", [str(path)], jobfile=jobfile)
    assert rig.text("jf") == f"é {path}\n"
    assert not path.exists()
    rig.run("kept", [str(path)], jobfile={**jobfile, "remove": False})
    assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_before_and_after_commands(rig: Rig) -> None:
    command = "echo main; exit 3"
    pre, post = "echo pre $PATH >> log", "echo post $LSB_JOBEXIT_STAT $MINE >> log"
    end = rig.run("pp", command, pre_exec=pre, post_exec=post, env={"PATH": "/nowhere", "MINE": "m"})
    assert exit_code(end["status"]) == 3
    assert (rig.folder / "log").read_text() == "pre /bin:/usr/bin:/sbin:/usr/sbin\npost 768 m\n"


@pytest.mark.parametrize("posts", [True, False])
def test_the_after_command_follows_a_kill_that_ends_the_job(rig: Rig, posts: bool) -> None:
    """But not one of an attempt that nobody wants any more."""
    rig.order(rig.part("ended", "echo up; sleep 100", post_exec="echo post $LSB_JOBEXIT_STAT >> log"))
    wait_until(lambda: rig.text("ended") == "up\n", 30, "the command")
    rig.send({"do": "kill", "uids": ["ended"], "posts": posts})
    rig.gone("ended")
    log = rig.folder / "log"
    assert (log.read_text() if log.exists() else "") == ("post 9\n" if posts else "")


def test_kill_while_the_before_command_runs(rig: Rig) -> None:
    rig.order(rig.part("prekill", "touch ran", pre_exec="echo $$ > prepid; sleep 100"))
    wait_until(lambda: (rig.folder / "prepid").exists() and (rig.folder / "prepid").read_text(), 30, "the pid")
    rig.send({"do": "kill", "uids": ["prekill"]})
    assert rig.end("prekill")["status"] == 9
    rig.gone("prekill")
    assert not is_alive(int((rig.folder / "prepid").read_text()))
    assert not (rig.folder / "ran").exists()


def test_signals_reach_groups_or_only_tasks(rig: Rig) -> None:
    trap = "trap 'echo top >> sig' USR1; "
    trap += "sh -c 'trap \"echo sub >> sig\" USR1; touch ready; while :; do sleep 0.05; done' & "
    rig.order(rig.part("sig", trap + "while :; do wait; done"))
    wait_until(lambda: (rig.folder / "ready").exists(), 30, "the trap")
    rig.send({"do": "signal", "uids": ["sig"], "sig": int(signal.SIGUSR1), "scope": "groups"})
    log = rig.folder / "sig"
    wait_until(lambda: log.exists() and sorted(log.read_text().split()) == ["sub", "top"], 30, "both")
    log.unlink()
    rig.send({"do": "signal", "uids": ["sig"], "sig": int(signal.SIGUSR1), "scope": "tasks"})
    wait_until(lambda: log.exists() and log.read_text(), 30, "the task")
    assert log.read_text() == "top\n"
    rig.send({"do": "kill", "uids": ["sig", "unknown"]})
    rig.gone("sig")


def test_a_job_hears_signals_that_whoever_started_the_starter_had_blocked(tmp_path: Path) -> None:
    """Of one process, and of several; the starter itself ends by SIGTERM."""
    rig = Rig(tmp_path)
    rig.under = ["env", "--block-signal=TERM,USR1"]
    rig.start()
    for uid, tasks in (("one", [{"rank": 0}]), ("two", [{"rank": 0}, {"rank": 1}])):
        assert rig.run(uid, "kill -TERM $$; exit 3", tasks=tasks)["status"] == signal.SIGTERM
    assert rig.stop() == 0


def test_a_part_without_tasks_holds_its_host_until_killed(rig: Rig) -> None:
    rig.order(rig.part("hold", "", tasks=[]))
    assert rig.report("hold", "started")["tasks"] == []
    assert rig.known()["hold"]["state"] == "running"
    rig.send({"do": "kill", "uids": ["hold"]})
    assert rig.end("hold")["status"] == 9
    rig.gone("hold")


def test_two_phases(rig: Rig) -> None:
    rig.order(rig.part("two", "echo went", two_phase=True), rig.part("cancel", "touch ran", two_phase=True))
    assert rig.report("two", "prepared")["addr"] is None
    rig.report("cancel", "prepared")
    assert rig.known()["two"]["state"] == "prepared"
    assert rig.text("two") == ""
    rig.send({"do": "kill", "uids": ["cancel"]})
    rig.gone("cancel")
    rig.send({"do": "go", "uid": "cancel", "root": None})
    rig.send({"do": "go", "uid": "two", "root": None})
    assert rig.end("two")["status"] == 0
    assert rig.text("two") == "went\n"
    assert not (rig.folder / "ran").exists()


def test_reading_a_users_file(rig: Rig) -> None:
    (rig.folder / "f").write_bytes(b"0123456789")
    read = {"do": "read", "user": rig.part("x", "")["user"], "path": str(rig.folder / "f"), "offset": 3, "limit": 4}
    rig.send({**read, "id": 5})
    assert rig.frame("data") == {"is": "data", "id": 5, "data": "MzQ1Ng==", "size": 10}
    rig.send({**read, "id": 6, "path": "/no/such"})
    assert rig.frame("data") == {"is": "data", "id": 6, "error": "/no/such: No such file or directory"}
    os.mkfifo(rig.folder / "fifo")
    rig.send({**read, "id": 7, "path": str(rig.folder / "fifo")})
    assert "plain file" in rig.frame("data")["error"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_group_limits_memory_where_there_is_one(rig: Rig) -> None:
    command = "cat /proc/self/cgroup"
    if not rig.keeps("memory"):
        pytest.skip("no cgroup can limit memory here")
    assert rig.run("cg", command, cgroup={"memory_bytes": 256 << 20, "cpuset": [0]})["status"] == 0
    assert "lava-cg" in rig.text("cg")
    eat = "import sys; x = bytearray(200 << 20); sys.exit(3)"
    limits = {"memory_bytes": 64 << 20, "cpuset": None}
    assert rig.run("eat", [sys.executable, "-I", "-S", "-c", eat], cgroup=limits)["status"] == 9
    assert rig.run("free", [sys.executable, "-I", "-S", "-c", eat])["status"] == 3 << 8
    assert not [where for where, folders, _ in os.walk("/sys/fs/cgroup") if "lava-cg" in folders]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_part_opens_no_device_that_its_rules_deny(rig: Rig) -> None:
    """/dev/null and /dev/zero are numbers 3 and 5 of major number 1; the next part of the same shepherd has no rule."""
    if not rig.keeps("device files"):
        pytest.skip("no cgroup can limit device files here")
    both = "for name in null zero; do ( : < /dev/$name ) && echo $name opens; done; true"
    rig.run("ours", both, cgroup={"devices": [{"major": 1, "minors": [3], "below": 6}]})
    assert "null opens" in rig.text("ours")
    assert "zero opens" not in rig.text("ours")
    rig.run("next", both)
    assert rig.text("next") == "null opens\nzero opens\n"
    # other tests remove theirs meanwhile, which a walk bears
    assert not [where for where, folders, _ in os.walk("/sys/fs/cgroup") if "lava-ours" in folders]


def test_a_thousand_quick_parts_are_reported_once_each(rig: Rig) -> None:
    count, slots = 1000, 16
    template = {"t": rig.part("x", ["/bin/true"], stdout=None)}
    sent = ended = 0
    while ended < count:
        room = min(slots - (sent - ended), count - sent)
        if room:
            rig.order(*({"t": "t", "uid": f"q{sent + i}", "key": i} for i in range(room)), templates=template)
            sent += room
        rig.pump(1)
        ended = sum(any(r.get("gone") or r["is"] == "gone" for r in rs) for rs in rig.reports.values())
    assert len(rig.reports) == count
    for reports in rig.reports.values():
        assert [r["is"] for r in reports].count("ended") == 1
        assert reports[-1].get("gone") or reports[-1]["is"] == "gone"
    assert len(rig.shepherds()) <= slots
    assert len(rig.known()) == count
    rig.send({"do": "forget", "uids": list(rig.reports)})
    assert rig.known() == {}
