"""An executor as of concurrent.futures whose workers are jobs."""

from __future__ import annotations

import sys
import time
import weakref
from concurrent import futures
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from lava_client import pickling
from lava_client.call import Place
from lava_client.cluster import Cluster
from lava_client.options import options_of
from lava_client.pool import Pool
from lava_client.settings import JobSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from typing_extensions import ParamSpec

    from lava_client.call import CallFuture

    P = ParamSpec("P")

T = TypeVar("T")
LONGEST_NAME = 60


class Executor(futures.Executor):
    """Runs callables as jobs: ``with Executor(slots=1) as e: e.submit(pow, 2, 5).result()``.

    ``max_workers``: jobs at a time; None: lava alone decides how many run. ``slots``, ``gpus``, ``memory``, ``run_limit``,
    ``queue`` … are options of bsub as ``Cluster.submit`` takes them. ``ranks=4``: each call is run by 4 ranks of MPI, and its
    result is the list of what they returned. ``retries``: how often a call is run again that raised, or whose job ended
    without a result. ``env``: variables beside those of this process; ``cwd``: the folder of the jobs; ``python``: their
    interpreter, this one unless given. ``initializer(*initargs)`` runs in each job before the call. ``folder``: where calls
    and results lie, a folder that all hosts see (default: LAVA_CLIENT_DIR, else ~/.local/state/lava_client); a host that does
    not see it gets calls of up to 6 MB through lava itself. ``cluster``: the one of the environment unless given.

    Functions and values are pickled, by cloudpickle where it is installed. As with the executors of the standard library the
    interpreter does not end before the calls have.
    """

    def __init__(
        self,
        max_workers: int | None = None,
        *,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[object, ...] = (),
        cluster: Cluster | None = None,
        ranks: int | None = None,
        retries: int = 0,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        python: str | None = None,
        folder: str | None = None,
        **options: object,
    ) -> None:
        if max_workers is not None and max_workers <= 0:
            raise ValueError("max_workers must be greater than 0")
        if initializer is not None and not callable(initializer):
            raise TypeError("initializer must be a callable")
        if retries < 0 or (ranks is not None and ranks <= 0):
            raise ValueError("retries must be 0 or more, ranks greater than 0")
        settings = JobSettings(
            options=options_of({**options, "ranks": ranks}),
            env=dict(env or {}),
            cwd=cwd,
            python=python or sys.executable,
            ranks=ranks or 0,
            retries=retries,
            initializer=None if initializer is None else pickling.dumps((initializer, initargs)),
            main=pickling.find_main(),
            folder=folder,
            most=max_workers,
        )
        self._pool = Pool(cluster or Cluster(), cluster is None, settings)
        # one that is collected takes no more calls; those under way go on
        self._finalizer = weakref.finalize(self, self._pool.shutdown, False, False)
        self._finalizer.atexit = False

    @property
    def _max_workers(self) -> int:
        """How many calls may run at a time, for libraries that look here."""
        return self._pool.settings.most or max(1, self._pool.cluster.link.slots())

    @property
    def _broken(self) -> str:
        """Why no more calls are taken, for libraries that look here; "": they are."""
        return self._pool.broken

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> CallFuture[T]:
        """Run ``fn(*args, **kwargs)`` as a job; its future. Raises RuntimeError after a shutdown."""
        future: CallFuture[T] = self._future(fn, lambda: pickling.call(fn, args, kwargs))
        return future

    def map(
        self,
        fn: Callable[..., T],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
        buffersize: int | None = None,
    ) -> Iterator[T]:
        """As ``map(fn, *iterables)``, as elements of job arrays; results in order. An exception comes where its result would.

        ``timeout``: seconds from now until the next result is due, else TimeoutError; ``chunksize``: calls that a job carries
        out; ``buffersize``: jobs that are submitted before the first result is taken, None: all.
        """
        if chunksize < 1:
            raise ValueError("chunksize must be >= 1.")
        if buffersize is not None and buffersize < 1:
            raise ValueError("buffersize must be None or > 0")
        end = None if timeout is None else time.monotonic() + timeout
        chunks = _chunks(zip(*iterables), chunksize)
        first = [self._chunk(fn, chunk, False) for chunk in islice(chunks, buffersize)]
        self._pool.add([future for future in first if not future.done()])
        return self._results(fn, first, chunks if buffersize is not None else iter(()), end)

    def _results(
        self, fn: Callable[..., T], first: list[CallFuture[list[T]]], more: Iterator[list[tuple[Any, ...]]], end: float | None
    ) -> Iterator[T]:
        waiting = first[::-1]
        try:
            while waiting:
                # what has been taken is not held here any more
                values = _taken(waiting.pop(), end)
                if self._pool.settings.ranks:
                    values = [list(of_ranks) for of_ranks in zip(*values)]  # type: ignore[misc]
                following = next(more, None)
                if following is not None:
                    waiting.insert(0, self._chunk(fn, following, True))
                values.reverse()
                while values:
                    yield values.pop()
        finally:
            for future in waiting:
                future.cancel()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls. ``wait``: return when all have ended; ``cancel_futures``: cancel those that have not begun."""
        self._pool.shutdown(wait, cancel_futures)

    def _chunk(self, fn: Callable[..., T], arguments: list[tuple[Any, ...]], at_once: bool) -> CallFuture[list[T]]:
        return self._future(fn, lambda: pickling.chunk(fn, arguments), at_once)

    def _future(self, fn: Callable[..., Any], pickled: Callable[[], bytes], at_once: bool = True) -> CallFuture[Any]:
        """A future, handed in ``at_once``; one that has failed where the call cannot be pickled."""
        error: Exception | None = None
        try:
            blob = pickled()
        except Exception as failed:
            error, blob = failed, b""
        future = self._pool.future(Place(blob, _name(fn), self._pool.settings.retries))
        if error is not None:
            self._pool.add([])
            future.end(None, error)
        elif at_once:
            self._pool.add([future])
        return future


def _taken(future: CallFuture[list[T]], end: float | None) -> list[T]:
    try:
        return future.result(None if end is None else end - time.monotonic())
    except futures.TimeoutError:
        future.cancel()
        raise
    finally:
        del future


def _chunks(arguments: Iterator[tuple[Any, ...]], size: int) -> Iterator[list[tuple[Any, ...]]]:
    while chunk := list(islice(arguments, size)):
        yield chunk


def _name(fn: Callable[..., Any]) -> str:
    """The name of a job that calls a function: what a job's name may hold of the function's."""
    name = getattr(fn, "__name__", None) or type(fn).__name__
    return "".join(char for char in name if char.isalnum() or char == "_")[:LONGEST_NAME] or "call"
