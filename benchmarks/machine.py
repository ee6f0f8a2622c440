"""What a figure was measured on, printed above every table, and the command around measuring."""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Literal

import numpy as np


def describe(*packages: str) -> str:
    """One line: processor, cores, Python, versions."""
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in packages)
    return f"{_processor()}, {os.cpu_count()} cores, Python {platform.python_version()}, {versions}"


def tell(
    doc: str | None, measure: Callable[[], dict[str, object]], words: Callable[..., str]
) -> None:
    """Measure; `--json` prints all of it as one object, else it is the machine and the words."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    result = measure()
    print(json.dumps(result) if arguments.json else f"{result['machine']}\n{words(**result)}")


def accelerator() -> str:
    """What JAX computes on."""
    import jax

    return str(jax.devices()[0].device_kind)


def matrix_flops_s(device: Literal["cpu", "gpu"]) -> float:
    """The best rate of large products of matrices: float32 on a CPU, bfloat16 on a GPU.

    Random numbers, since a product of zeros draws less power and runs above the real rate.
    """
    import jax
    import jax.numpy as jnp

    if jax.default_backend() != device:
        raise SystemExit(f"--device {device}: JAX computes on {jax.default_backend()} here")
    size, repeats, dtype = (2048, 4, jnp.float32) if device == "cpu" else (8192, 20, jnp.bfloat16)
    keys = jax.random.split(jax.random.key(0))
    x = jax.random.normal(keys[0], (size, size), dtype)
    y = (jax.random.normal(keys[1], (size, size)) / np.sqrt(size)).astype(dtype)
    product = jax.jit(lambda x, y: jax.lax.fori_loop(0, repeats, lambda _, x: x @ y, x))
    product(x, y).block_until_ready()
    took = []
    for _ in range(5):
        began = time.perf_counter()
        product(x, y).block_until_ready()
        took.append(time.perf_counter() - began)
    return 2.0 * size**3 * repeats / min(took)


def keep_bytecode(folder: Path) -> None:
    """Processes that are started from now on keep compiled modules in a folder, as those of an
    installed program do. Where `PYTHONDONTWRITEBYTECODE` is set, and nothing was compiled before,
    most of a start would be compiling. The first start is still such a one: do not count it."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(folder)


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
