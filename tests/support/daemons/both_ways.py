"""What tests ask of a task by native code and by Python: texts, environments, limits drawn by Hypothesis; and both shepherds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import strategies as st

from tests.support.daemons.shepherds import Shepherd

WORDS = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]) | st.characters(min_codepoint=0xDC80, max_codepoint=0xDCFF)
)
_NAMES = st.text(st.characters(exclude_characters="\0=", exclude_categories=["Cs"]), min_size=1).filter(lambda one: one != "PATH")
ENV = st.dictionaries(_NAMES, WORDS, max_size=4)
_LIMIT = st.one_of(st.just(-1), st.integers(1 << 14, 1 << 20))
LIMITS = st.dictionaries(
    st.sampled_from(["NOFILE", "CORE", "FSIZE", "MEMLOCK", "NPROC"]), st.tuples(_LIMIT, _LIMIT).map(list), max_size=3
)
CHANGES = rb"^(?!Umask|Uid|Gid|Groups|Sig[BIC]|ShdPnd|Cap|NoNewPrivs|Seccomp:)\w+:\t.*\n"
"""Lines of /proc/PID/status that differ from one process to the next."""


@contextmanager
def both_shepherds(folder: Path, library: Path) -> Iterator[tuple[Shepherd, Shepherd]]:
    """One with native code and one without, in folders of their own; both end well."""
    ones = []
    for name, path in (("native", library), ("python", None)):
        (folder / name).mkdir()
        ones.append(Shepherd(folder / name, path))
    yield ones[0], ones[1]
    assert [one.close() for one in ones] == [0, 0]
