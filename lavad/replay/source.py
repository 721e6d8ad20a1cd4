"""Where a history comes from: a file, or the store of a cluster that is named by its folder, its URL or its configuration."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from typing import NoReturn

from config.read.load import load
from lavad.configure.database import database_url
from lavad.replay.history import Item, of_file, of_store
from lavad.store.read import Reader


class Parser(argparse.ArgumentParser):
    """The command line of a tool."""

    def error(self, message: str) -> NoReturn:
        """One line, as every other complaint."""
        self.exit(1, f"{self.prog}: {message}\n")


def add_source(options: argparse.ArgumentParser) -> None:
    """The options that say where."""
    options.add_argument("--dir", default="", help="the folder of a cluster of lava up")
    options.add_argument("--database", default="", metavar="URL", help="the SQLAlchemy URL of a store")
    options.add_argument("--conf", default=os.environ.get("LSF_ENVDIR", "/etc/lava"), help=argparse.SUPPRESS)
    options.add_argument("--database-file", default="", help=argparse.SUPPRESS)


def read_source(options: argparse.Namespace, file: str) -> Iterator[Item]:
    """Of ``file`` if one is named, else of the store. Raises ``HistoryError``, ``StoreError`` or OSError."""
    if file:
        yield from of_file(file)
        return
    url = options.database
    if not url:
        named = options.database_file or (os.path.join(options.dir, "run", "database") if options.dir else "")
        url = database_url(load(options.conf).config.params, "", named)
    reader = Reader.open(url)
    try:
        yield from of_store(reader)
    finally:
        reader.close()
