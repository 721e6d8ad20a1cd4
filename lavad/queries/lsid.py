"""lsid: product, cluster and master. With LSF_COMPAT_VERSION the product line is the one that LSF's tools look for."""

from __future__ import annotations

from collections.abc import Iterator

from lavad.queries.request import Request, Shown, out
from lavad.queries.view import View


def product(view: View) -> str:
    """The product line."""
    compat = view.lsf.get("LSF_COMPAT_VERSION", "").strip()
    date = f", {view.built}" if view.built else ""
    if compat:
        return f"{compat if ' ' in compat else f'IBM Spectrum LSF Standard {compat}'}{date}"
    return f"lava {view.version}{date}"


def show(request: Request) -> Iterator[Shown]:
    """Four lines."""
    request.options("V")
    view = request.view
    yield out(f"{product(view)}\n\nMy cluster name is {view.name}\nMy master name is {view.master}\n")
