"""Every check that a finding can name has its section in docs/doctor.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from understudy.doctor import checks

PAGE = Path(__file__).parents[2] / "docs" / "doctor.md"


@pytest.mark.parametrize("part", ["training", "server", "promotion", "config", "resources"])
def test_every_check_has_a_section(part: str) -> None:
    code = Path(checks.__file__).with_name(f"{part}.py").read_text(encoding="utf-8")
    named = set(re.findall(r'(?:check=|_finding\()"([a-z-]+)"', code))
    sections = re.findall(r"^#+ ([a-z-]+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert named and named <= set(sections)
