"""From a start order to a part: command line, environment, files, limits, MPI wiring, report."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent.launch import build, command, environ, limits, mpi, outputs, report
from agent.launch.hostfiles import HostFiles
from agent.launch.limits import cgroup, rlimits
from agent.launch.outputs import expand, job_values
from agent.launch.prepost import commands as prepost
from agent.launch.site import Site, User
from agent.starter.part.task_start import LATE
from agent.starter.protocol.part import CgroupLimits, OutputFile
from config.read.params import settings_of
from proto import agent_pb2 as pb
from tests.support.examples import examples

PATH = "/usr/local/bin:/usr/bin:/bin"
ALICE = User("alice", 1000, 1000, (1000,), "/home/alice", "/bin/bash", "staff")


def site(folder: str = "/spool", **conf: str) -> Site:
    return Site("h1", "/run/lava", folder, "/etc/lava", conf, settings_of(conf), root=True, own_user="root")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sleep 10", ["sleep", "10"]),
        ("  /bin/true  ", ["/bin/true"]),
        ("prog --a=b x=y ./z", ["prog", "--a=b", "x=y", "./z"]),
        ("echo a b", ["echo", "a", "b"]),
        ("true", ["true"]),
        ("exec sleep 10", ["sleep", "10"]),
        ("exec echo -n a", ["echo", "-n", "a"]),
        ("exec", None),
        ("exec exec true", None),
        ("exec -a name true", None),
        ("exec a=b true", None),
        ("exec prog > out", None),
        ("exec cd /tmp", None),
        ("echo -n a", None),
        ("A=b prog", None),
        ("cd /tmp", None),
        ("exit 3", None),
        ("prog > out", None),
        ("prog 'a b'", None),
        ("prog $HOME", None),
        ("prog ~", None),
        ("prog *", None),
        ("a;b", None),
        ("a\nb", None),
        ("if true", None),
        ("", None),
        ("# comment", None),
        ("pwd", None),
    ],
)
def test_plain_words_need_no_shell(text: str, words: list[str] | None) -> None:
    assert command.plain_words(text, PATH) == words


@settings(max_examples=examples(60))
@given(st.text("abcx019./-_=%+:,@ ~$#'\"\\;&|<>()[]{}!*?^\n\t", max_size=12))
@example("a=b")
def test_plain_words_are_what_a_shell_would_make_of_them(tail: str) -> None:
    """Whatever is taken for plain words, sh splits and expands in the same way."""
    text = f"printf %s,\\n {tail}".replace("\\n", "n")
    words = command.plain_words(text, PATH)
    if words is not None:
        same = text.replace("printf", "/usr/bin/printf", 1)
        shell = subprocess.run(["/bin/sh", "-c", same], capture_output=True, check=False)
        direct = subprocess.run(["/usr/bin/printf", *words[1:]], capture_output=True, check=False)
        assert (direct.stdout, direct.returncode) == (shell.stdout, shell.returncode)
        assert words == shlex.split(text)


def test_scripts_run_by_their_first_line() -> None:
    assert command.script_argv("#!/bin/bash -x  \necho", "/s") == ["/bin/bash", "-x", "/s"]
    assert command.script_argv("#! /usr/bin/env python3\n", "/s") == ["/usr/bin/env", "python3", "/s"]
    assert command.script_argv("echo a\n", "/s") == ["/bin/sh", "/s"]
    assert command.script_argv("#!\n", "/s") == ["/bin/sh", "/s"]
    assert command.script_argv("x", "/s p", "", "nice") == ["/bin/sh", "-c", "nice '/s p'"]


def test_login_shell_and_job_starter() -> None:
    assert command.command_argv("a b", PATH, "/bin/bash") == ["/bin/bash", "-l", "-c", "a b"]
    assert command.command_argv("a b", PATH, "", "wrap -x") == ["wrap", "-x", "a", "b"]
    assert command.command_argv("a b", PATH, "", "x; %USRCMD; y") == ["/bin/sh", "-c", "x; a b; y"]
    assert command.command_argv("exit 7", PATH, "", "wrap") == ["/bin/sh", "-c", "wrap /bin/sh -c 'exit 7'"]
    assert command.needs_file("exit 7", PATH, "wrap")
    assert not command.needs_file("exit 7", PATH, "")
    assert not command.needs_file("a b", PATH, "wrap")


def test_marks_in_names_expand() -> None:
    values = job_values(3 << 32 | 55, "alice", "proj", "staff", "h1")
    assert expand("%J.%I.%U.%P.%G.%H.%%.%X.%", values) == "55.3.alice.proj.staff.h1.%.%X.%"


def test_pre_and_post_commands_are_one_each() -> None:
    assert prepost.pre_exec(("", "")) is None
    assert prepost.pre_exec(("", "job # why")) == "job # why"
    assert prepost.pre_exec(("queue", "job")) == "(\nqueue\n) && (\njob\n)"
    assert prepost.pre_exec((), "/c k") == "mkdir -p '/c k'"
    assert prepost.post_exec(("job", "")) == "job"
    assert str(prepost.post_exec(("job", "queue"))).endswith("exit ${lava_failed:-0}")


def test_a_command_that_takes_too_long_is_killed_with_all_it_started() -> None:
    late = prepost.pre_exec(("sleep 60 & sleep 60; true",), seconds=1)
    assert subprocess.run(["/bin/sh", "-c", str(late)], check=False, timeout=30).returncode == LATE
    in_time = prepost.pre_exec(("exit 7",), seconds=30)
    assert subprocess.run(["/bin/sh", "-c", str(in_time)], check=False, timeout=30).returncode == 7
    after = prepost.post_exec(("sleep 60", "true"), seconds=1)
    assert subprocess.run(["/bin/sh", "-c", str(after)], check=False, timeout=30).returncode in (137, -9)


def test_limits_become_bytes_and_seconds() -> None:
    limits = pb.Limits(cpu=60, file=1, data=2, stack=3, core=0, mem=100)
    found = rlimits(limits)
    assert found == {"CPU": (60, 90), "FSIZE": (1024,) * 2, "DATA": (2048,) * 2, "STACK": (3072,) * 2, "CORE": (0, 0)}
    assert rlimits(pb.Limits(core=-1)) == {}


def test_the_process_mapping_of_uneven_hosts() -> None:
    assert mpi.process_mapping([2, 2]) == "(vector,(0,2,2))"
    assert mpi.process_mapping([2, 1]) == "(vector,(0,1,2),(1,1,1))"
    assert mpi.process_mapping([4, 4, 1, 1, 4]) == "(vector,(0,2,4),(2,2,1),(4,1,4))"


@given(st.lists(st.integers(1, 9), min_size=1, max_size=30))
def test_every_rank_is_on_one_host(slots: list[int]) -> None:
    hosts = [pb.HostSlots(host=f"h{n}", slots=count) for n, count in enumerate(slots)]
    ranks = [rank for place in range(len(hosts)) for rank in mpi.ranks_of(hosts, place)]
    assert ranks == list(range(sum(slots)))


def test_the_kvs_name_is_of_this_attempt_alone() -> None:
    assert mpi.kvs_name("c 1", "7.3", 2, "abcdef") == "lava_c_1_7.3_2_abcdef"
    assert len(mpi.kvs_name("c" * 300, "7", 2, "u" * 300)) <= 256


def test_what_other_launchers_left_is_not_carried_over() -> None:
    names = ("PMI_RANK", "PMIX_X", "OMPI_Y", "PRTE_Z", "HYDI_A", "SLURM_B", "LSB_RESTART")
    env = dict.fromkeys(names, "1")
    assert environ.inherited(env | {"PMIHOME": "x", "A": "b"}) == {"PMIHOME": "x", "A": "b"}


def test_many_hosts_are_only_in_the_short_list() -> None:
    hosts = [pb.HostSlots(host=f"host{n}", slots=8) for n in range(100)]
    env = environ.own(pb.JobText(), 7, pb.Start(hosts=hosts, restart=-1), ("f", "r"))
    assert "LSB_HOSTS" not in env
    assert env["LSB_MCPU_HOSTS"].startswith("host0 8 host1 8 ")
    assert env["LSB_DJOB_NUMPROC"] == "800"


def test_a_restarted_job_knows_it() -> None:
    start = pb.Start(hosts=[pb.HostSlots(host="h1", slots=1)], restart=3, restart_count=2)
    env = environ.own(pb.JobText(), 7, start, ("f", "r"))
    assert (env["LSB_RESTART"], env["LSB_RESTART_COUNT"]) == ("Y", "2")


def test_where_output_goes() -> None:
    direct: dict[str, Any] = {"direct_output": True}
    assert outputs.output_paths(pb.JobText(output="o.%J", **direct), 7, ALICE, site()).stdout == "o.7"
    kept = outputs.output_paths(pb.JobText(output="o", error="e"), 7, ALICE, site())
    assert (kept.stdout, kept.stderr) == ("/spool/output/alice/7.out", "/spool/output/alice/7.err")
    none = outputs.output_paths(pb.JobText(error="e"), 3 << 32 | 7, ALICE, site())
    assert (none.stdout, none.stderr) == ("/spool/output/alice/7.3.out", "e")
    folder = outputs.output_paths(pb.JobText(output="d/", output_dir="o%J", **direct), 7, ALICE, site())
    assert folder.stdout == "o7/d/7.out"
    nowhere = outputs.output_paths(pb.JobText(output="/dev/null"), 7, ALICE, site())
    assert (nowhere.stdout, nowhere.kept) == ("/dev/null", "")


def test_output_that_is_kept_for_good_grows_with_each_attempt_and_other_output_as_it_was_asked_for() -> None:
    def file(attempt: int, **text: Any) -> OutputFile:
        made = pb.JobText(**text)
        return outputs.output_file(made, outputs.output_paths(made, 7, ALICE, site()), attempt)

    kept = "/spool/output/alice/7.out"
    assert [file(attempt) for attempt in (1, 2)] == [OutputFile(kept, append=False), OutputFile(kept, append=True)]
    # what was collected of an attempt before has been delivered
    assert [file(attempt, output="o") for attempt in (1, 2)] == [OutputFile(kept, append=False)] * 2
    assert file(2, output="o", direct_output=True) == OutputFile("o", append=True)
    assert file(2, output="o", direct_output=True, output_overwrite=True) == OutputFile("o", append=False)
    assert file(1, interactive="-I") == outputs.DISCARDED


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ({}, "/dev/null"),
        ({"input": "in"}, "in"),
        ({"input": "in.%J"}, "in.7"),
        ({"input": "in", "input_data": b"x"}, "/dev/null"),
    ],
)
def test_standard_input_is_the_file_of_the_option_or_what_was_spooled(tmp_path: Path, text: dict[str, Any], found: str) -> None:
    """On the first host; the others, which need not have the file, read nothing."""
    made = pb.JobText(command="true", cwd="/w", launch="mpi", **text)
    here, hosts = site(str(tmp_path)), [pb.HostSlots(host=name, slots=1) for name in ("h1", "h2")]
    compiled = build.Compiled(made, ALICE, here)
    parts = []
    for place in (0, 1):
        order = pb.Order(key=7, attempt=1, uid="u", start=pb.Start(hosts=hosts, place=place))
        parts.append(build.part(order, compiled, outputs.OutputPaths(), here, HostFiles(str(tmp_path)), "", 5.0)[1])
    assert [(part.stdin, part.input) for part in parts] == [(found, text.get("input_data")), ("/dev/null", None)]


def test_a_part_that_only_holds_its_host_runs_nothing(tmp_path: Path) -> None:
    hosts = [pb.HostSlots(host="h0", slots=1), pb.HostSlots(host="h1", slots=1)]
    text = pb.JobText(command="x", cwd="/w", pre_exec="y", limits=pb.Limits(core=-1))
    order = pb.Order(key=7, attempt=1, uid="u", start=pb.Start(hosts=hosts, place=1, two_phase=True, restart=-1))
    made = build.Compiled(text, ALICE, site(str(tmp_path)))
    _, part = build.part(order, made, outputs.OutputPaths(), site(str(tmp_path)), HostFiles(str(tmp_path)), "", 5.0)
    assert (part.tasks, part.pre_exec, part.deadline) == ((), None, 5.0)


TMPDIRS = [
    ({"LSB_SET_TMPDIR": "y"}, "TMPDIR", "/tmp/7_3.tmpdir"),
    ({"LSB_SET_TMPDIR": "y", "LSF_TMPDIR": "/local"}, "TMPDIR", "/local/7_3.tmpdir"),
    ({"LSB_SET_TMPDIR": "Y", "LSF_TMPDIR": "/local", "LSB_JOB_TMPDIR": "/scratch/%H"}, "TMPDIR", "/scratch/h1/7_3.tmpdir"),
    ({"LSB_SET_TMPDIR": "MY_TMP", "LSB_JOB_TMPDIR": "/scratch"}, "MY_TMP", "/scratch/7_3.tmpdir"),
    ({"LSB_SET_TMPDIR": "n", "LSB_JOB_TMPDIR": "/scratch"}, "", ""),
]


@pytest.mark.parametrize(("conf", "variable", "folder"), TMPDIRS)
def test_the_folder_of_a_job_is_where_and_called_what_lsf_conf_says(
    tmp_path: Path, conf: dict[str, str], variable: str, folder: str
) -> None:
    """As LSF 10.1 reads LSB_SET_TMPDIR, LSB_JOB_TMPDIR and LSF_TMPDIR; an element's folder has its index."""
    here = site(str(tmp_path), **conf)
    order = pb.Order(key=3 << 32 | 7, attempt=1, uid="u", start=pb.Start(hosts=[pb.HostSlots(host="h1", slots=1)], restart=-1))
    made = build.Compiled(pb.JobText(command="true", env={"TMPDIR": "/home"}), ALICE, here)
    template, part = build.part(order, made, outputs.OutputPaths(), here, HostFiles(str(tmp_path)), "", 5.0)
    env = {**template.env, **part.env}
    assert part.tmpdir == folder
    assert env["TMPDIR"] == (folder if variable == "TMPDIR" else "/home")
    assert {name: value for name, value in env.items() if value.endswith(".tmpdir")} == ({variable: folder} if variable else {})
    order.start.hosts.add(host="h2", slots=1)
    order.start.place = 1
    _, other = build.part(order, made, outputs.OutputPaths(), here, HostFiles(str(tmp_path)), "", 5.0)
    assert (part.tmpdir_of_first, other.tmpdir_of_first) == (False, bool(folder))


def test_parallel_jobs_have_the_kill_sequence_only_where_the_site_wants_it() -> None:
    start = pb.Start(hosts=[pb.HostSlots(host="h1", slots=2)])
    assert not limits.rules_of(pb.JobText(), start, site()).sequential
    assert limits.rules_of(pb.JobText(), start, site(LSB_USE_SEQUENTIAL_SIGNAL="Y")).sequential
    one = pb.Start(hosts=[pb.HostSlots(host="h1", slots=1)])
    assert limits.rules_of(pb.JobText(), one, site()).sequential
    assert limits.rules_of(pb.JobText(), one, site(LSB_SIGSTOP="SIGTSTP")).stop_signal == 20
    assert limits.rules_of(pb.JobText(), one, site()).stop_signal == 0


def summary(**fields: object) -> report.Summary:
    given: dict[str, object] = {
        "key": 108,
        "name": "fails",
        "hosts": (("ol2", 1),),
        "host": "ol2",
        "admin": "lsfadmin",
        "home": "/home/alice",
        "cwd": "/home/alice",
        "lost_cwd": "",
        "dispatched": 1e9,
        "started": 1e9,
        "ended": 1e9 + 5,
        "status": 3 << 8,
        "reason": "",
        "why": "",
        "use": report.Use(cpu=0.01, max_mem=6 * 1024, processes=1),
    }
    return report.Summary(**(given | fields))  # type: ignore[arg-type]


TEXT = pb.JobText(command="exit 3", user="alice", from_host="ol1", cluster="C", queue="normal", submitted=1e9 - 2)


def test_the_report_has_a_section_for_gpus() -> None:
    busy = pb.GpuUse(uuid="GPU-b", index=1, max_mem=200, held=90, known=90, used=45, idle=9, max_util=97, energy=405.4)
    idle = pb.GpuUse(uuid="GPU-a", index=0, held=90, known=90, idle=90, energy=-1)
    dark = pb.GpuUse(uuid="GPU-c", index=-1, held=90, energy=-1)
    use = report.Use(cpu=0.01, gpus=(busy, idle, dark))
    text = report.report(TEXT, summary(use=use), outputs.OutputPaths("out", "", "/kept"), 1e9 + 6)[0]
    lines = text[text.index("GPU usage summary") :].splitlines()
    assert lines[:7] == [
        "GPU usage summary:",
        "",
        f"    {'GPU GPU-c :':<44} use is not known, 90 sec.",
        f"    {'GPU 0 :':<44} SM 0% (max. 0%), idle 100%, memory max. 0 MB, 90 sec.",
        f"    {'GPU 1 :':<44} SM 50% (max. 97%), idle 10%, memory max. 200 MB, 405 J, 90 sec.",
        "",
        "    3 GPUs asked, 1 idle 100 % of the time: ask for fewer.",
    ]
    apart = report.report(TEXT, summary(use=use, hosts=(("ol2", 1), ("ol3", 1))), outputs.OutputPaths("out", "", "/kept"), 1e9)[0]
    assert "GPU usage summary on host <ol2>:" in apart


def test_the_report_of_a_longer_job_says_what_it_used_of_what_it_asked_for() -> None:
    text = pb.JobText(user="alice", cluster="C", queue="normal", limits=pb.Limits(run=7200))
    used = {"use": report.Use(cpu=660.0, max_mem=1 << 20), "requested_mem": 8192.0, "status": 0}
    told = summary(hosts=(("ol2", 4), ("ol3", 4)), ended=1e9 + 600, **used)
    before = report.report(text, told, outputs.OutputPaths("out", "", "/kept"), 1e9 + 600)[0]
    assert before[before.index("Used of what was") :].splitlines()[:7] == [
        "Used of what was asked for:",
        "",
        f"    {'CPU :':<44} 14% of 8 slots",
        f"    {'Memory :':<44} 12% of 8192 MB",
        f"    {'Run limit :':<44} 8% of 120 min.",
        "",
        "    It used 1.1 of its 8 slots: ask for -n 2, or let the program use them.",
    ]
    assert "asked for" not in report.report(text, summary(**used), outputs.OutputPaths("out", "", "/kept"), 1e9)[0]


def test_the_report_is_lsfs() -> None:
    before, after = report.report(TEXT, summary(), outputs.OutputPaths("out", "", "/kept"), 1e9 + 6)
    when = [report.date(1e9 + n) for n in (-2, 0, 5, 6)]
    assert after == ""
    assert (
        before
        == f"""\
Sender: LSF System <lsfadmin@ol2>
Subject: Job 108: <fails> in cluster <C> Exited

Job <fails> was submitted from host <ol1> by user <alice> in cluster <C> at {when[0]}
Job was executed on host(s) <ol2>, in queue <normal>, as user <alice> in cluster <C> at {when[1]}
</home/alice> was used as the home directory.
</home/alice> was used as the working directory.
Started at {when[1]}
Terminated at {when[2]}
Results reported at {when[3]}

Your job looked like:

------------------------------------------------------------
# LSBATCH: User input
exit 3
------------------------------------------------------------

Exited with exit code 3.

Resource usage summary:

    CPU time :                                   0.01 sec.
    Max Memory :                                 6 MB
    Average Memory :                             -
    Total Requested Memory :                     -
    Delta Memory :                               -
    Max Swap :                                   -
    Max Processes :                              1
    Max Threads :                                -
    Run time :                                   5 sec.
    Turnaround time :                            7 sec.

The output (if any) follows:

"""
    )


def test_the_report_names_what_ended_the_job() -> None:
    where = outputs.OutputPaths("out", "err", "")
    before, after = report.report(TEXT, summary(status=9, reason="TERM_OWNER", why="rank 3: it died"), where, 1e9)
    assert before == ""
    assert "TERM_OWNER: job killed by owner.\nRank 3: it died.\nExited with signal termination: Killed.\n" in after
    assert after.endswith("\n\nPS:\n\nRead file <err> for stderr output of this job.\n\n")
    _, after = report.report(TEXT, summary(status=0, hosts=(("a", 2), ("b", 1))), where, 1e9)
    where_it_ran = f"<2*a>, in queue <normal>, as user <alice> in cluster <C> at {report.date(1e9)}\n{' ' * 28}<1*b>\n"
    assert where_it_ran in after
    assert "<fails> in cluster <C> Done" in after


def test_the_report_of_a_job_that_ended_well_has_its_note() -> None:
    where = outputs.OutputPaths("out", "err", "")
    _, after = report.report(TEXT, summary(status=0, note="none of the 4 ranks joined"), where, 1e9)
    assert "\n\nSuccessfully completed.\nNone of the 4 ranks joined.\n\nResource usage" in after
    assert "<fails> in cluster <C> Done" in after


def test_every_job_has_a_limit_of_processes_and_one_of_memory_where_the_site_enforces_it() -> None:
    asked = pb.Limits(mem=1024)
    assert cgroup(asked, True, site()) == CgroupLimits(1 << 20, 16384)
    assert cgroup(asked, False, site(LAVA_JOB_PIDS="100")) == CgroupLimits(pids=100)
    assert cgroup(pb.Limits(), True, site(LAVA_JOB_PIDS="0")) == CgroupLimits()
