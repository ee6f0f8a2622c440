"""What a figure was measured on, printed above every table, and the command around measuring."""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Callable
from importlib import metadata
from pathlib import Path


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


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
