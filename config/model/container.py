"""CONTAINER of a queue or application profile: the container in which its jobs run."""

from __future__ import annotations

import msgspec

OF_DOCKER = ("docker", "nvidia-docker")
RUNNERS = {
    **dict.fromkeys(OF_DOCKER, "podman"),
    **{name: name for name in ("podman", "singularity", "apptainer", "unshare")},
}
"""What a site may write, and what runs it: images of docker by podman, as docker's daemon starts containers outside of jobs."""
ANY_IMAGE = "$LSB_CONTAINER_IMAGE"
"""Stands in an image for what the job's variable of this name says."""


class Container(msgspec.Struct, frozen=True, omit_defaults=True):
    """`kind[image(NAME) options(WORDS)]`; ``text`` is what the file says, ``left_out`` its options that lava does not take."""

    kind: str
    image: str
    options: tuple[str, ...] = ()
    """Words of the runner's command line; `@/FILE` stands for what that program prints."""
    text: str = ""
    left_out: tuple[str, ...] = ()

    @property
    def runner(self) -> str:
        """What runs it on a host; "": nothing that lava knows."""
        return RUNNERS.get(self.kind, "")

    def __str__(self) -> str:
        return self.text
