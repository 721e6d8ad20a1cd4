"""Bodies of requests, as they come.

Rule: nobody fills the memory of the page, or takes its connections, with bodies that do not come whole. One that is longer on its
way counts as a stream of its user's; of large ones few are kept at a time, each until its request has its answer.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from starlette.requests import ClientDisconnect, Request

from web.problems import Problem
from web.streams import Streams

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from web.signin import Who

MOST = 16 << 20
"""Bytes of one."""
LARGE = 64 << 10
"""Bytes from which on one waits for its turn."""
MOST_OF_USER, MOST_OF_ALL = 4, 16
"""Large ones at a time."""
AT_ONCE = 1.0
"""Seconds in which one comes as a rule: who has as many streams as they may have asks and changes all the same."""
WHOLE = 120.0
"""Seconds in which one has to come whole, from when it has its turn."""


class Uploads:
    """Reads them; ``streams``: what else lasts."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._of_all = asyncio.Semaphore(MOST_OF_ALL)
        self._of_users: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        """While a large one of the user's is here."""

    async def read(self, request: Request, answered: AsyncExitStack) -> bytes:
        """The body of the request of a user who is known by then; ``answered`` ends with its answer. Raises Problem."""
        who: Who = request.state.who
        size = request.headers.get("content-length", "0")
        if size.isdigit() and int(size) > MOST:
            raise _too_large()
        whole = asyncio.ensure_future(self._whole(request, who.user, answered))
        try:
            done, _ = await asyncio.wait([whole], timeout=AT_ONCE)
            with nullcontext() if done else self._streams.open(who):
                return await whole
        except TimeoutError:
            raise Problem(408, f"The body did not come whole within {WHOLE:g} s") from None
        except ClientDisconnect:
            raise Problem(400, "The body did not come whole") from None
        finally:
            whole.cancel()

    async def _whole(self, request: Request, user: str, answered: AsyncExitStack) -> bytes:
        data, waits = bytearray(), True
        async with asyncio.timeout(WHOLE) as limit:
            async for piece in request.stream():
                data += piece
                if len(data) > MOST:
                    raise _too_large()
                if waits and len(data) > LARGE:
                    limit.reschedule(None)  # that others are slow is not its fault
                    await answered.enter_async_context(self._turn(user))
                    limit.reschedule(asyncio.get_running_loop().time() + WHOLE)
                    waits = False
        return bytes(data)

    @asynccontextmanager
    async def _turn(self, user: str) -> AsyncGenerator[None]:
        mine = self._of_users.setdefault(user, asyncio.Semaphore(MOST_OF_USER))
        async with mine, self._of_all:
            yield


def _too_large() -> Problem:
    return Problem(413, f"at most {MOST >> 20} MB")
