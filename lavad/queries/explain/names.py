"""Parameters of LSF's files and options of commands, as ``lava explain`` tells of them: from the tables behind docs/reference."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from config.describe import default_of, form_of, why_without_effect
from config.help import batch, queues, sections
from config.help.texts import read_texts
from config.model.queue import ApplicationConfig, QueueConfig
from config.model.site_params import SiteParams
from config.read.params import LSB_PARAMS, LSF_CONF
from config.values.parameters import APPLICATION, QUEUE
from proto.commands import INSTALLED, OF_LAVA
from proto.help.lookup import rows

_OWN = "docs/configuration.md says what it does"
"""Of parameters that lava alone has in lsf.conf."""
_FILES = (
    ("lsf.conf", LSF_CONF, batch.LSF_CONF, SiteParams),
    ("lsb.params", LSB_PARAMS, batch.LSB_PARAMS, SiteParams),
    ("lsb.queues", QUEUE, queues.QUEUES, QueueConfig),
    ("lsb.applications", APPLICATION, queues.QUEUES + queues.APPLICATIONS, ApplicationConfig),
)
_MORE = ("lava run", "lava jupyter")


class Named(NamedTuple):
    """A parameter or an option; ``place``: its file or command."""

    name: str
    place: str
    value: str
    default: str
    means: str

    def told(self) -> str:
        """The lines that are printed."""
        value = f"  Value: {self.value}\n" if self.value else ""
        default = f"  Default: {self.default}\n" if self.default else ""
        return f"{self.name} ({self.place})\n{value}{default}  Meaning: {self.means}\n"


@cache
def parameters() -> tuple[Named, ...]:
    """Those of every file, also the columns of sections."""
    return (*_of_files(), *_of_sections())


def _of_files() -> Iterator[Named]:
    for file, known, block, record in _FILES:
        texts = read_texts(block)
        for name, parse in known.items():
            means = why_without_effect(file, name) or texts.get(name, _OWN)
            yield Named(name, file, form_of(parse), default_of(name, parse, record), means)


def _of_sections() -> Iterator[Named]:
    for (file, section), block in sections.SECTIONS.items():
        for line in block.splitlines():
            name, form, means = re.split(" {2,}", line, maxsplit=2)
            yield from (Named(one, f"{file}, {section}", form, "", means) for one in name.split(", "))


def _options(command: str) -> list[Named]:
    dash = "--" if command.removeprefix("lava ") in OF_LAVA else "-"
    return [Named(f"{dash}{name}", command, value, "", means) for name, value, means in rows(command)]


def find(asked: str) -> list[Named]:
    """What is named: ``RUNLIMIT``, ``lsb.queues RUNLIMIT``, ``-W`` (of bsub), ``bjobs -o``; [] for nothing."""
    place, _, name = asked.strip().rpartition(" ")
    if name.startswith("-"):
        command = place.strip() or "bsub"
        known = _options(command) if command in (*INSTALLED, *_MORE, *(f"lava {one}" for one in OF_LAVA)) else []
        return [one for one in known if one.name == name]
    found = [one for one in parameters() if one.name.upper() == name.upper()]
    return [one for one in found if not place or one.place.split(",")[0] == place.strip()]
