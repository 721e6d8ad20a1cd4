"""Programs that drive a cluster by real client tools of LSF, each in the Python environment of its tool.

A program gets the cluster's environment and a folder of its own as the current one; it raises where the tool fails.
"""

CYLC = """
import atexit, os, subprocess, time
from pathlib import Path
here = Path.cwd()
flow = here / "cylc-run" / "flow"
flow.mkdir(parents=True)
(here / "global.cylc").write_text('''
[platforms]
    [[lsf]]
        hosts = localhost
        job runner = lsf
        install target = localhost
        submission polling intervals = PT5S
        execution polling intervals = PT5S
''')
(flow / "flow.cylc").write_text('''
[scheduling]
    [[graph]]
        R1 = "a => b & c"
[runtime]
    [[root]]
        platform = lsf
        [[[directives]]]
            -q = normal
    [[a]]
        script = echo $LSB_JOBID > $CYLC_WORKFLOW_SHARE_DIR/a
        execution time limit = PT2M
    [[b]]
        script = cat $CYLC_WORKFLOW_SHARE_DIR/a
    [[c]]
        script = sleep 300
''')
environ = {**os.environ, "HOME": str(here), "CYLC_CONF_PATH": str(here)}
(here / ".bash_profile").write_text(f"export PATH={environ['PATH']}")  # a task's login shell must find cylc
play = subprocess.Popen(["cylc", "play", "--no-detach", "flow"], env=environ, stdout=(here / "log").open("w"),
                        stderr=subprocess.STDOUT)
atexit.register(play.kill)
def said(text):
    ends = time.monotonic() + 90
    while text not in (here / "log").read_text():
        assert time.monotonic() < ends, (here / "log").read_text()
        time.sleep(0.2)
said("[1/b/01:running] => succeeded")
said("[1/c/01:submitted] => running")
subprocess.run(["cylc", "kill", "flow//1/c"], env=environ, check=True)
said("failed/INT")
subprocess.run(["cylc", "stop", "--now", "--now", "flow"], env=environ, check=True)
play.wait(60)
"""

TORCHX = """
import os, time
from pathlib import Path
import torchx.specs as specs
from torchx.schedulers.api import Stream
from torchx.schedulers.lsf_scheduler import create_scheduler
bin = Path("bin").absolute()
bin.mkdir()
# this scheduler runs nothing but containers: a docker that runs the entry point as it is
(bin / "docker").write_text('''#!/bin/bash
while [ $# -gt 0 ]; do case $1 in --entrypoint) E=$2; shift;; --rm) shift 2; break;; esac; shift; done
exec "$E" "$@"
''')
(bin / "docker").chmod(0o755)
os.environ["PATH"] = f"{bin}:" + os.environ["PATH"]
scheduler = create_scheduler("session")
def run(entry, *args):
    role = specs.Role(name="r", image="i", entrypoint=entry, args=list(args), num_replicas=2,
                      resource=specs.Resource(cpu=1, gpu=0, memMB=10))
    jobdir = Path(f"job-{time.time_ns()}").absolute()
    jobdir.mkdir()
    return scheduler.schedule(scheduler.submit_dryrun(specs.AppDef(name="app", roles=[role]), {"jobdir": str(jobdir)}))
def until(app, *states):
    ends = time.monotonic() + 60
    while (found := scheduler.describe(app)) is None or found.state.name not in states:
        assert time.monotonic() < ends, found
        time.sleep(0.5)
    return found
app = run("echo", "hello")
assert [replica.state.name for replica in until(app, "SUCCEEDED").roles_statuses[0].replicas] == ["SUCCEEDED"] * 2
assert list(scheduler.log_iter(app, "r", 1, streams=Stream.STDOUT)) == ["hello\\n"]
until(run("false"), "FAILED")
long = run("sleep", "300")
until(long, "RUNNING", "PENDING")
scheduler._cancel_existing(long)
until(long, "CANCELLED", "FAILED")
"""

PYSQA = """
import os, time
from pysqa import QueueAdapter
queue = QueueAdapter(queue_type="LSF")
os.mkdir("job")
template = '''#!/bin/bash
#BSUB -q normal
#BSUB -J {{job_name}}
#BSUB -o time.out
#BSUB -n {{cores}}
#BSUB -cwd {{working_directory}}
#BSUB -e error.out

{{command}}
'''
def submit(name, command):
    return queue.submit_job(job_name=name, working_directory=os.path.abspath("job"), command=command, cores=1,
                            submission_template=template)
def until(job, *states):
    ends = time.monotonic() + 60
    while (found := queue.get_status_of_job(job)) not in states:
        assert time.monotonic() < ends, found
        time.sleep(0.5)
one, other = submit("one", "echo $LSB_JOBNAME; sleep 2"), submit("other", "sleep 300")
until(other, "running")
assert set(queue.get_status_of_my_jobs()["jobid"]) >= {other}
queue.delete_job(other)
until(one, None)
until(other, None)
assert open("job/time.out").read().startswith("one\\n")
"""

PULSAR = """
import subprocess, time
from pulsar.managers.util.cli.job.lsf import LSF
from pulsar.managers.util.job_script import job_script
def sh(command):
    return subprocess.run(command, shell=True, capture_output=True, text=True).stdout
plugin = LSF(memory="100", cores="2", queue="normal", project="galaxy")
headers = plugin.job_script_kwargs("out", "err", "tool")["headers"]
def submit(command):
    open("script", "w").write(f"#!/bin/bash\\n{headers}\\n{command}\\n")
    return sh(plugin.submit("script")).strip()
def until(job, state):
    ends = time.monotonic() + 60
    while (found := plugin.parse_status(sh(plugin.get_status()), [job]).get(job)) != state:
        assert time.monotonic() < ends, found
        time.sleep(0.5)
from pulsar.managers.util.cli.job import job_states
good, bad, long = submit("echo $LSB_DJOB_NUMPROC > done; sleep 1"), submit("exit 3"), submit("sleep 300")
until(long, job_states.RUNNING)
sh(plugin.delete(long))
until(good, job_states.OK)
until(bad, job_states.ERROR)
until(long, job_states.ERROR)
assert open("done").read() == "2\\n"
assert plugin.parse_single_status(sh(plugin.get_single_status(good)).strip(), good) == job_states.OK
"""

HYDRA = """
import subprocess, sys
open("conf.yaml", "w").write("x: 1\\n")
open("app.py", "w").write('''
import os, hydra
@hydra.main(config_path=".", config_name="conf", version_base=None)
def main(cfg): print("value", cfg.x, os.environ["LSB_JOBNAME"])
main()
''')
words = ["hydra/launcher=lsf", "hydra.launcher.q=normal", "hydra.launcher.M=1GB", "hydra.launcher.W=00:10",
         "hydra.sweep.dir=sweep", "hydra.job.chdir=false", "hydra.launcher.bsub_args='-K'"]
subprocess.run([sys.executable, "app.py", "-m", "x=1,2", *words], check=True)
for number in (0, 1):
    assert open(f"sweep/{number}/job_{number}.out").read().startswith(f"value {number + 1} job_{number}\\n")
"""

STREAMFLOW = """
import asyncio, os
from streamflow.deployment.connector.local import LocalConnector
from streamflow_lsf.connector import LSFConnector, LSFService
async def main():
    here = os.path.abspath("work")
    os.mkdir(here)
    local = LocalConnector("local", os.getcwd())
    await local.deploy(False)
    lsf = LSFConnector("lsf", os.getcwd(), local, None, maxConcurrentJobs=4, pollingInterval=1)
    lsf.services = {"s": LSFService(queueName="normal", numOfTasks="1", runLimit="10", jobName="step",
                                    resourceRequirements="span[hosts=1]")}
    location = next(iter((await lsf.get_available_locations(service="s")).values())).location
    async def status(*words):
        return (await lsf.run(location, list(words), workdir=here, capture_output=True, job_name="step"))[1]
    assert await status("echo", "$LSB_JOBNAME", ">", "name") == 0
    assert open("work/name").read() == "step\\n"
    assert await status("exit", "3") == 3
asyncio.run(main())
"""

SNAKEMAKE_GENERIC = """
import os, subprocess
open("Snakefile", "w").write('''
rule all:
    input: "b.txt"
rule a:
    output: "a.txt"
    shell: "echo $LSB_JOBNAME > {output}"
rule b:
    input: "a.txt"
    output: "b.txt"
    shell: "cat {input} > {output}"
''')
open("submit.sh", "w").write('''#!/bin/bash
bsub "$@" | awk '{print $2}' | tr -d '<>'
''')
open("status.sh", "w").write('''#!/bin/bash
case $(bjobs -noheader -o stat "$1") in DONE) echo success;; EXIT) echo failed;; *) echo running;; esac
''')
for name in ("submit.sh", "status.sh"):
    os.chmod(name, 0o755)
subprocess.run([
    "snakemake", "-j", "2", "--executor", "cluster-generic", "--seconds-between-status-checks", "1",
    "--cluster-generic-submit-cmd", "./submit.sh -q normal -J {rule} -n {threads} -o log.{rule}",
    "--cluster-generic-status-cmd", "./status.sh", "--cluster-generic-cancel-cmd", "bkill",
], check=True, timeout=200)
assert open("b.txt").read() == "a\\n"
"""

LSF_RUNNER = """
import subprocess
from lsf_runner.runners import IBMRunner
runner = IBMRunner("many", num_threads=1, wall_time=10, memory=10)
runner.run(["echo one", "echo two"])
runner.run_batch(["echo A", "echo B", "exit 3"])
subprocess.run(["bwait", "-w", "ended(many*)", "-t", "2"], check=True)
states = subprocess.run(["bjobs", "-a", "-noheader", "-o", "stat", "-J", "many"], capture_output=True, text=True).stdout
assert sorted(states.split()) == ["DONE", "DONE", "EXIT"], states
assert {"one", "two", "A", "B"} <= set(open("logs/lsf.many").read().splitlines())
"""

LOOPER = """
import subprocess, os
from importlib.resources import files
template = files("looper") / "default_config/divvy_templates/lsf_template.sub"
open("divvy.yaml", "w").write(f'''
compute_packages:
  lsf:
    submission_template: {template}
    submission_command: sh
''')
subprocess.run(["divvy", "submit", "--config", "divvy.yaml", "-p", "lsf", "-o", "submit.sh", "-c", "CORES=1", "TIME=0:05",
                "MEM=100", f"LOGFILE={os.getcwd()}/log", "CODE=echo from looper", "PRE_COMMAND=", "POST_COMMAND="], check=True)
subprocess.run("bwait -w 'ended(echo*)' -t 1; head -1 log | grep -x 'from looper'", shell=True, check=True)
"""

PROMETHEUS = """
import os, subprocess
from prometheus_client import generate_latest
from lsf_prometheus_exporter.cmdline_collectors.badmin_collector import BadminCollector
from lsf_prometheus_exporter.cmdline_collectors.bhosts_collector import BhostsCollector
from lsf_prometheus_exporter.cmdline_collectors.bqueues_collector import BqueuesCollector
from lsf_prometheus_exporter.cmdline_collectors.lsload_collector import LsloadCollector
from lsf_prometheus_exporter.metrics_utils.utils import Utils
utils = Utils(False, os.environ["LSF_BINDIR"], False, False, False)
cluster = {"cluster_name": "lava"}
for collector in (BqueuesCollector, BhostsCollector, LsloadCollector):
    collector(utils).fetch(cluster)
subprocess.run(["badmin", "perfmon", "start", "60"], check=True)
badmin = BadminCollector(utils)
badmin.fetch_showstatus(cluster)
badmin.fetch_perfmon_view(cluster)
shown = generate_latest().decode()
for line in (
    'ibm_lsf_queue{cluster_name="lava",queue="normal",state="PEND"} 0.0',
    'ibm_lsf_host_max{cluster_name="lava",host_name="host1",host_type="compute"} 4.0',
    'ibm_lsf_servers{cluster_name="lava",status="ok"} 2.0',
    'ibm_lsf_available_hosts{cluster_name="lava",resource="slots"} 8.0',
    'ibm_lsf_host_r1m{cluster_name="lava",host_name="host2",host_type="compute"} ',
    'ibm_lsf_performance_gauge{cluster_name="lava",metric="total",type="jobs-submitted"} ',
):
    assert line in shown, shown
"""

MINIWDL = """
import json, os, subprocess
from pathlib import Path
open("task.wdl", "w").write('''version 1.0
task hello {
    input { String who }
    command { echo "hi ~{who}" }
    output { Int n = 3 }
    runtime { cpu: 1 memory: "64M" docker: "none" }
}
''')
open("cfg", "w").write("[lsf]\\nmemory_per_job = false\\nextra_args = -q normal\\n")
bin = Path("bin").absolute()
bin.mkdir()
# the plugin puts `bsub -K … singularity exec …` before a task; what singularity does is no matter here
(bin / "singularity").write_text('''#!/bin/bash
case $1 in
--version) echo "singularity-ce version 3.8.0";;
pull) touch "${@: -2:1}";;
exec) echo "$LSB_JOBNAME" > "$SAW"; exit $ENDS;;
esac
''')
(bin / "singularity").chmod(0o755)
environ = {**os.environ, "PATH": f"{bin}:" + os.environ["PATH"], "SAW": str(Path("saw").absolute()),
           "MINIWDL__SCHEDULER__CONTAINER_BACKEND": "lsf_singularity"}
def run(ends):
    words = ["miniwdl", "run", "--cfg", "cfg", "--task", "hello", "task.wdl", "who=a"]
    return subprocess.run(words, env={**environ, "ENDS": ends}, capture_output=True, text=True)
done = run("0")
assert json.loads(done.stdout)["outputs"] == {"hello.n": 3}, done.stderr
assert Path("saw").read_text() == "hello\\n"
failed = run("3")
assert failed.returncode != 0 and "exit_status: 3" in failed.stderr, failed.stderr[-2000:]
"""

PSIJ = """
from datetime import timedelta
from pathlib import Path
from psij import Job, JobAttributes, JobExecutor, JobSpec, JobState, ResourceSpecV1
executor = JobExecutor.get_instance("lsf")
def submit(name, command, **environment):
    job = Job(JobSpec(
        executable="/bin/sh", arguments=["-c", command], directory=Path.cwd(), stdout_path=Path.cwd() / f"{name}.out",
        name=name, environment=environment or None, resources=ResourceSpecV1(process_count=2),
        attributes=JobAttributes(duration=timedelta(minutes=5), queue_name="normal"),
    ))
    executor.submit(job)
    return job
good, bad = submit("good", "echo $WORD $LSB_DJOB_NUMPROC", WORD="hello"), submit("bad", "exit 3")
assert good.wait(timedelta(seconds=120)).state == JobState.COMPLETED, good.status
assert Path("good.out").read_text().startswith("hello 2\\n"), Path("good.out").read_text()
status = bad.wait(timedelta(seconds=120))
assert (status.state, status.exit_code) == (JobState.FAILED, 3), status
"""

NIPYPE = """
import getpass, os
os.environ["LOGNAME"] = getpass.getuser()
from nipype import Function, Node, Workflow
def where(x):
    import os
    return f"{x} {os.environ['LSB_QUEUE']}"
flow = Workflow("flow", base_dir=os.getcwd())
first, second = (Node(Function(["x"], ["out"], where), name) for name in ("first", "second"))
first.inputs.x = "on"
flow.connect(first, "out", second, "x")
graph = flow.run(plugin="LSF", plugin_args={"bsub_args": "-q normal"})
assert [node.result.outputs.out for node in graph.nodes()] == ["on normal", "on normal normal"]
"""

MAESTRO = """
import getpass, os, subprocess
open("study.yaml", "w").write('''
description: {name: study, description: two steps}
batch: {type: lsf, host: host1, bank: project, queue: normal}
study:
  - name: first
    description: writes
    run: {cmd: "echo first > out.txt", nodes: 1, procs: 1, walltime: "00:05"}
  - name: second
    description: reads
    run: {cmd: "cat $(first.workspace)/out.txt > both.txt", depends: [first], nodes: 1, procs: 1, walltime: "00:05"}
''')
environ = {**os.environ, "USER": getpass.getuser()}
subprocess.run(["maestro", "run", "-y", "-fg", "-s", "1", "-o", "out", "study.yaml"], env=environ, check=True, timeout=200)
assert open("out/second/both.txt").read() == "first\\n"
"""
