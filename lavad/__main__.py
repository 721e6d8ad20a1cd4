"""``python -m lavad``."""

import sys

from lavad.main import main

sys.exit(main())
