"""Application profiles: what their parameters do to the jobs that name them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster

PROFILES = """
Begin Application
NAME = tuned
ENV_VARS = "FRUIT='ripe apple',CAR='civic',HOME='/none'"
End Application
Begin Application
NAME = wired
DJOB_ENV_SCRIPT = /bin/echo
RTASK_GONE_ACTION = "IGNORE_TASKCRASH KILLJOB_TASKEXIT"
DJOB_HB_INTERVAL = 30
End Application
Begin Application
NAME = alone
DJOB_DISABLED = Y
End Application
Begin Application
NAME = once
LOCAL_MAX_PREEXEC_RETRY = 0
LOCAL_MAX_PREEXEC_RETRY_ACTION = EXIT
End Application
Begin Application
NAME = weighed
MEMLIMIT_TYPE = JOB
End Application
Begin Application
NAME = boxed
CONTAINER = docker[image(site/$LSB_CONTAINER_IMAGE) options(-v "/my data:/d" --user root)]
EXEC_DRIVER = context[user(default)]
End Application
"""

PARAMS = "Begin Parameters\nPREEXEC_EXCLUDE_HOST_EXIT_VALUES = 3\nEnd Parameters\n"

pytestmark = pytest.mark.cluster(hosts=2, conf={"lsb.applications": PROFILES, "lsb.params": PARAMS})


def test_env_vars_are_the_jobs_unless_the_submission_has_them(cluster: Cluster, tmp_path: Path) -> None:
    assert "ENV_VARS:  FRUIT='ripe apple',CAR='civic',HOME='/none'\n" in cluster.run("bapp -l tuned").stdout
    say = """'echo "$FRUIT/$CAR/$HOME"'"""
    home = cluster.run(f"HOME=/home/me CAR=beetle bsub -app tuned -E 'echo $FRUIT > {tmp_path}/pre' -I {say}").stdout
    assert home.splitlines()[1:] == ["ripe apple/beetle//home/me"]
    assert (tmp_path / "pre").read_text() == "ripe apple\n"
    none = cluster.run(f"CAR=beetle bsub -app tuned -env 'none' -I {say}").stdout
    assert none.splitlines()[1:] == ["ripe apple/civic//none"]
    named = cluster.run(f"CAR=beetle bsub -app tuned -env 'all, ~CAR, FRUIT=pear' -I {say}").stdout
    assert named.splitlines()[1].startswith("pear/civic/")


def test_jobs_of_a_profile_with_a_container_run_in_it(cluster: Cluster, tmp_path: Path) -> None:
    """podman stands here as a program that tells what it was asked; options are the site's, the image is the user's to name."""
    podman = tmp_path / "bin" / "podman"
    podman.parent.mkdir()
    podman.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    podman.chmod(0o755)
    checked = cluster.run("badmin ckconfig", ok=False).stdout
    assert "CONTAINER: without effect: --user root" in checked
    line = 'CONTAINER:  docker[image(site/$LSB_CONTAINER_IMAGE) options(-v "/my data:/d" --user root)]'
    assert line in cluster.run("bapp -l boxed").stdout.splitlines()
    bsub = f"PATH={podman.parent}:$PATH LSB_CONTAINER_IMAGE=app:1 bsub -app boxed"
    said = cluster.run(f"{bsub} -I id -u").stdout.splitlines()[1]
    assert said.startswith("run|--rm|")
    assert said.endswith("|-v|/my data:/d|site/app:1|id|-u|")
    script = cluster.run(f"{bsub} -I", stdin="#!/bin/sh\necho never\n").stdout.splitlines()[-1]
    assert script.partition("|site/app:1|")[2].endswith(".shell|")
    done = cluster.run(f"{bsub} -a 'container(other)' true", ok=False)
    assert (done.returncode, done.stderr.startswith("application boxed says in which container its jobs run")) == (255, True)


def test_a_script_around_a_parallel_job_and_the_end_of_its_tasks(cluster: Cluster, tmp_path: Path) -> None:
    assert "RTASK_GONE_ACTION:  IGNORE_TASKCRASH KILLJOB_TASKEXIT\n" in cluster.run("bapp -l wired").stdout
    said = cluster.run("bsub -app wired -n 2 -I 'echo job $LSB_DJOB_HB_INTERVAL'").stdout.splitlines()
    assert said[1:] == ["setup", "job 30", "cleanup"]
    assert cluster.run("bsub -app wired -I echo one slot").stdout.splitlines()[1:] == ["one slot"]
    lines = "blaunch host1 'kill -KILL $$'; echo $?; blaunch host1 exit 3; echo $?; exec sleep 100"
    job = cluster.submit(f'-app wired -n 2 -m host1 -o out "{lines}"'.replace("$", "\\$"), cwd=tmp_path)
    assert cluster.wait_end(job) == ["EXIT"]
    assert (tmp_path / "out").read_text().startswith("setup\n137\n")
    assert "RTASK_GONE_ACTION: task 1 ended with exit code 3" in cluster.run(f"bhist -l {job}").stdout
    own = f'LSB_DJOB_RTASK_GONE_ACTION=none bsub -app wired -n 2 -m host1 -I "{lines.replace("exec sleep 100", "true")}"'
    assert cluster.run(own.replace("$", "\\$")).stdout.splitlines()[1:] == ["setup", "137", "3", "cleanup"]


def test_a_profile_without_blaunch(cluster: Cluster) -> None:
    for slots in (1, 2):
        done = cluster.run(f"bsub -app alone -n {slots} -I 'blaunch host1 true 2>&1'", ok=False)
        assert done.stdout.splitlines()[-1].endswith("takes no tasks: its application profile says so (DJOB_DISABLED)")


def test_a_pre_execution_command_that_fails(cluster: Cluster, tmp_path: Path) -> None:
    """A profile says how often it is tried again, lsb.params with which code it bars its job from the host."""
    job = cluster.submit("-app once -E 'exit 5' true")
    assert cluster.wait_end(job) == ["EXIT"]
    script = tmp_path / "check"
    script.write_text(f"""#!/bin/sh
cd {tmp_path}
echo $LAVA_HOST >> tried
[ $LAVA_HOST != host1 ] || exit 3
[ "$(grep -c host2 tried)" = 2 ] || exit 5
""")
    script.chmod(0o755)
    job = cluster.submit(f"-E {script} -m 'host1+1 host2' true")
    assert cluster.wait_end(job) == ["DONE"]
    assert (tmp_path / "tried").read_text().split() == ["host1", "host2", "host2"]


def test_a_memory_limit_of_the_whole_job(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "large.py").write_text("import time\nb = b'x' * (200 << 20)\ntime.sleep(100)\n")
    job = cluster.submit("-app weighed -M 100MB python3 large.py", cwd=tmp_path)
    assert cluster.wait_end(job) == ["EXIT"]
    assert "TERM_MEMLIMIT" in cluster.run(f"bjobs -l -a {job}").stdout
