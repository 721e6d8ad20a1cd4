"""lsb.queues and lsb.applications -> QueueConfig, ApplicationConfig."""

from typing import Any

from config.model.problems import Place, Problems
from config.model.queue import LoadThreshold, QueueConfig
from config.text.sections import Row, Section
from config.values import values as v
from config.values.fields import APPLICATION, QUEUE, fill, shortened

LOAD_INDICES = ("r15s", "r1m", "r15m", "ut", "pg", "io", "ls", "it", "tmp", "swp", "mem")
INDEX_ALIASES = {"cpu": "r1m", "login": "ls", "swap": "swp", "idle": "it"}

NORMAL = QueueConfig(
    name="normal",
    priority=30,
    description="For normal low priority jobs, running only if hosts are lightly loaded.",
)
"""The one queue of a folder without lsb.queues."""


def read_queues(
    sections: list[Section], scope: v.Scope, indices: frozenset[str], problems: Problems
) -> tuple[dict[str, QueueConfig], dict[str, Row]]:
    """-> (queues by name in the file's order, the rows they came from)."""
    queues: dict[str, QueueConfig] = {}
    origins: dict[str, Row] = {}
    for row in rows_of(sections, {"queue"}, problems):
        name = row.text("QUEUE_NAME")
        if not name_is_good(name, "queue", "QUEUE_NAME", row.place, problems):
            continue
        if name in queues:
            problems.error(row.place, f"queue {name} is defined twice; the first one holds")
            continue
        owner = f"queue {name}"
        thresholds = read_thresholds(row, indices, problems, owner)
        columns = {"QUEUE_NAME", *(index.upper() for index in indices), *(alias.upper() for alias in INDEX_ALIASES)}
        fields = fill(row, QUEUE, scope, problems, owner, columns)
        interactive = fields.get("interactive")
        if interactive in ("Y", "N"):
            fields["interactive"] = "YES" if interactive == "Y" else "NO"
        queues[name] = QueueConfig(name=name, thresholds=thresholds, **fields)
        origins[name] = row
    return queues, origins


def application_fields(row: Row, scope: v.Scope, problems: Problems) -> dict[str, Any] | None:
    """The fields of an ApplicationConfig; None where it has no usable name."""
    name = row.text("NAME")
    if not name_is_good(name, "application", "NAME", row.place, problems):
        return None
    return {"name": name, **fill(row, APPLICATION, scope, problems, f"application {name}", {"NAME"})}


def read_thresholds(row: Row, indices: frozenset[str], problems: Problems, owner: str) -> tuple[LoadThreshold, ...]:
    """The columns or keys that are load indices or numeric resources of lsf.shared."""
    found: list[LoadThreshold] = []
    for key, cell in row.cells.items():
        index = INDEX_ALIASES.get(key.lower(), cell.name if cell.name in indices else key.lower())
        if index not in indices or cell.value in ("", "-"):
            continue
        try:
            found.append(v.threshold(index, cell.value))
        except ValueError as wrong:
            problems.error(cell.place, f"{owner}: {cell.name}: {shortened(str(wrong))}")
    return tuple(found)


def rows_of(sections: list[Section], names: set[str], problems: Problems) -> list[Row]:
    """All rows of the sections so named; another section is a warning."""
    rows: list[Row] = []
    for section in sections:
        if section.name.lower() in names:
            rows += section.rows
        else:
            problems.warn(section.place, f"section {shortened(section.name)} is not supported and has no effect")
    return rows


def name_is_good(name: str, what: str, column: str, place: Place, problems: Problems) -> bool:
    """Reports a missing or impossible name. Names end up in tables and paths: no blanks, no slashes."""
    if not name:
        problems.error(place, f"a {what} has no {column}")
    elif len(name) > 255 or not name.isprintable() or any(char in name for char in " \t/\"'`$&|;<>()[]{}*?~\\,#=@"):
        problems.error(place, f"{what} name '{shortened(name)}' holds characters that a name cannot have")
    elif what == "queue" and name in ("all", "none", "others", "default_queue"):
        problems.error(place, f"queue name '{name}' is a keyword")
    else:
        return True
    return False
