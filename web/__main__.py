"""``python -m web``."""

from __future__ import annotations

import sys

from web.main import main

sys.exit(main())
