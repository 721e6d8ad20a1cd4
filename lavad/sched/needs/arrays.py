"""numpy, and the arrays that the scheduler makes of it.

Rule: it is loaded when something of it is first used. That takes a third of the start of a process that plans, and a small
cluster, or a query, needs none of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
else:

    class _Numpy:
        def __getattr__(self, name: str) -> Any:
            import numpy

            setattr(self, name, getattr(numpy, name))
            return getattr(numpy, name)

    np = _Numpy()

Ints: TypeAlias = "npt.NDArray[np.int64]"
Ints32: TypeAlias = "npt.NDArray[np.int32]"
Floats: TypeAlias = "npt.NDArray[np.float64]"
Mask: TypeAlias = "npt.NDArray[np.bool_]"

__all__ = ["Floats", "Ints", "Ints32", "Mask", "np"]
