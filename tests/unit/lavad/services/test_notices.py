"""What badmin showstatus warns of, gathered."""

from __future__ import annotations

from lavad.core.plan.volatile import SoftUpdate
from lavad.services.notices import Notices


def test_the_lines_of_all_are_published_when_they_change() -> None:
    told: list[SoftUpdate] = []
    first: list[str] = []
    second = ["b"]
    notices = Notices(told.append, [lambda: first, lambda: second])
    notices.look()
    notices.look()
    first.append("a")
    notices.look()
    first.clear()
    second.clear()
    notices.look()
    assert [update.notices for update in told] == [("b",), ("a", "b"), ()]
