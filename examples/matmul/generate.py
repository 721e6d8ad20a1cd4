"""Make the input of matmul.py: two square matrices of float64 in binary files, row after row, nothing else.

python generate.py A.bin B.bin [--size 512] [--seed 1]
"""

import argparse

import numpy as np


def main() -> None:
    parser = argparse.ArgumentParser(description="Write two random square matrices of float64.")
    parser.add_argument("a")
    parser.add_argument("b")
    parser.add_argument("--size", type=int, default=512, help="rows and columns (default: 512)")
    parser.add_argument("--seed", type=int, default=1, help="the same seed makes the same matrices (default: 1)")
    options = parser.parse_args()
    if options.size < 1:
        parser.error(f"--size {options.size}: must be at least 1")
    random = np.random.default_rng(options.seed)
    for path in (options.a, options.b):
        random.standard_normal((options.size, options.size)).tofile(path)
    print(f"{options.a} and {options.b}: {options.size} x {options.size} float64, seed {options.seed}")


if __name__ == "__main__":
    main()
