"""Compiled programs are kept in the user's cache folder, so that a second start is quick."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_folder() -> Path:
    """Where this system keeps what can be made again."""
    home = Path.home()
    if sys.platform == "win32":
        root = Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local"))
    elif sys.platform == "darwin":
        root = home / "Library" / "Caches"
    else:
        root = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return root / "understudy" / "xla"


def keep_compiled() -> None:
    """From now on, unless a person chose a folder; must run before JAX is imported."""
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(cache_folder()))
