"""Images of a manifest's containers: run by a container runner where there is one, else named as ignored.

Rule: whether the hosts have a runner is told by the host where the job is submitted; tasks that a launcher starts run outside.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from cli.jobs.model import JobFile

_LAUNCHED = ("mpi", "mpich", "intelmpi", "volcano")


def use_images(job: JobFile, which: Callable[[str], bool]) -> None:
    """Give each role its container. ``which``: whether a program is here."""
    for role in job.roles:
        image, pull = job.images.get(role.name, ("", ""))
        found = _image(image, which) if image and job.policy.framework not in _LAUNCHED else ""
        if found:
            role.software = f"container({found}{f',pull={pull}' if pull else ''})"
        elif image:
            job.ignore("image")


def _image(image: str, which: Callable[[str], bool]) -> str:
    """How the runner that is here names the image; "" where none would run it."""
    if any(char in image for char in " ,()\t\n"):
        return ""
    if image.startswith("/") and os.path.exists(image):
        return image
    if which("apptainer") or which("singularity"):
        return image if "://" in image else f"docker://{image}"
    return image if which("podman") else ""
