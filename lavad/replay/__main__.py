"""`python -m lavad.replay`."""

import sys

from lavad.replay.main import main

sys.exit(main())
