"""The pages of docs/reference by their file names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from docs.generate import fields, metrics, options, parameters, python, rest, variables

FOLDER = Path(__file__).parents[1] / "reference"
PAGES: dict[str, Callable[[], str]] = {
    "options.md": options.page,
    "parameters.md": parameters.page,
    "fields.md": fields.page,
    "variables.md": variables.page,
    "metrics.md": metrics.page,
    "rest.md": rest.page,
    "python.md": python.page,
}


def outdated() -> list[str]:
    """The names of the pages that are not what the code says."""
    known = {path.name for path in FOLDER.glob("*.md")}
    return sorted(
        (known - PAGES.keys())
        | {name for name, page in PAGES.items() if name not in known or (FOLDER / name).read_text() != page()}
    )


def write() -> list[str]:
    """Write those; their names."""
    FOLDER.mkdir(exist_ok=True)
    names = outdated()
    for name in names:
        if name in PAGES:
            (FOLDER / name).write_text(PAGES[name]())
        else:
            (FOLDER / name).unlink()
    return names
