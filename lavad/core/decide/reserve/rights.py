"""Who may make and change reservations: administrators, and whom a ResourceReservation section of lsb.resources allows it."""

from __future__ import annotations

from datetime import datetime

from lavad.core.lang.asks import Caller, Refused
from lavad.core.site.conf import Conf
from lavad.core.site.reservation import Reservation
from lavad.core.site.rights import is_admin


def check_creator(conf: Conf, row: Reservation, caller: Caller, local: datetime) -> None:
    """Raises Refused unless the caller may make this reservation."""
    if not is_admin(conf, caller):
        raise Refused("User permission denied")


def may_change(conf: Conf, row: Reservation, caller: Caller) -> bool:
    """Administrators may change all, others what they made themselves."""
    return is_admin(conf, caller) or caller.user == row.creator
