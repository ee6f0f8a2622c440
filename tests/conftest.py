"""One maths thread a worker, one cache of compiled programs for all, and no test by the clock."""

from __future__ import annotations

import importlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser

settings.register_profile("patient", deadline=None)  # a busy machine is no failure
settings.load_profile("patient")

# Before JAX is imported anywhere: two workers with two threads each would only fight.
os.environ["NPROC"] = "1"
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
_TESTS = Path(__file__).parent
_ROOT = _TESTS.parent
_CACHE = _ROOT / ".pytest_cache" / "xla"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(_CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
# Most of a first run is compiling programs that run for milliseconds. Without LLVM's optimisations
# that takes two thirds of the time, and with XLA's older emitters of loops, which write LLVM IR at
# once instead of lowering each fusion through MLIR, half of what is left. XLA's passes over a
# program (fusion, barriers, layouts) stay. With XLA_FLAGS= all is as users have it.
os.environ.setdefault(
    "XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
)

# A shell starts what it puts into the background with Ctrl-C ignored, and children inherit that:
# the tests that interrupt a child would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_LONG = ("walk", "compat", "workers", "arena", "supervise", "run", "cli", "learner")
"""Folders whose tests take the longest, in the order in which they are started."""


@pytest.hookimpl(tryfirst=True)  # `--failed-first` and the like still have the last word
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Starts long tests first, so that no worker ends alone with one of them.

    Workers steal from the end of each other's list: what is split there are short tests, not the
    tests that share a training of half a minute.
    """

    def place(item: pytest.Item) -> int:
        folder = item.path.relative_to(_TESTS).parts[0]
        return _LONG.index(folder) if folder in _LONG else len(_LONG)

    items.sort(key=place)


@pytest.fixture(scope="module")
def benchmark() -> Iterator[Any]:
    """Imports a module of the benchmarks by name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(_ROOT / "benchmarks"))
        yield importlib.import_module


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, for the tests of one module: tests of others may call `asyncio.run`."""
    from browser import launched

    with launched() as chromium:
        yield chromium


@pytest.fixture
def fresh_code(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No custom games, bots or user's modules at the start, as in a new process, and none left."""
    import sys

    from understudy.core import user_code
    from understudy.games import catalog

    monkeypatch.setattr(catalog, "_CUSTOM", {})
    monkeypatch.setattr(catalog, "_ADDED_BOTS", {})
    monkeypatch.setattr(user_code, "_LOADED", {})
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and "pytest-" in str(
            sys.modules[name].__file__
        ):
            del sys.modules[name]
