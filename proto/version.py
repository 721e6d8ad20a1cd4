"""Which lava this is: the only place that says so. pyproject.toml reads VERSION from here."""

VERSION = "0.1.0"
RELEASED = "Nov 20 2026"
PRODUCT = f"lava {VERSION}, {RELEASED}"
"""What ``-V`` and lsid say."""
