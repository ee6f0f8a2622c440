"""Snapshots on disk: whole, checked, and thinned so that early strategies stay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy.makers import TRANSFORMER, spec_of

from understudy.core import files
from understudy.core.errors import FileFormatError
from understudy.core.opponents import name_of, steps_of
from understudy.league.pool import Pool, Snapshot, leaver
from understudy.policy import weights as weight_files

from .makers import SPEC, weights


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    pool = Pool(tmp_path / "league", SPEC)
    snapshot = pool.save(65536, weights(1))
    assert (snapshot.name, pool.names()) == ("step-65536", ["step-65536"])
    assert (tmp_path / "league" / "step-000065536.npz").is_file()
    assert weight_files.encode(pool.load(snapshot)) == weight_files.encode(weights(1))


def test_what_was_changed_or_lost_is_a_clear_error(tmp_path: Path) -> None:
    pool = Pool(tmp_path, SPEC)
    snapshot = pool.save(100, weights(1))
    path = pool.path(100)
    path.write_bytes(weight_files.encode(weights(2)))
    with pytest.raises(FileFormatError, match=r"step-000000100\.npz: does not match the checksum"):
        pool.load(snapshot)
    path.unlink()
    for look in (lambda: pool.load(snapshot), lambda: pool.check([snapshot])):
        with pytest.raises(FileFormatError, match=r"step-000000100\.npz: this snapshot is missing"):
            look()


def test_what_does_not_fit_or_is_not_finite_is_refused(tmp_path: Path) -> None:
    pool = Pool(tmp_path, SPEC)
    snapshot = pool.save(100, weights())
    with pytest.raises(FileFormatError, match="does not fit the network"):
        Pool(tmp_path, spec_of(TRANSFORMER)).load(snapshot)
    broken = replace(weights(), obs_mean=np.full(len(SPEC.features), np.nan, np.float32))
    with pytest.raises(FileFormatError, match="not finite"):
        pool.load(pool.save(200, broken))


def test_a_sweep_leaves_what_is_kept_and_what_is_not_ours(tmp_path: Path) -> None:
    pool = Pool(tmp_path / "none", SPEC)
    assert (pool.names(), pool.sweep([])) == ([], [])
    pool = Pool(tmp_path, SPEC)
    for steps in (2_000_000_000, 100, 200):
        pool.save(steps, weights())
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    (tmp_path / f"{files.TEMPORARY}1-2").write_bytes(b"half")
    assert pool.names() == ["step-100", "step-200", "step-2000000000"]
    assert pool.sweep(["step-200"]) == ["step-100", "step-2000000000"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.txt", "step-000000200.npz"]


@given(steps=st.integers(0, 10**15))
def test_names(steps: int) -> None:
    assert steps_of(name_of(steps)) == steps
    assert Snapshot(steps, "").name == name_of(steps)


@pytest.mark.parametrize("name", ["based", "step-", "step-x", "step-1.5", "step-007", "learner"])
def test_what_is_no_snapshot(name: str) -> None:
    assert steps_of(name) is None


@given(count=st.integers(1, 300), most=st.integers(2, 20), gap=st.integers(1, 1000))
def test_a_full_pool_keeps_first_and_last_and_lies_evenly(count: int, most: int, gap: int) -> None:
    kept: list[int] = []
    for index in range(count):
        kept.append(gap * (index + 1))
        if len(kept) > most:
            kept.pop(leaver(kept))
    assert len(kept) == min(count, most)
    assert kept == sorted(kept)
    assert (kept[0], kept[-1]) == (gap, gap * count)
    if most > 3 and count > most:
        # No gap is more than a few times what it would be if all were even.
        even = (count - 1) / (most - 1)
        assert np.diff(kept).max() <= 3 * gap * even + gap


def test_of_two_the_newer_stays() -> None:
    assert leaver([100, 200]) == 0
