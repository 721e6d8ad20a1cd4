"""Records that many pages ask for again and again: asked once a second for each session, however many tabs there are."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable

from web.master import Master
from web.signin import Who

FRESH = 1.0
MOST = 500
Key = tuple[str, tuple[str, ...], tuple[tuple[str, str], ...]]


class Records:
    """``clock`` gives seconds that only go up."""

    def __init__(self, master: Master, clock: Callable[[], float]) -> None:
        self._master = master
        self._clock = clock
        self._kept: OrderedDict[Key, tuple[float, asyncio.Task[bytes]]] = OrderedDict()

    async def get(self, words: list[str], options: dict[str, str], who: Who) -> bytes:
        """The record in JSON; one that is a second old at most. Raises Problem."""
        key = (who.token, tuple(words), tuple(sorted(options.items())))
        at, task = self._kept.get(key, (0.0, None))
        if task is None or (task.done() and (self._clock() - at > FRESH or task.cancelled() or task.exception() is not None)):
            task = asyncio.create_task(self._master.record(words, options, who.token))
            self._kept[key] = (self._clock(), task)
            self._kept.move_to_end(key)
            while len(self._kept) > MOST:
                self._kept.popitem(last=False)
        return await asyncio.shield(task)

    def forget(self, who: Who) -> None:
        """After a change that this session has made, it reads all afresh."""
        for key in [key for key in self._kept if key[0] == who.token]:
            del self._kept[key]
