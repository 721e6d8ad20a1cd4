"""A hook of mkdocs: files of the tree that are no pages are named in the site, and not linked to.

Rule: no address of a repository stands in the pages, so that every copy of them is right.
"""

from __future__ import annotations

import re
from typing import Any

_OUTSIDE = r"\[([^\]]+)\]\((?:{up}(?P<path>[^)#]+)|(?:systemd|monitoring)/?[^)]*)(?:#[^)]*)?\)"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page with each link that leaves ``docs/`` as its text, and the path where that is not the text already."""
    up = r"\.\./" * (page.file.src_uri.count("/") + 1)
    return re.sub(_OUTSIDE.format(up=up), _named, markdown)


def _named(link: re.Match[str]) -> str:
    text, path = link[1], (link["path"] or "").rstrip("/")
    return text if not path or path in text else f"{text} (`{path}`)"
