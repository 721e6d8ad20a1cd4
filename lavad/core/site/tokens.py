"""The tokens that a user has: what the master remembers of each that it has signed. The token itself is kept nowhere.

Rule: a token serves while it is remembered here. To call one back is to forget it.
"""

from __future__ import annotations

import msgspec


class IssuedToken(msgspec.Struct, frozen=True, omit_defaults=True):
    """``kind``: ``link``, ``session`` or ``api``; ``host``: where it was asked for. Times are seconds since the epoch."""

    id: str
    kind: str
    made: float
    ends: float
    host: str = ""
    admin: bool = False
    """Whether its bearer has the rights of an administrator, where the user is one."""
    name: str = ""
    """What its user says that it is for."""


class UserTokens(msgspec.Struct, frozen=True):
    """Those of one user by id, oldest first."""

    user: str
    tokens: dict[str, IssuedToken]

    def at(self, now: float) -> list[IssuedToken]:
        """Those that have not ended."""
        return [token for token in self.tokens.values() if token.ends > now]
