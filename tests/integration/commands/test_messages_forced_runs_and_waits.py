"""More of LSF's commands on a real cluster: messages, forced runs, waits."""

from __future__ import annotations

from pathlib import Path

from tests.support.live.cluster import Cluster


def test_messages(cluster: Cluster, tmp_path: Path) -> None:
    job = cluster.submit("-H sleep 100")
    assert cluster.run(f"bread {job}").stdout == f"Job {job} has no posted messages\n"
    assert cluster.run(f"bpost -d 'my message' {job}").stdout == f"Message to job {job} posted all right.\n"
    lines = cluster.run(f"bread {job}").stdout.splitlines()
    assert lines[0] == f"Messages posted to jobID {job}"
    assert lines[1].startswith("POST_TIME: ")
    assert lines[1].endswith("  MESSAGE: my message")
    (tmp_path / "data").write_text("attached\n")
    cluster.run(f"bpost -i 2 -a {tmp_path}/data {job}")
    assert "MESSAGE: no description" in cluster.run(f"bread -a {tmp_path}/copy -i 2 {job}").stdout
    assert (tmp_path / "copy").read_text() == "attached\n"
    none = cluster.run(f"bread -a {tmp_path}/none {job}", ok=False)
    assert (none.returncode, none.stderr) == (255, f"{job}: No data is attached to the message\n")
    assert not (tmp_path / "none").exists()
    assert "my message" in cluster.run(f"bstatus {job}").stdout
    done = cluster.run("bpost -d x 99999", ok=False)
    assert (done.returncode, done.stderr) == (255, "lsb_jobmsg(): No matching job found\n")
    waits = cluster.submit(f"-w 'external({job}, \"go on\")' true")
    cluster.run(f"bpost -i 3 -d 'go on' {job}")
    assert cluster.wait_end(waits) == ["DONE"]
    cluster.run(f"bkill {job}")
    cluster.wait_end(job)
    assert "my message" in cluster.run(f"bread {job}").stdout


def test_a_forced_run(cluster: Cluster) -> None:
    cluster.run("badmin qinact normal")
    job = cluster.submit("true")
    assert cluster.run(f"brun -m host1 {job}").stdout == f"Job <{job}> is being forced to run.\n"
    assert cluster.wait_end(job) == ["DONE"]
    cluster.run("badmin qact normal")


def test_a_wait(cluster: Cluster) -> None:
    job = cluster.submit("sleep 1")
    assert cluster.run(f"bwait -w 'done({job})'").returncode == 0
    done = cluster.run(f"bwait -w 'exit({job})'", ok=False)
    assert (done.returncode, done.stderr) == (255, f"Wait condition <exit({job})> can never be satisfied\n")


def test_application_profiles(cluster: Cluster) -> None:
    assert cluster.run("bsub -app nosuch true", ok=False).stderr == "nosuch: No such application profile. Job not submitted.\n"
    path = next(cluster.folder.path.rglob("lsb.queues")).with_name("lsb.applications")
    path.write_text(
        "Begin Application\nNAME = short\nRUNLIMIT = 5 10\nREQUEUE_EXIT_VALUES = 42\nDESCRIPTION = short ones\nEnd Application\n"
    )
    cluster.run("badmin reconfig -f")
    assert cluster.run("bapp short").stdout.splitlines()[1].split() == ["short", "0", "0", "0", "0"]
    job = cluster.submit("-app short -H sleep 1")
    assert cluster.run(f"bjobs -noheader -o 'app rtlimit' {job}").stdout.split()[0] == "short"
    too_long = cluster.run("bsub -app short -W 20 true", ok=False).stderr
    assert too_long == "RUNLIMIT: Cannot exceed the application profile's limit. Job not submitted.\n"
    cluster.run(f"bkill -app short {job}")


def test_nodes_and_requeue_values(cluster: Cluster, tmp_path: Path) -> None:
    job = cluster.submit("-nnodes 1 true")
    assert cluster.wait_end(job) == ["DONE"]
    assert cluster.run("bsub -nnodes x true", ok=False).stderr == "x: Bad number of nodes. Job not submitted.\n"
    mark = tmp_path / "mark"
    again = cluster.submit(f"-Q 42 'test -e {mark} || {{ touch {mark}; exit 42; }}'")
    assert cluster.wait_end(again, timeout=60) == ["DONE"]
    assert cluster.run("bsub -Q x true", ok=False).returncode == 255


def test_finished_jobs_are_requeued(cluster: Cluster, tmp_path: Path) -> None:
    mark = tmp_path / "count"
    job = cluster.submit(f"-J again 'echo >> {mark}; exit 3'")
    array = cluster.submit(f"-J 'arr[1-2]' 'echo $LSB_JOBINDEX >> {mark}'")
    cluster.wait_end(job)
    cluster.wait_end(array)
    assert cluster.run(f"brequeue -d {job}", ok=False).returncode == 255
    assert cluster.run(f"brequeue -e {job}").stdout == f"Job <{job}> is being requeued \n"
    assert cluster.run(f"brequeue -d '{array}[2]'").stdout == f"Job <{array}[2]> is being requeued \n"
    assert cluster.wait_end(job) == ["EXIT"]
    assert cluster.wait_end(array) == ["DONE"] * 2
    assert sorted(mark.read_text().split()) == ["1", "2", "2"]
    assert len(mark.read_text().splitlines()) == 5
    assert "Signal <REQUEUE_PEND> requested by user or administrator" in cluster.run(f"bhist -l {job}").stdout


def test_a_running_job_is_switched(cluster: Cluster) -> None:
    job = cluster.submit("sleep 100")
    cluster.wait_for(job, "RUN")
    other = next(name for name in cluster.run("bqueues -noheader -o queue_name").stdout.split() if name != "normal")
    assert cluster.run(f"bswitch {other} {job}").stdout == f"Job <{job}> is switched to queue <{other}>\n"
    assert cluster.run(f"bjobs -noheader -o queue {job}").stdout.split() == [other]
    cluster.run(f"bkill {job}")
    cluster.wait_end(job)


def test_job_files_and_packs(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "job.json").write_text(f'{{"io": {{"o": "{tmp_path}/out"}}, "job": {{"J": "described"}}, "command": "echo hi"}}')
    job = cluster.submit(f"-json {tmp_path}/job.json")
    assert cluster.run(f"bjobs -noheader -o name {job}").stdout.split() == ["described"]
    cluster.wait_end(job)
    assert "hi\n" in (tmp_path / "out").read_text()
    (tmp_path / "pack").write_text("-J one true\n-q nosuch true\n-J two true\n")
    done = cluster.run(f"bsub -pack {tmp_path}/pack", ok=False)
    assert done.returncode == 255
    assert done.stdout.count("is submitted to default queue") == 2
    assert done.stderr == f"{tmp_path}/pack: line 2: nosuch: No such queue. Job not submitted.\n"


def test_limits_are_shown(cluster: Cluster) -> None:
    assert cluster.run("blimits").returncode == 0
