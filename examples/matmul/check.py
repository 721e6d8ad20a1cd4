"""Compare the product that matmul.py wrote with NumPy's; exit 1 when it is wrong.

python check.py A.bin B.bin C.bin
"""

import math
import sys

import numpy as np

TOLERANCE = 1e-12
"""Of the largest number in the product, for each of the `size` terms of a sum."""


def load(path: str) -> np.ndarray:
    """The square matrix in a file."""
    try:
        numbers = np.fromfile(path)
    except OSError as error:
        sys.exit(f"check: {path}: {error.strerror}")
    size = math.isqrt(len(numbers))
    if size < 1 or size * size != len(numbers):
        sys.exit(f"check: {path}: not a square matrix of float64 ({len(numbers)} numbers)")
    return numbers.reshape(size, size)


def main() -> None:
    if len(sys.argv) != 4:
        sys.exit("usage: check.py A.bin B.bin C.bin")
    a, b, product = (load(path) for path in sys.argv[1:])
    if not a.shape == b.shape == product.shape:
        sys.exit(f"check: sizes differ: {len(a)}, {len(b)} and {len(product)} rows")
    expected = a @ b
    error = float(np.abs(product - expected).max() / np.abs(expected).max())
    right = error <= TOLERANCE * len(a)
    print(f"{'right' if right else 'WRONG'}: {len(a)} x {len(a)}, largest error {error:.2e} of the largest number")
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    main()
