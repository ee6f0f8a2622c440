from __future__ import annotations

from collections.abc import Iterator

import pytest
from walk.power import UnsyncedDisk

from understudy.core import files


@pytest.fixture(autouse=True)
def unsynced() -> Iterator[None]:
    """No power is cut here but where a test says so."""
    with files.using(UnsyncedDisk()):
        yield
