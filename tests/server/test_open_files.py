"""The limit of open files is raised as far as it may be, and never lowered."""

from __future__ import annotations

import sys

import pytest

from understudy.web import listening

if sys.platform == "win32":
    pytest.skip("limits of POSIX", allow_module_level=True)

import resource


class Limits:
    """`resource`, without touching this process."""

    def __init__(self, soft: int, hard: int) -> None:
        self.now = (soft, hard)
        self.refuses = False

    def get(self, kind: int) -> tuple[int, int]:
        assert kind == resource.RLIMIT_NOFILE
        return self.now

    def set(self, kind: int, limits: tuple[int, int]) -> None:
        assert kind == resource.RLIMIT_NOFILE
        if self.refuses:
            raise ValueError("current limit exceeds maximum limit")
        self.now = limits


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> Limits:
    one = Limits(256, 4096)
    monkeypatch.setattr(resource, "getrlimit", one.get)
    monkeypatch.setattr(resource, "setrlimit", one.set)
    return one


@pytest.mark.parametrize(
    ("before", "wanted", "allowed", "after"),
    [
        ((256, 4096), 1256, 1256, (1256, 4096)),
        ((256, 512), 1256, 512, (512, 512)),
        ((256, resource.RLIM_INFINITY), 1256, 1256, (1256, resource.RLIM_INFINITY)),
        ((2048, 4096), 1256, 1256, (2048, 4096)),
        ((resource.RLIM_INFINITY,) * 2, 1256, 1256, (resource.RLIM_INFINITY,) * 2),
    ],
)
def test_as_many_as_there_may_be(
    limits: Limits, before: tuple[int, int], wanted: int, allowed: int, after: tuple[int, int]
) -> None:
    limits.now = before
    assert listening.allow(wanted) == allowed
    assert limits.now == after


def test_a_system_that_refuses_leaves_it_as_it_was(limits: Limits) -> None:
    limits.refuses = True
    assert listening.allow(1256) == 256
