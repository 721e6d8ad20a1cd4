"""``python -m docs.generate``: write the pages of docs/reference that are out of date, and say which."""

from __future__ import annotations

import sys

from docs.generate.pages import write

sys.stdout.writelines(f"docs/reference/{name}\n" for name in write())
