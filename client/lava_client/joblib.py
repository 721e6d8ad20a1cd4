"""joblib on lava: ``joblib.Parallel`` and what is built on it (scikit-learn) run their batches as calls of an executor.

from lava_client.joblib import register

register()
with joblib.parallel_config(backend="lava", slots=2, memory="4GB"):
    joblib.Parallel()(joblib.delayed(simulate)(seed) for seed in range(1000))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from joblib import register_parallel_backend
from joblib.parallel import AutoBatchingMixin, ParallelBackendBase

from lava_client.executor import Executor

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future


class LavaBackend(AutoBatchingMixin, ParallelBackendBase):  # type: ignore[misc]
    """Tasks are put together until a job takes about ``MIN_IDEAL_BATCH_DURATION`` seconds. Options are those of Executor."""

    MIN_IDEAL_BATCH_DURATION = 2.0
    MAX_IDEAL_BATCH_DURATION = 20.0
    supports_retrieve_callback = True
    supports_sharedmem = False
    default_n_jobs = -1

    def __init__(self, nesting_level: int | None = None, inner_max_num_threads: int | None = None, **options: Any) -> None:
        super().__init__(nesting_level=nesting_level, inner_max_num_threads=inner_max_num_threads)
        self._options = options
        self._executor: Executor | None = None
        self._under_way: set[Future[Any]] = set()

    def configure(self, n_jobs: int = 1, parallel: Any = None, **_: Any) -> int:
        """Begin; how many batches are under way at a time."""
        self.parallel = parallel
        self._executor = Executor(**self._options)
        return self.effective_n_jobs(n_jobs)

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        """The cluster's slots for None and -1."""
        if n_jobs == 0:
            raise ValueError("n_jobs == 0 in Parallel has no meaning")
        if n_jobs is not None and n_jobs > 0:
            return n_jobs
        if self._executor is not None:
            return self._executor._max_workers
        with Executor(**self._options) as executor:
            return executor._max_workers

    def submit(self, func: Callable[[], Any], callback: Callable[[Future[Any]], None] | None = None) -> Future[Any]:
        """Run a batch."""
        if self._executor is None:
            raise RuntimeError("the backend is not configured")
        future = self._executor.submit(func)
        self._under_way.add(future)
        future.add_done_callback(self._under_way.discard)
        if callback is not None:
            future.add_done_callback(callback)
        return future

    apply_async = submit

    def retrieve_result_callback(self, out: Future[Any]) -> Any:
        """What a batch has returned; raises what it raised."""
        return out.result()

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """Kill what is under way."""
        for future in list(self._under_way):
            future.cancel()
        if not ensure_ready:
            self.terminate()

    def terminate(self) -> None:
        """End the executor."""
        executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(wait=False)


def register(name: str = "lava") -> None:
    """Make ``joblib.parallel_config(backend=name)`` known."""
    register_parallel_backend(name, LavaBackend)
