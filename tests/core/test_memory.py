from __future__ import annotations

import sys

import pytest

from understudy.core.memory import resident_mb


@pytest.mark.skipif(sys.platform != "linux", reason="it is known on Linux alone")
def test_memory_grows_by_what_is_held() -> None:
    before = resident_mb()
    held = bytearray(b"x") * (64 * 2**20)
    assert 60.0 < resident_mb() - before < 100.0
    assert len(held) == 64 * 2**20
