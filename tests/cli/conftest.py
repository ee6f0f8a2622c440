from __future__ import annotations

from pathlib import Path

import pytest

from .calling import lockstep


@pytest.fixture(scope="session")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder with six matches and three versions. Only for looking at."""
    here = tmp_path_factory.mktemp("played")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        called = lockstep("run", "--seed", 3, matches=6)
        assert called.code == 0, called.err
    return here / "run"
