"""Tools that drive LSF by its commands: their very command lines, and their very regexes on what lava prints.

Each test is one tool's life with a job: submit, ask, kill. The tools themselves run in ``tests/soak/test_clients.py``.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until

WIDE = "JOBID USER STAT QUEUE FROM_HOST EXEC_HOST JOB_NAME SUBMIT_TIME PROJ_NAME CPU_USED MEM SWAP PIDS START_TIME FINISH_TIME"


@pytest.fixture(scope="module", autouse=True)
def user(cluster: Cluster) -> None:
    """Tools ask for the jobs of $USER."""
    cluster.environ["USER"] = cluster.run("id -un").stdout.strip()


def submitted(pattern: str, said: str) -> str:
    found = re.search(pattern, said, re.MULTILINE)
    assert found, said
    return found.group(1)


def script(folder: Path, *lines: str) -> Path:
    path = folder / "job.sh"
    path.write_text("\n".join(lines) + "\n")
    return path


def _found(wanted: str, text: str) -> str:
    found = re.search(wanted, text)
    return found.group(0) if found else ""


def wait_output(cluster: Cluster, command: str, wanted: str) -> str:
    """Ask as the tool asks, until the answer matches."""
    return wait_until(lambda: _found(wanted, cluster.run(command, ok=False).stdout), 30, f"{wanted} of {command}")


def test_nextflow(cluster: Cluster, tmp_path: Path) -> None:
    path = script(
        tmp_path,
        "#!/bin/bash",
        f"#BSUB -o {tmp_path}/.command.log",
        "#BSUB -q normal",
        "#BSUB -n 2",
        '#BSUB -R "span[hosts=1]"',
        "#BSUB -W 00:10",
        "#BSUB -M 100",
        '#BSUB -R "select[mem>=10] rusage[mem=10]"',
        "#BSUB -J nf-hello_(1)",
        "sleep 100",
    )
    job = submitted(r"^Job <(\d+)>", cluster.run("bsub", stdin=path.read_text(), cwd=tmp_path).stdout)
    cluster.wait_for(job, "RUN")
    header, *rows = cluster.run("bjobs -w -q normal").stdout.splitlines()
    at, stat = header.split().index("JOBID"), header.split().index("STAT")
    assert {row.split()[at]: row.split()[stat] for row in rows}[job] == "RUN"
    cluster.run(f"bkill {job}")
    cluster.wait_end(job)


def test_cromwell(cluster: Cluster, tmp_path: Path) -> None:
    path = script(tmp_path, "sleep 100")
    line = f"bsub -J cromwell_ab12 -cwd {tmp_path} -o {tmp_path}/out -e {tmp_path}/err /usr/bin/env bash {path}"
    job = submitted(r"Job <(\d+)>.*", cluster.run(line).stdout)
    alive = f"bjobs -w {job} 2>&1 | egrep -qvw 'not found|EXIT|JOBID'"
    cluster.run(alive)
    cluster.run(f"bkill {job}")
    cluster.wait_end(job)
    assert cluster.run(alive, ok=False).returncode == 1
    assert cluster.run("bjobs -w 987654 2>&1 | egrep -qvw 'not found|EXIT|JOBID'", ok=False).returncode == 1


def test_toil(cluster: Cluster, tmp_path: Path) -> None:
    line = (
        "bsub -cwd . -J toil_job_1 -R 'select[mem>10MB] rusage[mem=10MB]' -M 100MB -n 1 -o toil.%J.out -e toil.%J.err"
        " 'pwd; exit 3'"
    )
    job = submitted("Job <(.*)> is submitted", cluster.run(line, cwd=tmp_path).stdout)
    cluster.wait_end(job)
    assert (tmp_path / f"toil.{job}.out").read_text().startswith(f"{tmp_path}\n")
    told = json.loads(cluster.run(f"bjobs -json -o 'jobid user exit_code stat exit_reason pend_reason' {job} 987654").stdout)
    assert (told["RECORDS"][0]["STAT"], told["RECORDS"][0]["EXIT_CODE"]) == ("EXIT", "3")
    assert told["RECORDS"][1] == {"JOBID": "987654", "ERROR": "Job <987654> is not found"}
    flat = cluster.run(f"bjobs -l {job}").stdout.replace("\n                     ", "")
    assert submitted(r"Exited with exit code (\d+)\.", flat) == "3"
    assert "Completed <exit>" in cluster.run(f"bacct -l {job}").stdout


def test_units_and_reservation(cluster: Cluster) -> None:
    """toil, bcbio and canu read these two from the first of three places that has them."""
    for command in ("bparams -a", "lsadmin showconf lim", "cat $LSF_ENVDIR/lsf.conf"):
        pairs = {
            words[0].strip(): words[1].strip()
            for line in cluster.run(command).stdout.split("\n")
            if not line.startswith("#") and len(words := line.split("=")) == 2
        }
        assert pairs["LSF_UNIT_FOR_LIMITS"] == "MB", command


def test_clustermq(cluster: Cluster) -> None:
    """Its directives have no blank after the mark."""
    text = (
        "#BSUB-J cmq7[1-2]    # name of the job / array jobs\n#BSUB-n 1      # cores\n#BSUB-o /dev/null\n"
        "#BSUB-M 4096    # Memory requirements in Mbytes\n#BSUB-R rusage[mem=1]  # Memory\n##BSUB-q default   # queue\n"
        "ulimit -v $(( 1024 * 4096 ))\nsleep 100\n"
    )
    job = submitted(r"Job <(\d+)>", cluster.run("bsub", stdin=text).stdout)
    assert cluster.wait_for(job, "RUN") == ["RUN", "RUN"]
    cluster.run("bkill -J cmq7")
    assert cluster.wait_end(job) == ["EXIT", "EXIT"]


def test_batchtools(cluster: Cluster) -> None:
    """It takes an empty list for a failure, unless the text says so."""
    text = "#BSUB -J job9\n#BSUB -o /dev/null   # output\n#BSUB -q normal\n#BSUB -W 60\n#BSUB -M 100\nsleep 100\n"
    job = submitted(r"(\d+)", cluster.run("bsub", stdin=text).stdout)
    cluster.wait_for(job, "RUN")
    listed = cluster.run("bjobs -u $USER -w -r").stdout.splitlines()[1:]
    assert job in [submitted(r"^(\d+)", line) for line in listed]
    done = cluster.run("bjobs -u $USER -w -p", ok=False)
    assert re.search("No (unfinished|pending|running) job found", done.stdout + done.stderr)
    cluster.run(f"bkill {job}")
    cluster.wait_end(job)


def test_open_ondemand(cluster: Cluster, tmp_path: Path) -> None:
    line = f"bsub -P a -cwd {tmp_path} -J ood -rn -o o.txt -W 60 -n 1"
    job = submitted(r"^Job <(.*)> .*$", cluster.run(line, stdin="#!/bin/bash\nsleep 100\n", cwd=tmp_path).stdout)
    cluster.wait_for(job, "RUN")
    header, row = cluster.run(f"bjobs -a -w -W {job}").stdout.splitlines()
    assert header.split() == WIDE.split()
    shown = dict(zip(WIDE.split(), row.split(), strict=True))
    assert (shown["JOB_NAME"], shown["PROJ_NAME"]) == ("ood", "a")
    assert re.fullmatch(r"\d+:\d+:\d+\.\d+", shown["CPU_USED"])
    assert datetime.strptime(shown["START_TIME"] + " 2024", "%m/%d-%H:%M:%S %Y")
    for command, state in (("bstop", "USUSP"), ("bresume", "RUN"), ("bkill", "EXIT")):
        cluster.run(f"{command} {job}")
        cluster.wait_for(job, state)


def test_ert(cluster: Cluster, tmp_path: Path) -> None:
    line = f"bsub -q normal -o {tmp_path}/out -e {tmp_path}/err -n 1 -J real-0 {script(tmp_path, 'sleep 100')} {tmp_path}"
    job = submitted(r"Job <([0-9]+)> is submitted to .*queue", cluster.run(line).stdout)
    wait_output(cluster, f"bjobs -noheader -o \"jobid stat exec_host delimiter='^'\" {job}", rf"{job}\^RUN\^host1")
    rows = cluster.run(f"bhist {job}").stdout.splitlines()
    assert rows[1].split()[:4] == ["JOBID", "USER", "JOB_NAME", "PEND"]
    assert rows[2].split()[0] == job
    assert rows[2].split()[3].isdigit()
    assert cluster.run(f"bkill -s SIGTERM {job}").stdout == f"Job <{job}> is being signaled\n"
    cluster.wait_end(job)
    assert cluster.run(f"bjobs -o exit_code -noheader {job}").stdout.strip().isdigit()


def test_fireworks_and_reframe(cluster: Cluster) -> None:
    text = "#BSUB -n 1\n#BSUB -W 00:05\n#BSUB -q normal\n#BSUB -J fw\n#BSUB -o fw-%J.out\n\nsleep 100\n"
    job = submitted(r"^Job <(?P<jobid>\S+)> is submitted", cluster.run("bsub", stdin=text).stdout)
    lines = cluster.run("bjobs -p -r -o 'jobID user queue' -noheader -u $USER").stdout.split("\n")
    assert sum(line.endswith("normal") for line in lines) == 1
    status = cluster.run(f'bjobs -o "jobid: user:10 stat: queue:" -noheader {job}').stdout
    assert submitted(r"\d+\s+\S+\s+(\S+)\s+\S+", status) in ("PEND", "RUN")
    cluster.run(f"bkill {job}")
    cluster.wait_end(job)


def test_psij(cluster: Cluster, tmp_path: Path) -> None:
    path = script(
        tmp_path,
        "#!/bin/bash",
        "",
        '#BSUB -J "psij"',
        f'#BSUB -cwd "{tmp_path}"',
        "#BSUB -env all",
        "#BSUB -nnodes 1",
        '#BSUB -q "normal"',
        "#BSUB -e /dev/null",
        "#BSUB -o /dev/null",
        "",
        f"echo $LSB_JOBID > {tmp_path}/id",
        "exit 4",
    )
    job = submitted(r"Job <([0-9]+)>", cluster.run(f"bsub {path}").stdout)
    path.unlink()
    cluster.wait_end(job)
    told = json.loads(cluster.run(f"bjobs -o 'JOBID STAT EXIT_REASON KILL_REASON SUSPEND_REASON' -json -a {job}").stdout)
    assert told["RECORDS"][0]["STAT"] == "EXIT"
    assert (tmp_path / "id").read_text().strip() == job
    assert job in cluster.run("bjobs -a -noheader -o jobid -u $USER").stdout.split()
    assert "already finished" in cluster.run(f"bkill {job} 2>&1", ok=False).stdout


def test_maestro(cluster: Cluster, tmp_path: Path) -> None:
    path = script(
        tmp_path,
        "#!/bin/bash",
        "#BSUB -nnodes 1",
        "#BSUB -q normal",
        "#BSUB -G bank",
        "#BSUB -W 00:10",
        "#BSUB -J st_ep",
        "#BSUB -o st_ep.%J.out",
        "#BSUB -e st_ep.%J.err",
        "",
        "true",
    )
    said = cluster.run(f"bsub -cwd {tmp_path} < {path}", cwd=tmp_path).stdout
    job = submitted("([0-9]+)", said)
    cluster.wait_end(job)
    line = "bjobs -a -u $USER -o \"jobid:7 stat:5 exit_code:10 exit_reason:50 delimiter='|'\""
    rows = [[cell.strip() for cell in row.split("|")] for row in cluster.run(line).stdout.splitlines()]
    assert rows[0] == ["JOBID", "STAT", "EXIT_CODE", "EXIT_REASON"]
    assert [job, "DONE", "-", "-"] in rows


def test_signac(cluster: Cluster) -> None:
    job = submitted(r"Job <(\d+)>", cluster.run("bsub -J sig/ab/1 sleep 100").stdout)
    records = json.loads(cluster.run("bjobs -json -u $USER").stdout)["RECORDS"]
    assert ("sig/ab/1", job) in [(record["JOB_NAME"], record["JOBID"]) for record in records]
    assert {record["STAT"] for record in records} <= {"PEND", "RUN"}
    cluster.run(f"bkill {job}")
    cluster.wait_end(job)


def test_roddy(cluster: Cluster, tmp_path: Path) -> None:
    """``-o`` without a value before ``-json``: the fields come last."""
    names = (
        "jobid job_name stat user queue job_description proj_name job_group job_priority pids exit_code from_host exec_host"
        " submit_time start_time finish_time cpu_used run_time user_group swap max_mem runtimelimit sub_cwd pend_reason"
        " exec_cwd output_file input_file effective_resreq exec_home slots error_file command dependency"
    )
    line = (
        f"LSB_NTRIES=5 bsub -env none -J rod -H -cwd {tmp_path} -oo {tmp_path}/out -M 20M -R 'rusage[mem=20M]' -W 01:00"
        " -n 1 -R 'span[hosts=1]' -P p -q normal true"
    )
    job = submitted(r"Job <(\d+)>", cluster.run(line).stdout)
    (record,) = json.loads(cluster.run(f'bjobs -a -o -hms -json "{names}" {job}').stdout)["RECORDS"]
    assert set(record) == {name.upper() for name in names.split()}
    assert (record["STAT"], record["RUNTIMELIMIT"], record["SUB_CWD"]) == ("PSUSP", "01:00:00", str(tmp_path))
    cluster.run(f"bresume {job}")
    assert cluster.wait_end(job) == ["DONE"]


def test_blahp_and_gc3pie(cluster: Cluster, tmp_path: Path) -> None:
    path = script(
        tmp_path,
        "#!/bin/bash",
        "#BSUB -L /bin/bash",
        "#BSUB -J bl_8f2d",
        "#BSUB -q normal",
        "#BSUB -i /dev/null",
        f"#BSUB -o {tmp_path}/out",
        f"#BSUB -e {tmp_path}/err",
        "echo here",
    )
    job = submitted(r"^Job <(\d+)> is submitted", cluster.run(f"bsub < {path}").stdout)
    assert cluster.wait_end(job) == ["DONE"]
    assert (tmp_path / "out").read_text().startswith("here\n")
    line = f"bsub -cwd . -L /bin/bash -n 1 -o {tmp_path}/login 'shopt login_shell'"
    cluster.wait_end(submitted(r"^Job <(\d+)> is submitted", cluster.run(line, cwd=tmp_path).stdout))
    assert (tmp_path / "login").read_text().split()[:2] == ["login_shell", "on"]
    assert cluster.run("bsub -L bash true", ok=False).returncode == 255


def test_galaxy_luigi_and_nipype(cluster: Cluster, tmp_path: Path) -> None:
    job = cluster.run("bsub -J g sleep 100 | awk '{ print $2}' | sed 's/[<>]//g'").stdout.strip()
    assert job.isdigit()
    assert f"{job} " in cluster.run('bjobs -a -o "id stat" -noheader').stdout
    assert cluster.run(f"bjobs -noheader -o stat {job}").stdout.strip("\n") in ("PEND", "RUN")
    cluster.run(f"bkill {job}")
    cluster.wait_end(job)
    assert "TERM_OWNER" in cluster.run(f"bjobs -l {job}").stdout


def test_snakemake_profile(cluster: Cluster, tmp_path: Path) -> None:
    """The lsf profile reads a vanished job's end from the report in its output file."""
    outputs = [tmp_path / "ok", tmp_path / "bad"]
    for path, command in zip(outputs, ("true", "exit 7"), strict=True):
        line = f"bsub -M 100 -n 1 -R 'select[mem>10] rusage[mem=10] span[hosts=1]' -o {path} -J 'a.b' '{command}'"
        job = submitted(r"Job <(\d+)> is submitted", cluster.run(line).stdout)
        wait_output(cluster, f"bjobs -o stat -noheader {job}", "DONE|EXIT")
    wait_until(lambda: all("Resource usage summary" in path.read_text() for path in outputs), 30, "reports")
    assert re.search("^Successfully completed", outputs[0].read_text(), re.MULTILINE)
    assert re.search("^Exited with exit code 7", outputs[1].read_text(), re.MULTILINE)


def test_ehive_and_dirac(cluster: Cluster) -> None:
    assert re.search(r"^My\s+cluster\s+name\s+is\s+(\S+)", cluster.run("lsid").stdout, re.MULTILINE)
    job = submitted(r"Job <(\d+)>", cluster.run("bsub -o /dev/null -e /dev/null -J 'hive-1[1-2]%1' sleep 100").stdout)
    rows = cluster.run("bjobs -w -u $USER -J 'hive-*'").stdout.splitlines()[1:]
    assert [row.split()[0] for row in rows] == [job, job]
    assert all(re.search(r"hive-1\[\d+\]", row) for row in rows)
    rows = cluster.run(f"bjobs -o 'jobid jobindex stat' -noheader '{job}[2]'").stdout.split()
    assert rows[:2] == [job, "2"]
    cluster.run(f"bkill '{job}[2]'")
    cluster.wait_for(f"{job}[2]", "EXIT")
    cluster.run(f"bkill {job}")
    cluster.wait_end(job)


@pytest.mark.parametrize("command", ["lsid", "bjobs", "bsub", "bkill", "bqueues", "bhist", "bhosts", "lsadmin"])
def test_versions(cluster: Cluster, command: str) -> None:
    """radical.saga and others look whether a command runs by asking its version."""
    assert cluster.run(f"{command} -V 2>&1").stdout.strip()
