"""What a figure was measured on: printed above every table."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path


def describe(*packages: str) -> str:
    """One line: processor, cores, Python, versions."""
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in packages)
    return f"{_processor()}, {os.cpu_count()} cores, Python {platform.python_version()}, {versions}"


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
