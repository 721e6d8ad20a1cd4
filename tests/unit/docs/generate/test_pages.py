"""The pages of docs/reference: what they hold, and that they are written where they are out of date."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.generate import markdown, pages
from proto.commands import INSTALLED
from web.rest.routes import ROOT, TABLE


def test_only_what_is_out_of_date_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "FOLDER", tmp_path / "reference")
    assert pages.write() == sorted(pages.PAGES)
    assert pages.outdated() == []
    (tmp_path / "reference" / "metrics.md").write_text("old")
    (tmp_path / "reference" / "gone.md").write_text("of a page that is no more")
    assert pages.write() == ["gone.md", "metrics.md"]
    assert not (tmp_path / "reference" / "gone.md").exists()


def test_each_command_and_route_has_its_place() -> None:
    options = pages.PAGES["options.md"]()
    assert [name for name in INSTALLED if f"\n## {name}\n" not in options] == []
    assert "| `-gpu REQUIREMENT` | GPUs on each host" in options
    assert "| `--renew NAME[ ...]` |" in options
    assert "### lava why\n" in options
    rest = pages.PAGES["rest.md"]()
    assert [route.path for route in TABLE if f"\n### {route.method} {ROOT}{route.path}\n" not in rest] == []
    python = pages.PAGES["python.md"]()
    assert "### Executor.map\n\n`map(fn, *iterables, " in python
    assert "| `lava_jobs_ended_total` | counter | `kind` `queue` `state` |" in pages.PAGES["metrics.md"]()


def test_a_cell_holds_what_markdown_would_take_for_something_else() -> None:
    assert markdown.cell("a|b <c> *d*\ne") == "a\\|b \\<c> \\*d\\* e"
    assert (markdown.code("a b"), markdown.code("a|<b>")) == ("`a b`", "<code>a&#124;&lt;b&gt;</code>")
    assert markdown.table(("A", "B"), [("1", "2")]) == "| A | B |\n|-|-|\n| 1 | 2 |\n"
    assert markdown.table(("A",), []) == ""
