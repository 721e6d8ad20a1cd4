"""The pages: each has its place in the site, and no link of theirs leads nowhere."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
_LINK = re.compile(r"\[[^\]]+\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")


def _anchors(page: Path) -> set[str]:
    """The anchors of its titles, as mkdocs and the common viewers make them."""
    titles = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", title.lower())).strip("-") for title in titles}


def test_links_lead_somewhere() -> None:
    wrong = []
    for page in PAGES:
        for path, anchor in _LINK.findall(page.read_text()):
            target = (page.parent / path).resolve() if path else page
            if not target.exists() or (anchor and target.suffix == ".md" and anchor not in _anchors(target)):
                wrong.append(f"{page.name}: {path}#{anchor}")
    assert wrong == []


def test_every_page_has_its_place_in_the_site_and_in_the_list() -> None:
    sections = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    placed = [
        page for section in sections for value in section.values() for page in (value if isinstance(value, list) else [value])
    ]
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert set(placed) == pages
    assert len(placed) == len(pages)
    listed = {path for path, _ in _LINK.findall((ROOT / "docs" / "README.md").read_text())}
    assert pages - {"README.md"} <= listed
