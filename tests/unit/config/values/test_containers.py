"""CONTAINER of a queue or application profile: images, options, and what of them is lava's."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.model.container import ANY_IMAGE
from config.read.load import load
from config.values.containers import container
from config.values.values import Scope


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (
            "docker[image(r/app:1) options(--net=host -v /a:/a)]",
            ("podman", "r/app:1", ("--net=host", "-v", "/a:/a")),
        ),
        ("nvidia-docker[image(a)]", ("podman", "a", ())),
        ("podman [ image(a) options() ]", ("podman", "a", ())),
        ("podman[image(a) options(-v '/my data:/d' -e A=(b))]", ("podman", "a", ("-v", "/my data:/d", "-e", "A=(b)"))),
        ("singularity[image(/i.sif) options(--nv -w -u)]", ("singularity", "/i.sif", ("--nv", "-w", "-u"))),
        ("apptainer[options(@/site/options.sh) image($LSB_CONTAINER_IMAGE)]", ("apptainer", ANY_IMAGE, ("@/site/options.sh",))),
        ("docker[options(--rm)]", ("podman", ANY_IMAGE, ())),
        ("unshare[image(/images/a)]", ("unshare", "/images/a", ())),
        ("shifter[image(a)]", ("", "a", ())),
    ],
)
def test_what_a_site_writes(value: str, found: tuple[str, str, tuple[str, ...]]) -> None:
    box = container(value, Scope())
    assert (box.runner, box.image, box.options) == found
    assert (str(box), box.left_out) == (value, ())


@pytest.mark.parametrize(
    ("options", "kept", "left_out"),
    [
        ("--user root -v /a:/a", ("-v", "/a:/a"), ("--user root",)),
        ("--user=0 --name x --cgroup-parent=/", (), ("--user=0", "--name x", "--cgroup-parent=/")),
        ("-it -d --detach -itd --rm -i --tty=true", (), ("-d", "--detach", "-itd")),
        ("--pid=host --ipc=host --net host", ("--ipc=host", "--net", "host"), ("--pid=host",)),
        ("-m 4g --cpus=2 --pids-limit 100 --shm-size=1g", (), ("-m 4g", "--cpus=2", "--pids-limit 100", "--shm-size=1g")),
        ("--cgroups", (), ("--cgroups",)),
        ("--ulimit core=0 -w /x --dns 1.2.3.4", ("--ulimit", "core=0", "-w", "/x", "--dns", "1.2.3.4"), ()),
    ],
)
def test_whose_a_container_is_and_that_it_is_in_its_job_is_not_an_option(
    options: str, kept: tuple[str, ...], left_out: tuple[str, ...]
) -> None:
    box = container(f"docker[image(a) options({options})]", Scope())
    assert (box.options, box.left_out) == (kept, left_out)


@pytest.mark.parametrize(
    "value",
    [
        "docker",
        "docker[]x",
        "docker[image(a)",
        "docker[image(a) images(b)]",
        "docker[image(a) image(b)]",
        "docker[image(--privileged)]",
        "docker[image(a b)]",
        "docker[image(a) options(-v 'a)]",
        "docker[image(a) options(-v (a)]",
    ],
)
def test_what_is_none(value: str) -> None:
    with pytest.raises(ValueError, match=r"is not|quotation"):
        container(value, Scope())


def test_ckconfig_says_what_is_not_done(tmp_path: Path) -> None:
    lines = """
Begin Application
NAME = a
CONTAINER = docker[image(a) options(--user root) job_pre_post()]
EXEC_DRIVER = context[user(default)] starter[/x/docker-starter.py]
End Application
Begin Application
NAME = b
CONTAINER = shifter[image(b)]
End Application
"""
    (tmp_path / "lsb.applications").write_text(lines)
    (tmp_path / "lsb.queues").write_text("Begin Queue\nQUEUE_NAME = q\nCONTAINER = podman[image(c)]\nEnd Queue\n")
    loaded = load(str(tmp_path))
    assert [problem.text for problem in loaded.problems] == [
        "application a: CONTAINER: without effect: --user root, job_pre_post()",
        "application a: CONTAINER: images of docker are run by podman, inside of the job",
        "application a: EXEC_DRIVER is not needed by lava and has no effect: lava starts and ends containers as any process",
        "application b: CONTAINER: lava cannot run containers of shifter: its jobs are refused",
    ]
    assert not any(problem.fatal for problem in loaded.problems)
    assert str(loaded.config.queues[0].container) == "podman[image(c)]"
