"""A Python program that knows nothing of checkpoints: ``orbit.py RESULT STEPS [PAUSE]``.

Bodies attract each other; their places are in memory only. A thread counts along, a file stays open, numbers come from a
generator with a seed. The last line of RESULT is a sum over every step.
"""

import hashlib
import random
import sys
import threading
import time

if len(sys.argv) < 3:
    sys.exit("usage: orbit.py RESULT STEPS [PAUSE]")
result, steps = sys.argv[1], int(sys.argv[2])
pause = float(sys.argv[3]) if len(sys.argv) > 3 else 0.0
chance = random.Random(7)
bodies = [[chance.uniform(-1, 1) for _ in range(4)] for _ in range(12)]
ticks = threading.Event()
seen = 0


def count() -> None:
    """Counts the steps beside the program."""
    global seen
    while True:
        ticks.wait()
        ticks.clear()
        seen += 1


threading.Thread(target=count, daemon=True).start()
total = hashlib.sha256()
with open(result, "w", encoding="ascii") as file:
    for step in range(1, steps + 1):
        for body in bodies:
            for other in bodies:
                dx, dy = other[0] - body[0], other[1] - body[1]
                pull = 1e-6 / (dx * dx + dy * dy + 0.01)
                body[2] += pull * dx
                body[3] += pull * dy
        for body in bodies:
            body[0] += body[2] + chance.gauss(0, 1e-6)
            body[1] += body[3] + chance.gauss(0, 1e-6)
        ticks.set()
        total.update(repr(bodies).encode())
        print("step", step, total.hexdigest()[:16], file=file, flush=True)
        time.sleep(pause)
    for _ in range(1000):  # the thread may not have had its turn yet
        if seen:
            break
        time.sleep(0.01)
    assert 0 < seen <= steps
    print("sum", total.hexdigest(), file=file)
