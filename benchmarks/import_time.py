"""What `import understudy` adds to `import numpy`, and what opening a bot adds to that.

python benchmarks/import_time.py [--json]
"""

from __future__ import annotations

import subprocess
import sys
import time

import machine
import numpy as np

STATEMENTS = {
    "python": "pass",
    "numpy": "import numpy",
    "understudy": "import numpy, understudy",
    "facade": "import numpy, understudy; understudy.Understudy",
}
ROUNDS = 15


def measure() -> dict[str, object]:
    """Median wall milliseconds of a fresh interpreter, the statements taking turns."""
    took: dict[str, list[float]] = {name: [] for name in STATEMENTS}
    for _ in range(ROUNDS):
        for name, statement in STATEMENTS.items():
            began = time.perf_counter()
            subprocess.run([sys.executable, "-c", statement], check=True)
            took[name].append(1e3 * (time.perf_counter() - began))
    medians = {name: float(np.median(values)) for name, values in took.items()}
    return {
        "numpy_ms": medians["numpy"] - medians["python"],
        "understudy_more_ms": medians["understudy"] - medians["numpy"],
        "facade_more_ms": medians["facade"] - medians["numpy"],
        "machine": machine.describe("numpy", "msgspec"),
    }


def words(numpy_ms: float, understudy_more_ms: float, facade_more_ms: float, machine: str) -> str:
    return (
        f"import numpy: {numpy_ms:.0f} ms; `import understudy` on top: {understudy_more_ms:.0f} ms,"
        f" and with its facade loaded: {facade_more_ms:.0f} ms; goal: under 150 ms"
    )


if __name__ == "__main__":
    machine.tell(__doc__, measure, words)
