"""``python -m lavad.devtools start|stop FOLDER``: the private PostgreSQL of a cluster on one machine. Prints its URL."""

from __future__ import annotations

import sys

from lavad.devtools.private_postgres import start, stop
from lavad.store.errors import StoreError


def main(words: list[str]) -> int:
    """Exit 1 with one line where it cannot."""
    what, folder = words
    try:
        if what == "start":
            print(start(folder))  # noqa: T201
        else:
            stop(folder)
    except (StoreError, OSError) as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
