"""lsid: product, cluster and master. With LSF_COMPAT_VERSION the product line is the one that tools look for.

Rule: a site gives the whole line, or only the version of LSF (``10.1.0.0``).
"""

from __future__ import annotations

from collections.abc import Iterator

from lavad.queries.frame.request import Request, Shown, out
from lavad.queries.frame.view import View
from proto.version import PRODUCT, RELEASED


def product(view: View) -> str:
    """The line that says which product this is."""
    compat = view.lsf.get("LSF_COMPAT_VERSION", "").strip()
    if " " in compat:
        return compat
    return f"IBM Spectrum LSF Standard {compat}, {RELEASED}" if compat else PRODUCT


def show(request: Request) -> Iterator[Shown]:
    request.options()
    view = request.view
    yield out(f"{product(view)}\n\nMy cluster name is {view.name}\nMy master name is {view.master}\n")
