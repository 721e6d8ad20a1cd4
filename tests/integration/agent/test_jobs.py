"""Real agent, real starter: jobs start, end, write their output and report."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proto import agent_pb2 as pb
from tests.support.daemons.agent_host import KEYS, ME, AgentHost, fake_master, run, running, start_order
from tests.support.daemons.fake_master import FakeMaster
from tests.support.wait import wait_until


@pytest.fixture(scope="module")
def master() -> Iterator[FakeMaster]:
    with fake_master() as one:
        yield one


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory, master: FakeMaster) -> Iterator[AgentHost]:
    made = AgentHost(tmp_path_factory.mktemp("agent"), master.address, conf="LSF_BINDIR=/opt/lava/bin\n")
    with running(made, lambda: master.hellos) as one:
        yield one


def output(host: AgentHost, name: str) -> str:
    return (host.folder / "work" / name).read_text()


def test_output_comes_first_and_the_report_behind_it(master: FakeMaster, host: AgentHost) -> None:
    order = run(master, host, "echo hello", output="direct.out", admins=["boss"])
    end = master.wait_for(order.uid, "ended").ended
    assert (end.status, end.limit, end.lost, end.output) == (0, "", "", "")
    text = output(host, "direct.out")
    assert text.startswith(f"hello\n\n{'-' * 60}\nSender: LSF System <boss@h1>")
    assert "\nSuccessfully completed.\n" in text
    assert text.endswith("The output (if any) is above this job summary.\n\n")


def test_kept_output_stands_behind_the_report_as_lsf_has_it(master: FakeMaster, host: AgentHost) -> None:
    order = run(master, host, "echo out; echo err >&2", output="kept.out", error="kept.err", direct_output=False)
    master.wait_for(order.uid, "ended")
    text = output(host, "kept.out")
    assert text.startswith("Sender: LSF System")
    assert text.endswith(
        "The output (if any) follows:\n\nout\n\n\nPS:\n\nRead file <kept.err> for stderr output of this job.\n\n"
    )
    assert output(host, "kept.err") == "err\n"
    assert not list((host.spool / "output" / ME).glob(f"{order.key}.*"))


def test_output_appends_and_oo_overwrites(master: FakeMaster, host: AgentHost) -> None:
    for direct in (True, False):
        for number, overwrite in ((1, False), (2, False), (3, True)):
            order = run(master, host, f"echo n{number}", output="again.out", output_overwrite=overwrite, direct_output=direct)
            master.wait_for(order.uid, "ended")
            text = output(host, "again.out")
            assert ("n1\n" in text) == (number < 3)
            assert f"n{number}\n" in text


def test_without_o_the_output_is_kept_for_the_user(master: FakeMaster, host: AgentHost) -> None:
    order = run(master, host, "echo kept; exit 3")
    end = master.wait_for(order.uid, "ended").ended
    assert end.status == 3 << 8
    assert Path(end.output).read_text() == "kept\n"
    assert Path(end.output).parent.stat().st_mode & 0o077 == 0
    master.send(peek=pb.Peek(id=9, key=order.key, uid="", user=ME, path=end.output))
    data = wait_until(lambda: [peek for peek in master.peeks if peek.id == 9], 30, "peek")[0]
    assert (data.data, data.size, data.error) == (b"kept\n", 5, "")


def test_names_of_files_expand_and_a_folder_gets_the_job_id(master: FakeMaster, host: AgentHost) -> None:
    made = host.text(master, "echo $LSB_JOBINDEX", output="a.%J.%I", name="arr[1-4:2]", array_end=4, array_step=2)
    order = start_order(master, made, key=3 << 32 | 55)
    master.order(order, texts=(made,))
    master.wait_for(order.uid, "ended")
    assert output(host, "a.55.3").startswith("3\n")
    assert "Subject: Job 55[3]: <arr[1-4:2]> in cluster <c1> Done" in output(host, "a.55.3")
    (host.folder / "work" / "dir").mkdir()
    order = run(master, host, "echo x", output="dir/")
    master.wait_for(order.uid, "ended")
    assert output(host, f"dir/{order.key}.out").startswith("x\n")


def test_the_environment_is_lsfs(master: FakeMaster, host: AgentHost) -> None:
    hosts = [pb.HostSlots(host="h1", slots=2), pb.HostSlots(host="h2", slots=1)]
    strange = dict.fromkeys(("PMI_RANK", "SLURM_JOB_ID", "OMPI_X", "LSB_JOBID"), "1")
    env = {"PATH": os.environ["PATH"], "MINE": "a b", **strange}
    order = run(
        master,
        host,
        "env -0; cat $LSB_DJOB_HOSTFILE $LSB_DJOB_RANKFILE",
        {"hosts": hosts, "name": "myjob"},
        env=env,
        output="env.out",
    )
    master.wait_for(order.uid, "ended")
    body, _, files = output(host, "env.out").rpartition("\0")
    found = dict(entry.split("=", 1) for entry in body.split("\0"))
    assert found["LSB_JOBID"] == str(order.key)
    assert found["LSB_HOSTS"] == "h1 h1 h2"
    assert found["LSB_MCPU_HOSTS"] == "h1 2 h2 1 "
    assert found["LSB_DJOB_NUMPROC"] == found["LSB_MAX_NUM_PROCESSORS"] == "3"
    assert (found["LSB_JOBNAME"], found["LSB_QUEUE"], found["LSB_SUB_HOST"]) == ("myjob", "normal", "sub1")
    assert (found["LSF_BINDIR"], found["LSFUSER"], found["LSB_JOBINDEX"]) == ("/opt/lava/bin", ME, "0")
    assert (found["MINE"], found["LSB_OUTPUTFILE"]) == ("a b", "env.out")
    assert found["PWD"] == found["LS_SUBCWD"] == str(host.folder / "work")
    assert found["LAVA_SOCKET"] == str(host.run / "agent-h1.sock")
    assert not [name for name in found if name.startswith(("PMI_", "SLURM_")) or name == "OMPI_X"]
    assert {name: value for name, value in found.items() if "_VISIBLE_" in name} == {
        "CUDA_VISIBLE_DEVICES": "",
        "NVIDIA_VISIBLE_DEVICES": "void",
    }
    assert files.startswith("h1\nh1\nh2\nh1\nh1\nh1\nh2\n")


def test_gpus_are_given_by_uuid(master: FakeMaster, host: AgentHost) -> None:
    hosts = [pb.HostSlots(host="h1", slots=1, gpus=["GPU-a", "GPU-b"])]
    order = run(master, host, "echo $CUDA_VISIBLE_DEVICES", {"hosts": hosts}, output="gpu.out")
    master.wait_for(order.uid, "ended")
    assert output(host, "gpu.out").startswith("GPU-a,GPU-b\n")


@pytest.mark.parametrize(
    ("command", "status", "words"),
    [
        ("no-such-command", 127 << 8, "not found"),
        ("no-such-command a | cat; exit 4", 4 << 8, "not found"),
        ("/etc/passwd", 126 << 8, "ermission denied"),
        ("kill -9 $$", 9, "Exited with signal termination: Killed."),
        ("false", 1 << 8, "Exited with exit code 1."),
    ],
)
def test_ends_are_told_truly(master: FakeMaster, host: AgentHost, command: str, status: int, words: str) -> None:
    name = f"end{next(KEYS)}"
    order = run(master, host, command, output=name)
    assert master.wait_for(order.uid, "ended").ended.status == status
    assert words in output(host, name)


def test_a_script_runs_by_its_interpreter(master: FakeMaster, host: AgentHost) -> None:
    script = '#!/usr/bin/perl -w\nprint "perl $0\\n";\n'
    order = run(master, host, "perl script", script=script, output="script.out")
    master.wait_for(order.uid, "ended")
    text = output(host, "script.out")
    assert text.startswith("perl ")
    assert ".shell\n" in text.partition("\n")[0] + "\n"
    assert "# LSBATCH: User input\n#!/usr/bin/perl -w\n" in text
    order = run(master, host, "sh script", script="echo $LSB_JOBFILENAME\nexit 5", output="script2.out")
    assert master.wait_for(order.uid, "ended").ended.status == 5 << 8


@pytest.mark.parametrize(
    ("fields", "code", "words"),
    [
        ({"user": "no-such-user"}, "no_user", "user no-such-user is not known on host h1"),
        ({"cwd": "/no/such", "env": {"LSB_EXIT_IF_CWD_NOTEXIST": "Y"}}, "cwd", "/no/such"),
        ({"output": "no/such/dir/out"}, "output", "no/such/dir/out"),
        ({"input": "no-input"}, "input", "no-input"),
        ({"pre_exec": "exit 7"}, "pre_exec", "exited with code 7"),
    ],
)
def test_what_cannot_start_is_refused_in_one_line(
    master: FakeMaster, host: AgentHost, fields: dict[str, Any], code: str, words: str
) -> None:
    order = run(master, host, "touch started", **fields)
    refused = master.wait_for(order.uid, "refused").refused
    assert refused.code == code
    assert words in refused.why
    assert "\n" not in refused.why
    assert not (host.folder / "work" / "started").exists()


def test_a_missing_folder_falls_back_to_tmp(master: FakeMaster, host: AgentHost) -> None:
    out = str(host.folder / "work" / "fell.out")
    order = run(master, host, "pwd; sleep 0.2", cwd=str(host.folder / "gone"), output=out)
    assert master.wait_for(order.uid, "started").started.cwd == "/tmp"
    master.wait_for(order.uid, "ended")
    text = output(host, "fell.out")
    assert text.startswith("/tmp\n")
    assert "</tmp> was used as the working directory." in text
    order = run(master, host, "true", cwd=str(host.folder / "gone"), output=out)
    master.wait_for(order.uid, "ended")
    text = Path(out).read_text()
    assert text.count("</tmp> was used as the working directory.") == 2
    assert text.count(f"<{host.folder / 'gone'}> could not be entered.") == 2


def test_orders_of_the_past_are_refused(master: FakeMaster, host: AgentHost) -> None:
    order = run(master, host, "true", {"sequence": 1})
    assert master.wait_for(order.uid, "refused").refused.code == "stale"
    order = run(master, host, "true", {"expires": 1000.0})
    assert "too late" in master.wait_for(order.uid, "refused").refused.why


def test_a_killed_uid_never_starts(master: FakeMaster, host: AgentHost) -> None:
    made = host.text(master, "touch never")
    order = start_order(master, made, key=next(KEYS))
    master.order(pb.Order(key=order.key, attempt=1, uid=order.uid, kill=pb.Kill()))
    master.wait_for(order.uid, "gone")
    master.order(order, texts=(made,))
    after = run(master, host, "true")
    master.wait_for(after.uid, "ended")
    assert not (host.folder / "work" / "never").exists()


def test_pre_and_post_commands_go_around_the_job(master: FakeMaster, host: AgentHost) -> None:
    order = run(
        master,
        host,
        "cat trace",
        pre_exec="echo job >> trace",
        queue_pre_exec="echo queue > trace",
        post_exec="echo post $LSB_JOBEXIT_STAT >> trace",
        queue_post_exec="echo queuepost >> trace",
        output="pp.out",
    )
    master.wait_for(order.uid, "ended")
    assert output(host, "pp.out").startswith("queue\njob\n")
    wait_until(lambda: output(host, "trace").endswith("post 0\nqueuepost\n"), 30, "post-execution")


def test_the_job_starter_stands_before_the_command(master: FakeMaster, host: AgentHost) -> None:
    order = run(master, host, "echo a b", job_starter="env VIA=starter %USRCMD; echo $?", output="js.out")
    master.wait_for(order.uid, "ended")
    assert output(host, "js.out").startswith("a b\n0\n")
    order = run(master, host, 'echo "$VIA"; exit 7', job_starter='env VIA=starter sh -c "%USRCMD"; echo $?', output="jf.out")
    master.wait_for(order.uid, "ended")
    assert output(host, "jf.out").startswith("starter\n7\n")
