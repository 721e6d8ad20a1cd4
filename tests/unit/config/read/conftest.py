"""What tests of reading a site's files share."""

import pytest

from config.read.load import load


@pytest.fixture
def folder(tmp_path):
    """Writes files of a site (``lsb__queues=TEXT``) and reads all that are there."""

    def write(**files):
        for name, text in files.items():
            (tmp_path / name.replace("__", ".")).write_text(text)
        return load(str(tmp_path))

    return write
