"""The cache of compiled programs in the user's cache folder, for a quick second start."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_folder() -> Path:
    """The cache folder of this system."""
    home = Path.home()
    if sys.platform == "win32":
        root = Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local"))
    elif sys.platform == "darwin":
        root = home / "Library" / "Caches"
    else:
        root = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return root / "understudy" / "xla"


def keep_compiled() -> None:
    """Turns the cache on, unless the environment names a folder. Call it before JAX is imported."""
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(cache_folder()))
