"""Modules, conda, venv and containers around a command: the shell texts run for real, as the user that runs the tests."""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.launch.software import wrap
from proto import agent_pb2 as pb
from tests.support.live.image import make_image
from tests.support.wait import wait_until

NOBODY = 65534


def run(folder: Path, software: list[str], *argv: str, user: int | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    given = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "LAVA_HOST": "host7", **env}
    return subprocess.run(
        wrap([step(*one.split("\t")) for one in software], argv),
        env=given,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        user=user,
        group=user,
        extra_groups=None if user is None else [],
    )


def step(name: str, *values: str) -> pb.Software:
    return pb.Software(name=name, values=values)


def script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def test_nothing_asked_for_changes_nothing() -> None:
    assert wrap([], ["a", "b c"]) == ["a", "b c"]


def test_modules_are_loaded_in_order_after_a_purge(tmp_path: Path) -> None:
    script(tmp_path / "init" / "sh", 'module() { [ "$2" != bad ] || return 1; SEEN="$SEEN<$*>"; export SEEN; }\n')
    argv = ("sh", "-c", 'echo "$SEEN"')
    done = run(tmp_path, ["modules\tgcc/12\topenmpi"], *argv, MODULESHOME=str(tmp_path))
    assert (done.returncode, done.stdout) == (0, "<purge><load gcc/12><load openmpi>\n")
    done = run(tmp_path, ["modules\tgcc/12\tbad"], *argv, MODULESHOME=str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (127, "", "lava: host7: module bad cannot be loaded\n")


def test_a_conda_environment_by_name_and_by_path(tmp_path: Path) -> None:
    """Found without running conda."""
    env = tmp_path / "miniconda3" / "envs" / "train"
    (env / "conda-meta").mkdir(parents=True)
    script(env / "bin" / "hello", '#!/bin/sh\necho "$CONDA_DEFAULT_ENV $EXTRA"\n')
    script(env / "etc" / "conda" / "activate.d" / "extra.sh", "export EXTRA=more\n")
    assert run(tmp_path, ["conda\ttrain"], "hello").stdout == "train more\n"
    assert run(tmp_path, [f"conda\t{env}"], "hello").stdout == f"{env} more\n"
    assert run(tmp_path, ["conda\t~/miniconda3/envs/train"], "hello").stdout == f"{env} more\n"
    assert run(tmp_path, ["conda\t./miniconda3/envs/train"], "printenv", "CONDA_PREFIX").stdout == f"{env}\n"
    (tmp_path / "elsewhere" / "b" / "conda-meta").mkdir(parents=True)
    assert run(tmp_path, ["conda\tb"], "printenv", "CONDA_PREFIX", CONDA_ENVS_PATH=f"/x:{tmp_path}/elsewhere").stdout == (
        f"{tmp_path}/elsewhere/b\n"
    )
    done = run(tmp_path, ["conda\tnone"], "hello")
    assert (done.returncode, done.stderr) == (127, "lava: host7: there is no conda environment none here\n")


def test_a_venv_and_one_that_is_not_there(tmp_path: Path) -> None:
    """Python is the environment's; arguments stay as they are."""
    script(tmp_path / "v" / "bin" / "python", '#!/bin/sh\nprintf "%s|" "$VIRTUAL_ENV" "$@"\n')
    (tmp_path / "v" / "pyvenv.cfg").write_text("")
    for path in (f"{tmp_path}/v", "v", "~/v"):
        assert run(tmp_path, [f"venv\t{path}"], "python", "a b", "$c", "").stdout == f"{tmp_path}/v|a b|$c||"
    # with CDPATH cd tells where it went, and goes elsewhere
    assert run(tmp_path, ["venv\tv"], "python", CDPATH=f"/usr:{tmp_path}").stdout == f"{tmp_path}/v|"
    done = run(tmp_path, ["venv\tw"], "python")
    assert (done.returncode, done.stderr) == (127, "lava: host7: there is no virtual environment in w\n")


def test_a_program_that_is_not_there_is_127(tmp_path: Path) -> None:
    script(tmp_path / "v" / "bin" / "python", "#!/bin/sh\n")
    (tmp_path / "v" / "pyvenv.cfg").write_text("")
    assert run(tmp_path, ["venv\tv"], "no-such-program").returncode == 127


def test_a_runner_is_given_the_image_and_what_the_job_needs(tmp_path: Path) -> None:
    """A fake runtime; the command behind the image stays as it is. Pull policies."""
    script(tmp_path / "bin" / "apptainer", '#!/bin/sh\nprintf "%s|" "$@"\n')
    script(tmp_path / "bin" / "podman", '#!/bin/sh\nprintf "%s|" "$@"\n')
    path = f"{tmp_path}/bin:/usr/bin:/bin"
    (tmp_path / "i.sif").touch()
    done = run(tmp_path, ["container\ti.sif\t\tmissing"], "prog", "a b", PATH=path)
    assert done.stdout == f"--silent|exec|--bind|{tmp_path}|--pwd|{tmp_path}|i.sif|prog|a b|"
    done = run(tmp_path, ["container\ti.sif\t\tmissing"], "prog", PATH=path, CUDA_VISIBLE_DEVICES="GPU-1")
    assert "--nv|i.sif|prog|" in done.stdout
    done = run(tmp_path, ["container\tx:1\tpodman\tnever"], "prog", "a,b", PATH=path, CUDA_VISIBLE_DEVICES="GPU-1,MIG-2")
    assert "|--device|nvidia.com/gpu=MIG-2|--device|nvidia.com/gpu=GPU-1|" in done.stdout
    assert done.stdout.endswith("|x:1|prog|a,b|")
    done = run(tmp_path, ["container\tdocker://x\tapptainer\tnever"], "prog", PATH=path)
    assert (done.returncode, "pull=never" in done.stderr) == (127, True)
    done = run(tmp_path, ["container\tx:1\tpodman\talways"], "prog", "a b", PATH=path)
    assert "--pull=always|" in done.stdout
    assert done.stdout.endswith("|x:1|prog|a b|")


def test_podman_has_the_input_the_limits_and_one_network(tmp_path: Path) -> None:
    """The job's limits, not those of podman; the site's network in place of the host's; no folder / over the image's."""
    script(tmp_path / "bin" / "podman", '#!/bin/sh\n[ "$1" = ps ] || printf "%s|" "$@"\n')
    script(tmp_path / "bin" / "catatonit", "#!/bin/sh\n")
    script(tmp_path / "options.sh", "#!/bin/sh\necho -e A=1 --net=none\n")
    path = f"{tmp_path}/bin:/usr/bin:/bin"
    limited = ("sh", "-c", 'ulimit -n 300; exec "$@"', "sh")

    def words(folder: Path, *options: str) -> str:
        steps = [pb.Software(name="container_with_options", values=["x:1", "podman", "missing", *options])]
        argv = [*limited, *wrap(steps, ["prog", "--network=a"])]
        env = {"PATH": path, "HOME": "/", "LAVA_HOST": "host7"}
        return subprocess.run(argv, env=env, cwd=folder, capture_output=True, text=True, timeout=60, check=True).stdout

    plain = words(tmp_path)
    assert "|--interactive|" in plain
    assert "|--tty|" not in plain, "no terminal"
    assert "|--ulimit|nofile=300:300|--ulimit|nproc=" in plain
    assert "|--init|--init-path=/" in plain
    assert plain.endswith("|x:1|prog|--network=a|")
    for options in (("--network=none",), ("--net", "bridge"), (f"@{tmp_path}/options.sh",)):
        found = words(tmp_path, *options)
        assert ("--network=host|" in plain, "--network=host|" in found) == (True, False), found
    assert "|--volume|/:/|" not in words(Path("/"))
    (tmp_path / "a:b").mkdir()
    done = run(tmp_path / "a:b", ["container\tx\tpodman\tmissing"], "prog", PATH=path)
    assert (done.returncode, "podman takes no folder with a colon" in done.stderr) == (127, True)
    done = run(tmp_path, ["container\t/no/such\tpodman\tmissing"], "prog", PATH=path)
    assert (done.returncode, "container /no/such: there is no such folder" in done.stderr) == (127, True)


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_podman_hands_the_connection_of_mpi_on(tmp_path: Path) -> None:
    """As number 3, whatever it was; the other end is not held open by anything else."""
    script(
        tmp_path / "bin" / "podman", '#!/bin/sh\n[ "$1" != run ] || { echo "$2 $PMI_FD" >&3; ls /proc/self/fd | grep -x $WAS; }\n'
    )
    for number in (3, 23):
        ours, theirs = socket.socketpair()
        ours.settimeout(60)
        given = fcntl.fcntl(theirs, fcntl.F_DUPFD, 100)
        theirs.close()
        env = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "HOME": "/", "LAVA_HOST": "host7", "PMI_FD": str(number), "WAS": "23"}
        argv = ["bash", "-c", f'exec {number}<&{given}- && exec "$@"', "bash"]
        argv += wrap([step("container", "x:1", "podman", "missing")], ["prog"])
        with subprocess.Popen(argv, env=env, cwd=tmp_path, pass_fds=[given], stdout=subprocess.PIPE, text=True) as started:
            os.close(given)
            with ours, ours.makefile() as lines:
                assert lines.readlines() == ["--preserve-fds=1 3\n"]
            assert started.communicate(timeout=60)[0] == ""


def test_containers_that_were_left_are_removed(tmp_path: Path) -> None:
    """Those of this host whose podman was killed: it says of them that they run."""
    listed = f"one host7:{2**22 + 1}\ntwo host8:{2**22 + 1}\nthree host7:$PPID\nfour \n"
    text = f'case $1 in ps) printf "%s" "{listed}" ;; rm) echo "$*" >>{tmp_path}/removed; exit 1 ;; esac'
    script(tmp_path / "bin" / "podman", f"#!/bin/sh\n{text}\n")
    run(tmp_path, ["container\tx\tpodman\tmissing"], "prog", PATH=f"{tmp_path}/bin:/usr/bin:/bin")
    removed = tmp_path / "removed"
    wait_until(lambda: removed.exists() and len(removed.read_text().splitlines()) == 2, 20, "both attempts")
    assert removed.read_text() == "rm --force --time 0 one\n" * 2


@pytest.fixture
def busy_image(tmp_path: Path) -> Iterator[str]:
    """An image in podman's own store, where podman can run it."""
    if shutil.which("podman") is None:
        pytest.skip("needs podman")
    name = f"lava-test-{os.getpid()}:1"
    with subprocess.Popen(["tar", "-C", str(make_image(tmp_path / "image")), "-c", "."], stdout=subprocess.PIPE) as tar:
        made = subprocess.run(["podman", "import", "-", name], stdin=tar.stdout, capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"podman takes no image here: {made.stderr}")
    try:
        probe = [
            "podman",
            "run",
            "--rm",
            "--network=host",
            "--cgroups=disabled",
            "--ulimit=nofile=99:99",
            "--ulimit=nproc=999:999",
        ]
        works = subprocess.run([*probe, name, "sh", "-c", ":"], capture_output=True, text=True, timeout=60, check=False)
        if works.returncode:
            pytest.skip(f"podman runs nothing here: {works.stderr}")
        yield name
    finally:
        subprocess.run(["podman", "rmi", "--force", name], capture_output=True, check=False)


def test_a_real_podman(tmp_path: Path, busy_image: str) -> None:
    """Input, environment, user, folder, exit code; what it takes from the site."""
    argv = wrap(
        [step("container", busy_image, "podman", "never")], ["sh", "-c", "cat; cat /etc/lava-release; pwd; echo $A; exit 7"]
    )
    env = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "LAVA_HOST": "host7", "A": "a  b"}
    done = subprocess.run(argv, env=env, cwd=tmp_path, input="in\n", capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (7, f"in\ninside\n{tmp_path}\na b\n"), done.stderr
    steps = [step("container_with_options", busy_image, "podman", "never", "--net=host", "--ulimit", "nofile=90:90")]
    argv = wrap(steps, ["sh", "-c", "ulimit -n"])
    done = subprocess.run(argv, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "90\n"), done.stderr


@pytest.mark.parametrize("name", ["here.sh", "{}/here.sh"])
def test_a_script_of_the_site_runs_before_and_after_a_parallel_job(tmp_path: Path, name: str) -> None:
    """By a name in LSF_BINDIR or by its path; the exit code is the job's."""
    script(tmp_path / "here.sh", '#!/bin/sh\necho "$1 ${0##*/}"\n[ "$1" != "$FAIL" ] || exit 9\n')
    steps = ["djob_env_script\t" + name.format(tmp_path)]
    command = ("sh", "-c", 'echo "job ${LSB_DJOB_ENV_SCRIPT##*/}"; exit 3')
    done = run(tmp_path, steps, *command, LSF_BINDIR=str(tmp_path))
    assert (done.returncode, done.stdout) == (3, "setup here.sh\njob here.sh\ncleanup here.sh\n")
    done = run(tmp_path, steps, *command, FAIL="setup", LSF_BINDIR=str(tmp_path))
    assert (done.returncode, done.stdout) == (9, "setup here.sh\n")
    assert done.stderr == f"lava: host7: DJOB_ENV_SCRIPT: {tmp_path}/here.sh setup: exit code 9\n"
    done = run(tmp_path, steps, *command, FAIL="cleanup", LSF_BINDIR=str(tmp_path))
    assert (done.returncode, "here.sh cleanup: exit code 9" in done.stderr) == (3, True)


def test_the_script_cleans_up_after_a_job_that_was_asked_to_end(tmp_path: Path) -> None:
    script(tmp_path / "clean", '#!/bin/sh\necho "$1"\n')
    done = run(tmp_path, [f"djob_env_script\t{tmp_path}/clean"], "sh", "-c", "kill -TERM $PPID; kill -TERM $$")
    assert (done.returncode, done.stdout) == (143, "setup\ncleanup\n")


def test_options_of_the_site_come_before_the_image(tmp_path: Path) -> None:
    script(tmp_path / "bin" / "singularity", '#!/bin/sh\nprintf "%s|" "$@"\n')
    script(tmp_path / "bin" / "podman", '#!/bin/sh\nprintf "%s|" "$@"\n')
    script(tmp_path / "options.sh", "#!/bin/sh\necho -v '/*:/x'\necho -e A=$A\n")
    path = f"{tmp_path}/bin:/usr/bin:/bin"
    (tmp_path / "i.sif").touch()
    options = f"-v\t/my data:/d\t-v\ta:@/b\t@{tmp_path}/options.sh\t$(id)"
    done = run(tmp_path, [f"container_with_options\tx:1\tpodman\tmissing\t{options}"], "prog", "@/a b", "", PATH=path, A="1 2")
    assert done.stdout.endswith("|-v|/my data:/d|-v|a:@/b|-v|/*:/x|-e|A=1|2|$(id)|x:1|prog|@/a b||")
    done = run(tmp_path, ["container_with_options\ti.sif\tapptainer\tmissing\t--cleanenv"], "prog", PATH=path)
    assert done.stdout == f"--silent|exec|--bind|{tmp_path}|--pwd|{tmp_path}|--cleanenv|i.sif|prog|", "singularity is apptainer"
    done = run(tmp_path, ["container_with_options\tx\tpodman\tmissing\t@/no/such"], "prog", PATH=path)
    assert (done.returncode, "lava: host7: container x: /no/such failed" in done.stderr) == (127, True)


@pytest.mark.parametrize(
    ("image", "value", "shown"),
    [
        ("$LSB_CONTAINER_IMAGE", "a/b:1", "a/b:1"),
        ("reg/$LSB_CONTAINER_IMAGE:2", "a", "reg/a:2"),
        ("$LSB_CONTAINER_IMAGE", "../a", "../a"),
        ("reg/$LSB_CONTAINER_IMAGE", "../a", ""),
        ("reg/$LSB_CONTAINER_IMAGE", "a/..", ""),
        ("$LSB_CONTAINER_IMAGE", "--privileged", ""),
        ("$LSB_CONTAINER_IMAGE", "a b;id", "a b;id"),
        ("$LSB_CONTAINER_IMAGE", "$HOME", "$HOME"),
    ],
)
def test_the_image_may_be_a_variable_of_the_jobs(tmp_path: Path, image: str, value: str, shown: str) -> None:
    """It is a name, whatever is in it, and stays below the folder or registry that the site names before it."""
    script(tmp_path / "bin" / "podman", '#!/bin/sh\nprintf "%s|" "$@"\n')
    step = f"container\t{image}\tpodman\tmissing"
    done = run(tmp_path, [step], "prog", PATH=f"{tmp_path}/bin:/usr/bin:/bin", LSB_CONTAINER_IMAGE=value)
    if shown:
        assert done.stdout.endswith(f"|{shown}|prog|")
    else:
        assert (done.returncode, done.stdout, f"container {value}: Bad image" in done.stderr) == (127, "", True)
    none = run(tmp_path, [step], "prog", PATH=f"{tmp_path}/bin:/usr/bin:/bin")
    assert f"container {image}: the job has no variable LSB_CONTAINER_IMAGE" in none.stderr


def test_what_is_not_there_is_said_by_name(tmp_path: Path) -> None:
    def why(step: str) -> str:
        done = run(tmp_path, [step], "true", PATH=str(tmp_path / "only"))
        assert done.returncode == 127
        return done.stderr

    (tmp_path / "only").mkdir()
    for name in ("id", "dirname"):
        (tmp_path / "only" / name).symlink_to(shutil.which(name) or "/bin/false")
    assert "there is no apptainer, singularity or podman here, and it is no folder" in why("container\tx.sif\t\tmissing")
    assert "there is no podman here" in why("container\tx.sif\tpodman\tmissing")
    assert "there is no unshare here" in why(f"container\t{tmp_path}\tunshare\tmissing")


@pytest.fixture
def open_folder(tmp_path: Path) -> Path:
    """A folder that every user can reach."""
    tmp_path.chmod(0o755)
    return tmp_path


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare")
@pytest.mark.parametrize("user", [None, NOBODY])
def test_a_folder_is_a_container(open_folder: Path, user: int | None) -> None:
    """Its own root, the user's own identity and folder, and nothing of the image can be written."""
    if user is not None and os.geteuid() != 0:
        pytest.skip("needs root to be another user")
    image = make_image(open_folder / "image")
    made = sorted(path.name for path in image.iterdir())
    work = open_folder / "work"
    work.mkdir()
    work.chmod(0o777)
    lines = "cat /etc/lava-release; id -u; pwd; touch made; touch /etc/x 2>/dev/null || echo read-only"
    done = run(work, [f"container\t{image}\tunshare\tmissing"], "sh", "-c", lines, user=user)
    if "may not mount" in done.stderr or "unshare failed" in done.stderr:
        pytest.skip("no user namespaces here")
    uid = os.geteuid() if user is None else user
    assert (done.returncode, done.stdout) == (0, f"inside\n{uid}\n{work}\nread-only\n"), done.stderr
    assert (work / "made").stat().st_uid == uid
    assert sorted(path.name for path in image.iterdir()) == made
