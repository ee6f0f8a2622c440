"""Tests that need a program which a machine may lack: they skip, or fail where it is required."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def skip_without(program: str, reason: str) -> NoReturn:
    """Skips the test; fails it where `UNDERSTUDY_REQUIRE` (`chromium,sc2`) names the program."""
    names = {name.strip() for name in os.environ.get("UNDERSTUDY_REQUIRE", "").split(",")}
    if program in names:
        pytest.fail(f"UNDERSTUDY_REQUIRE names {program}, but {reason}", pytrace=False)
    pytest.skip(reason)
