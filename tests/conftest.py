"""One maths thread a worker, and one cache of compiled programs for all of them."""

from __future__ import annotations

import os
from pathlib import Path

# Before JAX is imported anywhere: two workers with two threads each would only fight.
os.environ["NPROC"] = "1"
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
_CACHE = Path(__file__).parent.parent / ".pytest_cache" / "xla"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(_CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
