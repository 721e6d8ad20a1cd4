"""parameters.md: every parameter of every file: what its value looks like, its default, what it does or that it does nothing.

Names, forms and defaults are those of the tables and records that the files are read with; the texts stand in ``config/help``,
those of lava's own parameters of lsf.conf in docs/configuration.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from config.describe import default_of, form_of, why_without_effect
from config.help import batch, queues, sections
from config.help.texts import read_texts
from config.model.queue import ApplicationConfig, QueueConfig
from config.model.site_params import SiteParams
from config.read import params as read
from config.read.guarantees import SERVICE_CLASS
from config.values import without_effect
from config.values.fields import OTHER_NAMES, Table
from config.values.parameters import APPLICATION, QUEUE
from docs.generate.markdown import cell, code, table

_OWN = Path(__file__).parents[1] / "configuration.md"
_HEAD = """\
# Parameters

Every parameter that lava reads, by file, with LSF's default where there is one; [the files of lava up](../defaults.md) set some
others. Sizes without a unit are in LSF_UNIT_FOR_LIMITS. `badmin ckconfig` names those of a site that have no effect, with the
line ([configuration](../configuration.md)). What is in force: `bparams -a`, `bqueues -l`, `badmin showconf mbd`.
"""
_NAMED = {"lsb.queues": ("QUEUE_NAME",), "lsb.applications": ("NAME",)}
_TITLES = ("Parameter", "Value", "Default", "")


def page() -> str:
    return "".join(
        [
            _HEAD,
            "\n## lsf.conf\n\n",
            _rows("lsf.conf", read.LSF_CONF, read_texts(batch.LSF_CONF), SiteParams, lambda name: not name.startswith("LAVA_")),
            "\n## lsf.conf: lava's own\n\n",
            _own(),
            "\n## lsb.params\n\n",
            _rows("lsb.params", read.LSB_PARAMS, read_texts(batch.LSB_PARAMS), SiteParams),
            "\n## lsb.queues\n\nIn sections Queue; load indices are thresholds: `r1m = 0.7/2.0`.\n\n",
            _rows("lsb.queues", QUEUE, read_texts(queues.QUEUES), QueueConfig),
            "\n## lsb.applications\n\nIn sections Application; what is not said is as the queue has it.\n\n",
            _rows("lsb.applications", APPLICATION, read_texts(queues.QUEUES + queues.APPLICATIONS), ApplicationConfig),
            *_sections(),
            *_names_alone(),
        ]
    )


def _rows(
    file: str,
    known: Table,
    texts: dict[str, str],
    record: type[msgspec.Struct],
    wanted: Callable[[str], bool] = lambda name: True,
) -> str:
    """Raises KeyError for a parameter that has an effect and no text."""
    older = {name: other for other, name in OTHER_NAMES.items() if name in known}
    lines = [(f"`{name}`", "name", "", "its name") for name in _NAMED.get(file, ())]
    for name, parse in known.items():
        if wanted(name):
            words = why_without_effect(file, name) or texts[name]
            also = f" (also {older[name]})" if name in older else ""
            lines.append((f"`{name}`{also}", cell(form_of(parse)), cell(default_of(name, parse, record)), cell(words)))
    return table(_TITLES, lines)


def _own() -> str:
    """lava's parameters of lsf.conf, with the defaults and texts of docs/configuration.md, where some stand together.

    Raises KeyError for one that has no row there.
    """
    found = _read_own()
    lines: dict[str, tuple[str, ...]] = {}
    for name in (name for name in read.LSF_CONF if name.startswith("LAVA_")):
        idle = why_without_effect("lsf.conf", name)
        together, default, text = ((name,), "", idle) if idle else found[name]
        forms = dict.fromkeys(form_of(read.LSF_CONF[one]) for one in together)
        shown = ", ".join(f"`{one}`" for one in together)
        lines[shown] = (shown, cell(", ".join(forms)), default, text)
    return table(_TITLES, lines.values())


def _read_own() -> dict[str, tuple[tuple[str, ...], str, str]]:
    """Name to the names that share its row of docs/configuration.md, its default and text, with links as they are from here."""
    found: dict[str, tuple[tuple[str, ...], str, str]] = {}
    for line in _OWN.read_text().splitlines():
        if line.startswith("| LAVA_") and line.count("|") == 4:
            names, default, text = (one.strip() for one in line.strip("|").split("|"))
            together = tuple(names.split(", "))
            text = re.sub(r"\]\((?!https?:|#)", "](../", text).replace("](#", "](../configuration.md#")
            found |= dict.fromkeys(together, (together, default, text))
    return found


def _sections() -> Iterator[str]:
    for file in dict.fromkeys(file for file, _ in sections.SECTIONS):
        yield f"\n## {file}\n"
        for (one, section), block in sections.SECTIONS.items():
            if one == file:
                lines = [re.split(" {2,}", line, maxsplit=2) for line in block.splitlines()]
                rows = [(code(name), cell(form), cell(words)) for name, form, words in lines]
                yield f"\n### {section} ({file})\n\n{table(('Column', 'Value', ''), rows)}"


def _names_alone() -> Iterator[str]:
    """Those of LSF that are known by name and not read."""
    yield "\n## Known by name alone\n\nParameters of LSF that are not read. `badmin ckconfig` tells of them: as a note where\n"
    yield "nothing is missing without them, else as a warning. Any other name is unknown, a warning.\n\n"
    files = dict.fromkeys((*without_effect.NEEDLESS, *without_effect.KNOWN))
    tables: dict[str, Iterable[str]] = {
        "lsf.conf": read.LSF_CONF,
        "lsb.params": read.LSB_PARAMS,
        "lsb.queues": QUEUE,
        "lsb.applications": APPLICATION,
        "lsb.hosts": ("CHKPNT", "CONDENSE"),
        "lsb.resources": ("RESERVE",),
        "lsb.serviceclasses": SERVICE_CLASS,
        "lsf.cluster": ("REXPRI",),
    }
    for file in files:
        needless = without_effect.NEEDLESS.get(file, frozenset()) - {*tables[file]}
        missing = without_effect.KNOWN.get(file, frozenset()) - {*tables[file]} - needless
        for word, names in (("notes", needless), ("warnings", missing)):
            if names:
                yield f"* {file}, {word}: {', '.join(sorted(names))}.\n"
