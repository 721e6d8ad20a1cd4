"""Decisions: an ask or a report and the cluster give events, or a refusal in LSF's words. May import all of core."""

from __future__ import annotations

import importlib
import pkgutil


def load_decisions() -> None:
    """Import every module here, so that each decision is registered for its ask (``base.decisions``)."""
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        importlib.import_module(module.name)
