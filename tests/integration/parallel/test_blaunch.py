"""blaunch in real jobs on several hosts: what it runs, passes on and refuses, and that nothing of it outlives the job."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.live.cluster import VENV, Cluster
from tests.support.live.inside import environment_of, pids_in, run_script, said, submit_script
from tests.support.processes import is_alive, is_stopped
from tests.support.wait import wait_until

WRITE_PID = "echo $$ >.pid.$LAVA_HOST.$$; mv .pid.$LAVA_HOST.$$ pid.$LAVA_HOST.$$; "


pytestmark = pytest.mark.cluster(hosts=3)

ALL = "host1 host2 host3"


def test_a_task_runs_on_the_host_that_was_named(cluster: Cluster, tmp_path: Path) -> None:
    """Commands reach a worker without sshd; names need not resolve."""
    script = "for host in host3 host2 host1; do blaunch $host 'echo $LAVA_HOST $LSF_PM_TASKID $LSB_JOBID'; done"
    job, output = submit_script(cluster, tmp_path, script, ALL)
    cluster.wait_for(job, "DONE")
    assert said(output) == f"host3 1 {job}\nhost2 1 {job}\nhost1 1 {job}\n"


def test_exit_codes_and_deaths_are_passed_on(cluster: Cluster, tmp_path: Path) -> None:
    """The exit status is forwarded."""
    script = """
blaunch host2 'exit 7'; echo $?
blaunch host2 'kill -KILL $$'; echo $?
blaunch host2 'kill -TERM $$'; echo $?
blaunch host2 no-such-program 2>/dev/null; echo $?
blaunch -no-shell host2 no-such-program; echo $?
blaunch -z "host1 host2" 'exit $((LSF_PM_TASKID + 1))'; echo $?
"""
    code, text = run_script(cluster, tmp_path, script)
    assert (code, text) == (0, "7\n137\n143\n127\nno-such-program: command not found\n127\n2\n")


def test_words_are_joined_for_a_shell_on_the_target(cluster: Cluster, tmp_path: Path) -> None:
    """The literal quotes of Hydra and the shell text of Open MPI work as they do with rsh."""
    script = r"""
blaunch -n host2 '"/bin/echo"' --control-port "\"a b\"" '$LAVA_HOST'
blaunch host2 " X=0;" 'X=1;export X;env|grep ^X=' ';' 'echo' '"q;r"'
blaunch -no-shell host2 /bin/echo '$LAVA_HOST' 'a  b' '"'
echo 'WHO=login' >.profile; HOME=$PWD SHELL=/bin/sh blaunch -use-login-shell host2 'echo $WHO'
"""
    code, text = run_script(cluster, tmp_path, script)
    assert code == 0
    lines = text.splitlines()
    assert lines == ["--control-port a b host2", "X=1", "q;r", '$LAVA_HOST a  b "', "login"]


def test_environment_and_folder_go_along(cluster: Cluster, tmp_path: Path) -> None:
    """PATH and what else the caller has set are the task's; what makes a host or a rank is not."""
    (tmp_path / "sub").mkdir()
    script = """
cd sub
export MINE='a "b" $c' PMI_RANK=3 OMPI_COMM_WORLD_RANK=2 PATH=/opt/mine:$PATH
blaunch host2 'pwd; echo "$MINE"; echo "[$PMI_RANK$OMPI_COMM_WORLD_RANK]"; echo ${PATH%%:*}; echo $LAVA_HOST $HOSTNAME'
"""
    code, text = run_script(cluster, tmp_path, script)
    assert code == 0
    assert text == f'{tmp_path}/sub\na "b" $c\n[]\n/opt/mine\nhost2 host2\n'


def test_standard_input_reaches_every_task_and_n_keeps_it(cluster: Cluster, tmp_path: Path) -> None:
    """Stdin is kept open and forwarded."""
    script = """
printf 'one\\ntwo\\n' | blaunch host2 'sed s/^/got:/'
printf 'three\\n' | blaunch -z "host1 host2" 'read line; echo $line' | sort | uniq -c | tr -s ' '
printf 'a\\nb\\n' | while read word; do blaunch -n host2 "echo $word; cat"; done
blaunch host2 'cat; echo end' <&-
head -c 3000000 /dev/zero | blaunch host2 'head -c 5; echo' | wc -c
"""
    code, text = run_script(cluster, tmp_path, script)
    assert (code, text) == (0, "got:one\ngot:two\n 2 three\na\nb\nend\n6\n")


def test_much_output_arrives_whole_and_waits_for_a_slow_reader(cluster: Cluster, tmp_path: Path) -> None:
    """10 MB each way over two hops; a reader that does not read holds up the writer, not the shepherds' memory."""
    script = """
head -c 10000000 /dev/urandom >data; sum=$(md5sum <data)
[ "$(blaunch host3 cat <data | md5sum)" = "$sum" ] && echo same
[ "$(blaunch host2 'blaunch host3 cat' <data | md5sum)" = "$sum" ] && echo same
mkfifo pipe
blaunch -n host3 'head -c 40000000 /dev/zero; echo done >&2' >pipe 2>err & exec 3<pipe
blaunch -n host3 'sleep 0.3'
[ ! -s err ] && echo waits
cat <&3 | wc -c; wait; cat err; rm data
"""
    code, text = run_script(cluster, tmp_path, script, ALL)
    assert (code, text) == (0, "same\nsame\nwaits\n40000000\ndone\n")


def test_without_a_host_each_slot_gets_a_task(cluster: Cluster, tmp_path: Path) -> None:
    """One task for each slot on all hosts, numbered along the list; -z and -u number along theirs."""
    script = """
blaunch 'echo $LSF_PM_TASKID $LAVA_HOST' | sort -n | cut -d' ' -f2 | diff - $LSB_DJOB_HOSTFILE && echo as listed
blaunch -z "host2 host1 host2" 'echo $LSF_PM_TASKID $LAVA_HOST' | sort -n
printf 'host3\\n\\nhost1 # comment\\n' >list
blaunch -u list 'echo $LSF_PM_TASKID $LAVA_HOST' | sort -n
"""
    code, text = run_script(cluster, tmp_path, script, ALL, slots=2)
    assert code == 0
    assert text.splitlines() == [
        "as listed",
        "1 host2",
        "2 host1",
        "3 host2",
        "1 host3",
        "2 host1",
    ]


def test_signals_are_passed_on(cluster: Cluster, tmp_path: Path) -> None:
    """SIGINT, SIGTERM and the user's signals reach the task; its own exit code comes back."""
    script = """
for name in INT TERM USR1 HUP; do
    rm -f up
    blaunch -n host2 "exec 2>/dev/null; trap 'echo got $name; exit 9' $name; touch up; while :; do sleep 0.05; done" & pid=$!
    while [ ! -e up ]; do sleep 0.02; done
    kill -$name $pid; wait $pid; echo $?
done
"""
    # An asynchronous command of a shell without job control ignores SIGINT: python starts it without that.
    starter = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execvp(sys.argv[1], sys.argv[1:])"
    code, text = run_script(cluster, tmp_path, script.replace("blaunch", f"/usr/bin/python3 -c '{starter}' blaunch"))
    assert (code, text) == (0, "".join(f"got {name}\n9\n" for name in ("INT", "TERM", "USR1", "HUP")))


def test_a_killed_blaunch_takes_its_task_along(cluster: Cluster, tmp_path: Path) -> None:
    """Nobody waits for the task any more, so it is ended, its children too; what had left it on purpose stays."""
    script = f"""
blaunch host3 '{WRITE_PID} trap "" HUP; sleep 1000 & sleep 1000' & pid=$!
while ! ls pid.* >/dev/null 2>&1; do sleep 0.02; done
kill -KILL $pid
while [ ! -e over ]; do sleep 0.05; done
"""
    job, _ = submit_script(cluster, tmp_path, script, ALL)
    (task,) = pids_in(tmp_path, "pid.*", 1)
    wait_until(lambda: not is_alive(task), 30, "the task to be gone")
    (tmp_path / "over").touch()
    cluster.wait_for(job, "DONE")


def test_a_worker_starts_tasks_too(cluster: Cluster, tmp_path: Path) -> None:
    """``blaunch`` works from a task of a worker (tree spawn), leaf to leaf and back to the first host."""
    script = """
blaunch host2 'blaunch host3 "blaunch host1 \\"echo \\\\\\$LAVA_HOST; exit 5\\""'; echo $?
"""
    assert run_script(cluster, tmp_path, script, ALL) == (0, "host1\n5\n")


def test_64_tasks_at_once(cluster: Cluster, tmp_path: Path) -> None:
    """Many tasks over one link, with input and output, and none lost."""
    script = """
hosts=$(for i in $(seq 16); do echo host1 host2 host3 host2; done)
echo word | blaunch -z "$hosts" 'read w; echo $w $LSF_PM_TASKID; exit 0' | sort -n -k2 >lines
for host in host1 host2 host3; do for i in 1 2 3 4 5; do blaunch -n $host "echo $host $i >>many" & done; done; wait
wc -l <lines; tail -1 lines; wc -l <many
"""
    assert run_script(cluster, tmp_path, script, ALL) == (0, "64\nword 64\n15\n")


def test_only_hosts_of_the_job_are_reached(cluster: Cluster, tmp_path: Path) -> None:
    """Outside its slots a job starts nothing."""
    script = """
blaunch host3 'touch reached'; echo $?
LSB_MCPU_HOSTS="host1 1 host3 1 " blaunch host3 'touch reached'; echo $?
blaunch no-such-host true; echo $?
[ -e reached ] && echo reached
"""
    _, text = run_script(cluster, tmp_path, script, "host1 host2")
    lines = text.splitlines()
    assert lines[1::2] == ["255", "255", "255"]
    assert all("not a host of job" in line for line in lines[::2])


def test_the_token_of_another_job_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    """The token of job A against job B, of the same user, starts nothing; nor does none, nor a wrong one."""
    first, second = tmp_path / "a", tmp_path / "b"
    first.mkdir()
    second.mkdir()
    script = WRITE_PID + "while [ ! -e over ]; do sleep 0.05; done"
    job_a, _ = submit_script(cluster, first, script)
    job_b, _ = submit_script(cluster, second, script)
    (pid_a,), (pid_b,) = pids_in(first, "pid.*", 1), pids_in(second, "pid.*", 1)
    a, b = environment_of(pid_a), environment_of(pid_b)
    assert a["LAVA_TOKEN"] != b["LAVA_TOKEN"]
    blaunch = [str(VENV / "blaunch"), "-n", "host2", "touch reached"]
    for token in (a["LAVA_TOKEN"], "", "0" * 64):
        done = subprocess.run(blaunch, env={**b, "LAVA_TOKEN": token}, cwd=second, capture_output=True, text=True, timeout=30)
        assert (done.returncode, done.stderr) == (255, "blaunch: not with the token of this job\n")
    assert not (second / "reached").exists()
    assert subprocess.run(blaunch, env=b, cwd=second, timeout=30).returncode == 0
    assert (second / "reached").exists()
    for folder, job in ((first, job_a), (second, job_b)):
        (folder / "over").touch()
        cluster.wait_for(job, "DONE")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be two users")
def test_another_user_is_refused_even_with_the_token(cluster: Cluster, tmp_path: Path) -> None:
    """Who asks is told by the kernel."""
    job, _ = submit_script(cluster, tmp_path, WRITE_PID + "while [ ! -e over ]; do sleep 0.05; done")
    (pid,) = pids_in(tmp_path, "pid.*", 1)
    done = subprocess.run(
        [str(VENV / "blaunch"), "-n", "host2", "touch reached"],
        env=environment_of(pid),
        cwd="/",
        user=65534,
        group=65534,
        extra_groups=[],
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 255
    assert "shepherd" in done.stderr
    (tmp_path / "over").touch()
    cluster.wait_for(job, "DONE")


def test_outside_a_job_it_says_so(cluster: Cluster) -> None:
    done = cluster.run("blaunch host1 true", ok=False)
    assert (done.returncode, done.stdout) == (255, "")
    assert done.stderr == "blaunch: not inside a job: LSB_JOBID and LSB_MCPU_HOSTS are not set\n"


def test_bkill_leaves_nothing_on_any_host(cluster: Cluster, tmp_path: Path) -> None:
    """What blaunch started is tracked and killed with the job, daemons that cleared their environment too."""
    daemon = 'setsid env -i /bin/sh -c "echo \\$\\$ >d.$LAVA_HOST; exec sleep 1000" </dev/null >/dev/null 2>&1 &'
    script = f"""
cat >task.sh <<'X'
{daemon}
{WRITE_PID} trap "" INT TERM; while :; do sleep 0.2; done
X
blaunch 'sh task.sh' & wait
"""
    job, _ = submit_script(cluster, tmp_path, script, ALL, slots=1)
    pids = pids_in(tmp_path, "pid.*", 3) + pids_in(tmp_path, "d.*", 3)
    assert all(is_alive(pid) for pid in pids)
    cluster.run(f"bkill {job}")
    cluster.wait_for(job, "EXIT", timeout=40)
    wait_until(lambda: not any(is_alive(pid) for pid in pids), 30, "everything to be gone")


def test_tasks_end_with_the_job_that_left_them(cluster: Cluster, tmp_path: Path) -> None:
    """A job that ends while its tasks run on other hosts leaves none of them."""
    script = f"""
blaunch -n host2 '{WRITE_PID} trap "" TERM HUP; while :; do sleep 0.2; done' &
while ! ls pid.* >/dev/null 2>&1; do sleep 0.02; done
exit 4
"""
    job, _ = submit_script(cluster, tmp_path, script, ALL)
    (task,) = pids_in(tmp_path, "pid.*", 1)
    cluster.wait_for(job, "EXIT", timeout=40)
    wait_until(lambda: not is_alive(task), 30, "the task to be gone")


def test_use_of_tasks_is_the_jobs(cluster: Cluster, tmp_path: Path) -> None:
    """CPU time of tasks on the other host is sampled and reported with the job's."""
    # which of its hosts the job begins on depends on their load
    script = f"blaunch -n ${{LSB_HOSTS##* }} '{WRITE_PID} while [ ! -e over ]; do :; done'"
    job, _ = submit_script(cluster, tmp_path, script)
    (task,) = pids_in(tmp_path, "pid.*", 1)

    def seen() -> bool:
        return str(task) in cluster.run(f"bjobs -l {job}").stdout.split("PIDs:")[-1]

    wait_until(seen, 60, lambda: f"{task} in\n" + cluster.run(f"bjobs -l {job}").stdout)
    (tmp_path / "over").touch()
    cluster.wait_for(job, "DONE")


def test_an_agent_that_restarts_breaks_no_task(cluster: Cluster, tmp_path: Path) -> None:
    """Tasks run between shepherds; neither agent nor master is in their way."""
    task = WRITE_PID + "while [ ! -e go ]; do sleep 0.05; done; cat; exit 3"
    job, output = submit_script(cluster, tmp_path, f"blaunch host2 '{task}' <<<hello; echo $?; blaunch host2 'echo again'")
    # A job that is RUN may still wait for the word to go, which nobody gives while the daemons are dead.
    pids_in(tmp_path, "pid.*", 1)
    for name in ("agent-host1", "agent-host2", "lavad"):
        cluster.kill(name)
    (tmp_path / "go").touch()
    wait_until(lambda: output.exists() and "again" in output.read_text(), 20, "the task's output")
    cluster.up()
    cluster.wait_for(job, "DONE")
    assert said(output) == "hello\n3\nagain\n"


def test_a_stopped_job_is_stopped_on_all_hosts(cluster: Cluster, tmp_path: Path) -> None:
    """``bstop`` and ``bresume`` reach the tasks."""
    job, _ = submit_script(cluster, tmp_path, f"blaunch -n host2 '{WRITE_PID} while [ ! -e over ]; do sleep 0.05; done'")
    (task,) = pids_in(tmp_path, "pid.*", 1)

    cluster.run(f"bstop {job}")
    wait_until(lambda: is_stopped(task), 20, "the task to be stopped")
    cluster.run(f"bresume {job}")
    wait_until(lambda: not is_stopped(task), 20, "the task to go on")
    (tmp_path / "over").touch()
    cluster.wait_for(job, "DONE")


def test_a_job_of_one_slot_launches_on_its_own_host(cluster: Cluster, tmp_path: Path) -> None:
    """No shepherd's help is needed there, and no other host is reached."""
    script = "blaunch host1 'echo $LAVA_HOST $LSF_PM_TASKID; exit 6'; echo $?; blaunch 'echo all'; blaunch host2 true; echo $?"
    code, text = run_script(cluster, tmp_path, script, "host1")
    assert code == 0
    assert text.splitlines()[:3] == ["host1 1", "6", "all"]
    assert text.splitlines()[3].endswith(": not a host of job " + text.split()[-2]) or "255" in text
