"""The resource requirements of lsb.queues, lsb.applications and lsb.resources: one that does not read would ask for nothing.

Their grammar is not of this package: the caller brings it.
"""

from collections.abc import Callable, Mapping, Sequence

from config.model.problems import Problems
from config.read.guarantees import POOL_SECTION
from config.text.sections import Section

Grammar = Callable[[str], str]
"""A requirement to why jobs cannot ask for it; "": they can."""

_WHERE = (
    ("lsb.queues", "queue", "QUEUE_NAME", "queue", ("RES_REQ", "STOP_COND", "RESUME_COND")),
    ("lsb.applications", "application", "NAME", "application", ("RES_REQ",)),
    ("lsb.resources", POOL_SECTION, "NAME", "guaranteed resource pool", ("RES_SELECT",)),
)
"""File, section, the parameter that names a row, what a row is, and its requirements."""


def check_requirements(files: Mapping[str, Sequence[Section]], why_not: Grammar, problems: Problems) -> None:
    """Tells of each that does not read, with its line."""
    for file, section_name, name, what, parameters in _WHERE:
        rows = [row for section in files[file] if section.name.lower() == section_name for row in section.rows]
        for row, parameter in ((row, parameter) for row in rows for parameter in parameters):
            text = row.text(parameter)
            if text and (why := why_not(f"select[{text}]" if parameter == "RES_SELECT" else text)):
                problems.error(row.cells[parameter].place, f"{what} {row.text(name)[:200]}: {parameter}: {why}")
