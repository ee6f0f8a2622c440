"""Checkouts to test with: the stand-in always, the real one where AI2_HOME names it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from understudy.adapters.ai2.checkout import HOME
from understudy.adapters.ai2.stand_in import write_stand_in


@pytest.fixture(scope="session")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ai2") / "stand_in"
    write_stand_in(folder)
    return folder


@pytest.fixture(params=["stand_in", "checkout"])
def home(request: pytest.FixtureRequest, stand_in: Path) -> Path:
    if request.param == "stand_in":
        return stand_in
    if not os.environ.get(HOME):
        pytest.skip(f"{HOME} names no checkout of the tournament")
    return Path(os.environ[HOME])
