"""What an executor has under way. One thread hands calls to lava, as arrays where there are several; the follower of the cluster
tells how they end. It knows nothing of the executor, which may be collected while its calls run on.
"""

from __future__ import annotations

import contextlib
import shlex
import threading
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lava_client import atexit, folder, pickling, worker
from lava_client.call import CallFuture, Place
from lava_client.errors import CallLost, InitializerFailed, JobKilled, LavaError, Refused
from lava_client.follow import DONE, Seen
from lava_client.job import failure
from lava_client.kills import Kills
from lava_client.late import PATIENCE, Late
from lava_client.link import Closed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lava_client.session import Session
    from lava_client.settings import JobSettings

MOST_ELEMENTS = 1_000
"""Of an array: LSF's own default of MAX_JOB_ARRAY_SIZE."""
MOST_BYTES = 64 << 20
"""Of a batch of several calls."""
MOST_IDS = 5_000


class Pool:
    """The calls of one executor."""

    def __init__(self, cluster: Session, owned: bool, settings: JobSettings) -> None:
        self.cluster = cluster
        self.settings = settings
        self.broken = ""
        """Why no more calls are taken."""
        self._owned = owned
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._waiting: deque[CallFuture[Any]] = deque()
        self._submitted: dict[tuple[int, int], CallFuture[Any]] = {}
        """Job and element to its call, until that has ended."""
        self._submitting: list[CallFuture[Any]] = []
        """Those that are being submitted now."""
        self._kills = Kills()
        self._late = Late()
        self._left: dict[str, int] = {}
        """Batch to the number of its calls that have not ended."""
        self._folder: folder.Folder | None = None
        self._through_lava = False
        self._thread: threading.Thread | None = None
        self._shut = False

    # -- calls of the executor -----------------------------------------------------------------------------------------

    def add(self, futures: Sequence[CallFuture[Any]]) -> None:
        """Take calls. Raises RuntimeError after a shutdown, InitializerFailed where the initializer has failed."""
        with self._changed:
            if self.broken:
                raise InitializerFailed(self.broken)
            if self._shut:
                raise RuntimeError("cannot schedule new futures after shutdown")
            if atexit.is_ending():
                raise RuntimeError("cannot schedule new futures after interpreter shutdown")
            if self._thread is None:
                # not a daemon, which subinterpreters have not: atexit waits for it
                thread = threading.Thread(target=self._run, name="lava calls", daemon=False)
                atexit.register(self, first=True)
                thread.start()
                self._thread = thread
            self._waiting.extend(futures)
            self._changed.notify_all()

    def future(self, place: Place) -> CallFuture[Any]:
        """The future of a call, which is not taken yet."""
        return CallFuture(self.cluster, place, self._cancelled)

    def _cancelled(self, future: CallFuture[Any]) -> None:
        """A call was cancelled: its job, if there is one, is killed."""
        with self._changed:
            if future.id is not None and self._submitted.get(future.place.key or (0, 0)) is future:
                self._kills.add([future.id])
            else:
                with contextlib.suppress(ValueError):
                    self._waiting.remove(future)
            self._changed.notify_all()

    def shutdown(self, wait: bool, cancel: bool) -> None:
        """Take no more calls; cancel those that have not begun; wait for the others.

        Where jobs at a time are limited, so many count as begun as may be under way, as with the queue of a process pool.
        """
        with self._changed:
            self._shut = True
            known = [*self._submitted.values(), *self._submitting, *self._waiting] if cancel else []
            thread = self._thread
            self._changed.notify_all()
        known = [future for future in known if not future.done()]
        running = [future for future in known if future.running()]
        begun = {id(future) for future in [*running, *known][: self.settings.most or len(running)]}
        for future in known:
            if id(future) not in begun and not future.running():
                future.cancel()
        if thread is None:
            self._end()
        elif wait and thread is not threading.current_thread():
            thread.join()

    def close(self) -> None:
        """At the end of the interpreter: what is under way ends first."""
        self.shutdown(wait=True, cancel=False)

    def abandon(self) -> None:
        """In the child of a fork: what is under way is the parent's."""
        futures = [*self._waiting, *self._submitting, *self._submitted.values(), *self._late.futures()]
        settings, broken, shut = self.settings, self.broken, self._shut
        self.__init__(self.cluster, self._owned, settings)  # type: ignore[misc]
        self.broken, self._shut = broken, shut
        for future in futures:
            future.abandon()

    # -- the thread ----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while True:
                with self._changed:
                    while not self._due():
                        if self._shut and not (self._waiting or self._submitted or self._late):
                            return
                        self._changed.wait(self._pause())
                    kill = self._kills.take()
                    late = self._late.take()
                    calls = self._submitting = self._taken()
                try:
                    self._kill(kill)
                    self._hand_in(calls)
                except Closed as error:
                    self._fail([*calls, *self._submitted.values(), *self._waiting], error)
                    return
                except Exception as error:
                    self._fail(calls, error)
                finally:
                    self._submitting = []
                for future, seen, until in late:
                    self._told(future, seen, until)
        finally:
            self._end()

    def _due(self) -> bool:
        room = self.settings.most is None or len(self._submitted) < self.settings.most
        return (bool(self._waiting) and room) or self._pause() == 0.0

    def _pause(self) -> float | None:
        """Seconds until something is to be killed or looked for; None: nothing is."""
        pauses = [pause for pause in (self._kills.pause(), self._late.pause()) if pause is not None]
        return min(pauses, default=None)

    def _taken(self) -> list[CallFuture[Any]]:
        """The calls of the next batch."""
        most = MOST_ELEMENTS if self.settings.most is None else min(MOST_ELEMENTS, self.settings.most - len(self._submitted))
        limit = folder.LARGEST_THROUGH_LAVA // 2 if self._through_lava else MOST_BYTES
        taken: list[CallFuture[Any]] = []
        size = 0
        while self._waiting and len(taken) < most:
            size += self._waiting[0].place.size
            if taken and size > limit:
                break
            taken.append(self._waiting.popleft())
        return taken

    def _end(self) -> None:
        with self._changed:
            self._thread = None
        if self._folder is not None:
            self._folder.remove()
        if self._owned:
            self.cluster.close()

    def _kill(self, ids: list[str]) -> None:
        """Kill jobs; those that are left where the master is away, or does not take it, later. Raises Closed."""
        for at in range(0, len(ids), MOST_IDS):
            try:
                self.cluster.link.kill(ids[at : at + MOST_IDS])
            except Closed:
                raise
            except LavaError:
                with self._changed:
                    live = {future.id for future in self._submitted.values()}
                    self._kills.again(id for id in ids[at:] if id in live)
                return

    # -- submission ----------------------------------------------------------------------------------------------------

    def _hand_in(self, futures: list[CallFuture[Any]]) -> None:
        """Submit calls: those that are tried again one by one, the others as an array."""
        futures = [future for future in futures if not future.cancelled()]
        for future in [future for future in futures if future.place.batch]:
            self._submit(future.place.batch, [future], again=True)
        fresh = [future for future in futures if not future.place.batch]
        if not fresh:
            return
        blobs = [future.place.blob or b"" for future in fresh]
        shared = pickling.setting(blobs, self.settings.main, self.settings.initializer, bool(self.settings.ranks))
        try:
            if self._through_lava:
                self._submit_through_lava(fresh, shared, blobs)
                return
            if self._folder is None:
                self._folder = folder.Folder(self.settings.folder)
            batch = self._folder.write(shared, blobs)
        except OSError as error:
            self._fail(fresh, LavaError(f"the calls cannot be written: {error}"))
            return
        for number, future in enumerate(fresh, 1):
            future.place.batch, future.place.number, future.place.blob = batch, number, None
        self._left[batch] = len(fresh)
        self._submit(batch, fresh)

    def _submit_through_lava(self, futures: list[CallFuture[Any]], shared: bytes, blobs: list[bytes]) -> None:
        body = None if self.settings.ranks else folder.as_input(shared, blobs)
        if body is None:
            what = "an executor with ranks" if self.settings.ranks else f"a call of {len(blobs[0])} bytes"
            why = f"the hosts do not see {self._folder and self._folder.path}, and {what} does not go through lava"
            self._fail(futures, LavaError(f"{why}: give Executor(folder=) a folder that all hosts share"))
            return
        for number, future in enumerate(futures, 1):
            future.place.number = number
        self._submit(worker.THROUGH_LAVA, futures, body=body)

    def _submit(self, batch: str, futures: list[CallFuture[Any]], again: bool = False, body: str = "") -> None:
        """Submit calls of a batch; where lava does not take so large an array, in halves."""
        numbers = [future.place.number for future in futures]
        words = [self.settings.python, str(Path(worker.__file__).resolve()), batch]
        name = str(self.settings.options.get("J") or futures[0].place.name)
        options = {**self.settings.options, "J": name}
        if len(futures) > 1:
            options["J"] = f"{name}[{numbers[0]}-{numbers[-1]}]"
        else:
            words.append(str(numbers[0]))
        if body:
            options |= {"is": ["calls", body], "notify": "suspend"}
        else:
            options.setdefault("o", "/dev/null")
        frame = self.cluster.frame(shlex.join(words), options, self.settings.cwd, self.settings.env)
        try:
            self.cluster.follower.begin(self.cluster.link)
            answer = self.cluster.link.submit(frame)
        except Refused as refused:
            if len(futures) > 1 and "array" in str(refused).lower():
                half = len(futures) // 2
                self._submit(batch, futures[:half], again, body)
                self._submit(batch, futures[half:], again, body)
            else:
                self._fail(futures, refused)
            return
        for future in futures:
            key = (int(answer["job"]), future.place.number if len(futures) > 1 else 0)
            with self._changed:
                future.place.key = key
                self._submitted[key] = future
                if future.cancelled():
                    self._kills.add([str(future.id)])
            self.cluster.follower.follow(key, self._teller(future))

    def _teller(self, future: CallFuture[Any]) -> Callable[[Seen], None]:
        def tell(seen: Seen) -> None:
            if not seen.is_over:
                if seen.state not in ("PEND", "PSUSP"):
                    future.begin()
                return
            self._told(future, seen, time.monotonic() + PATIENCE)

        return tell

    # -- ends ----------------------------------------------------------------------------------------------------------

    def _told(self, future: CallFuture[Any], seen: Seen, until: float) -> None:
        """The job of a call is over; called by the follower, or by this thread for a result that is looked for again."""
        try:
            self._ended(future, seen, until)
        except Exception as error:  # both serve other futures too
            self._over(future)
            future.end(None, error)

    def _ended(self, future: CallFuture[Any], seen: Seen, until: float) -> None:
        place = future.place
        if future.cancelled():
            self._over(future)
            return
        if seen.code == worker.NO_FOLDER and place.batch and not self._has_begun(place):
            self._move(future)
            return
        value: Any = None
        error: BaseException | None = None
        if seen.was_killed:
            error = failure(future.id or "", seen)
        else:
            found = self._found(future)
            if found is None and seen.state == DONE and time.monotonic() < until and place.batch:
                with self._changed:
                    self._late.add((future, seen, until))
                    self._changed.notify_all()
                return
            value, error = self._outcome(future, seen, found)
        if error is not None and place.retries > 0 and not isinstance(error, (JobKilled, InitializerFailed)):
            self._again(future)
            return
        self._over(future)
        if isinstance(error, InitializerFailed):
            self._break(error)
        future.end(value, error)

    def _has_begun(self, place: Place) -> bool:
        """Whether a call that ended with the code for a host without the folder did so by itself: it is not run again then."""
        return not self.settings.ranks and folder.has_begun(place.batch, place.number)

    def _found(self, future: CallFuture[Any]) -> list[bytes] | None:
        place = future.place
        if place.batch:
            return folder.read(place.batch, place.number, self.settings.ranks)
        try:
            data = folder.from_output(self.cluster.link.peek(str(future.id)))
        except LavaError:
            return None
        return None if data is None else [data]

    def _outcome(self, future: CallFuture[Any], seen: Seen, found: list[bytes] | None) -> tuple[Any, BaseException | None]:
        if found is None:
            place = future.place
            said = folder.end_of_log(place.batch, place.number) if place.batch else ""
            known = failure(str(future.id), seen)
            why = "it gave no result" + "".join(f"; {part}" for part in (known.why, said and f"it said: {said}") if part)
            return None, CallLost(known.job, known.code, why, known.reason)
        results = [pickling.read_result(data) for data in found]
        error = next((result.error for result in results if result.error is not None), None)
        return ([result.value for result in results] if self.settings.ranks else results[0].value), error

    def _move(self, future: CallFuture[Any]) -> None:
        """The host of a call does not see the folder: lava carries it."""
        place = future.place
        with open(place.batch, "rb") as file:
            blob = worker.read_call(file, place.number)[1]
        self._over(future)
        place.blob, place.batch = blob, ""
        with self._changed:
            self._through_lava = True
            self._waiting.append(future)
            self._changed.notify_all()

    def _again(self, future: CallFuture[Any]) -> None:
        place = future.place
        place.retries -= 1
        if place.batch:
            folder.forget(place.batch, place.number, self.settings.ranks)
        with self._changed:
            self._submitted.pop(place.key or (0, 0), None)
            self._waiting.append(future)
            self._changed.notify_all()

    def _over(self, future: CallFuture[Any]) -> None:
        """Forget a call, or the way it went: it may go on in another."""
        place = future.place
        if place.batch:
            folder.forget(place.batch, place.number, self.settings.ranks)
        with self._changed:
            self._submitted.pop(place.key or (0, 0), None)
            if place.batch:
                self._left[place.batch] -= 1
                if not self._left[place.batch]:
                    del self._left[place.batch]
                    with contextlib.suppress(OSError):
                        Path(place.batch).unlink()
            self._changed.notify_all()

    def _break(self, error: InitializerFailed) -> None:
        with self._changed:
            self.broken = str(error)
            others = [*self._waiting, *self._submitting, *self._submitted.values()]
            self._waiting.clear()
            self._kills.add(one.id for one in self._submitted.values() if one.id is not None)
            self._changed.notify_all()
        for other in others:
            other.end(None, InitializerFailed(self.broken))

    def _fail(self, futures: Sequence[CallFuture[Any]], error: Exception) -> None:
        for future in futures:
            future.end(None, error)
