"""lsid: product, cluster and master. With LSF_COMPAT_VERSION the product line is the one that tools look for.

Rule: a site gives the whole line, or only the version of LSF (``10.1.0.0``).
"""

from __future__ import annotations

from collections.abc import Iterator

from lavad.queries.frame.request import Request, Shown, out
from lavad.queries.frame.view import View

BUILT = "Nov 20 2026"


def product(view: View) -> str:
    """The product line."""
    compat = view.lsf.get("LSF_COMPAT_VERSION", "").strip()
    built = view.built or BUILT
    if " " in compat:
        return compat
    return f"IBM Spectrum LSF Standard {compat}, {built}" if compat else f"lava {view.version}, {built}"


def show(request: Request) -> Iterator[Shown]:
    """Four lines."""
    request.options()
    view = request.view
    yield out(f"{product(view)}\n\nMy cluster name is {view.name}\nMy master name is {view.master}\n")
