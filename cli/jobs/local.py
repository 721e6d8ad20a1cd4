"""What of a manifest depends on the host and the user that submit it: images of containers, and secrets.

Rule: what is not there is named as ignored. Whether the hosts have a container runner is told by the host where the job is
submitted; tasks that a launcher starts run outside of containers.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from cli.jobs.model import JobFile
from proto.roles import LAUNCHERS

_SECRET = re.compile(
    r"(?i)(secret|passw(or)?d|passphrase|token(?!s|i[sz])|(?<!application_)credential|(access|api|private)_?key)"
    r"(?!.*(file|path|dir|_id|_name|_ur[il])$)"
)
"""The tokens of language models are none, and GOOGLE_APPLICATION_CREDENTIALS is the path of a file."""


def use_images(job: JobFile, which: Callable[[str], bool]) -> None:
    """Give each role its container. ``which``: whether a program is here."""
    launched = any(role.kind in (*LAUNCHERS, "hold") for role in job.roles)
    for role in job.roles:
        image, pull = job.images.get(role.name, ("", ""))
        found = _image(image, which) if image and not launched else ""
        if found:
            role.software = f"container({found}{f',pull={pull}' if pull else ''})"
        elif image:
            job.ignore("image")


def use_secrets(job: JobFile, kept: Callable[[str], bool]) -> None:
    """A variable from a Secret is the secret of that name that ``lava secret`` keeps. ``kept``: whether it does."""
    names = [name for name in job.secrets if kept(name)]
    if names:
        job.options["secret"] = " ".join([*str(job.options.get("secret") or "").split(), *names])
    job.ignore(*(f"env {name[:64]} (no lava secret of this name)" for name in job.secrets if name not in names))


def written_secrets(job: JobFile) -> list[str]:
    """Variables and settings of a job, by their names secrets, whose values stand in the file: they are stored as they are."""
    said = [job.env, job.settings, *(role.env for role in job.roles)]
    return sorted({name for one in said for name, value in one.items() if value and _SECRET.search(name.replace(".", "_"))})


def use_priority_class(job: JobFile, classes: Callable[[], str]) -> None:
    """A priority class is ``-sp``: a number itself, a name by ``classes`` (LAVA_PRIORITY_CLASSES: ``name=number …``)."""
    name = job.priority_class
    if not name or "sp" in job.options:
        return
    known = dict(word.split("=", 1) for word in classes().split() if "=" in word) if not name.isdecimal() else {}
    if name.isdecimal() or name in known:
        job.options["sp"] = known.get(name, name)
    else:
        job.ignore(f"priority class {name[:64]} (LAVA_PRIORITY_CLASSES has none of this name)")


def _image(image: str, which: Callable[[str], bool]) -> str:
    """How the runner that is here names the image; "" where none would run it."""
    if any(char in image for char in " ,()\t\n"):
        return ""
    if image.startswith("/") and os.path.exists(image):
        return image
    if which("apptainer") or which("singularity"):
        return image if "://" in image else f"docker://{image}"
    return image if which("podman") else ""
