"""The league: keeps, rates and draws, and goes on after a restore as if nothing had happened."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from understudy.core.errors import ConfigError, FileFormatError, InputError
from understudy.league.league import REMEMBERED, League
from understudy.league.ratings import ORIGIN, Counts, Rating
from understudy.league.state import LEARNER, LeagueState, decode, encode
from understudy.policy import weights as weight_files

from .makers import ANCHORS, league, weights

WINNING: dict[str, Counts] = {"weak": (10, 0, 0), "middling": (9, 0, 1)}
LOSING: dict[str, Counts] = {"weak": (1, 1, 8), "middling": (0, 0, 10)}


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def test_snapshots_are_due_every_so_many_steps(tmp_path: Path) -> None:
    one = league(tmp_path, save_freq=50_000)
    assert [steps for steps in range(0, 200_000, 32_768) if _offered(one, steps)] == [
        65_536, 131_072, 196_608,
    ]  # fmt: skip  # rounded up to whole iterations
    assert one.names == ["step-65536", "step-131072", "step-196608"]


def _offered(one: League, steps: int) -> bool:
    due = one.due(steps)
    if due:
        assert one.offer(steps, weights()).kept
    return due


def test_a_snapshot_is_the_learner_of_its_moment(tmp_path: Path) -> None:
    one = league(tmp_path)
    one.note(WINNING)
    verdict = one.offer(100, weights(1))
    assert (verdict.name, verdict.kept, verdict.left) == ("step-100", True, ())
    assert one.rating("step-100") == one.learner == one.rating(LEARNER)
    assert weight_files.encode(one.weights("step-100")) == weight_files.encode(weights(1))
    one.note({"strong": (30, 0, 0)})
    assert one.learner.mu > one.rating("step-100").mu  # only the learner played
    with pytest.raises(ConfigError, match=r"no snapshot 'step-10' \(step-100 to step-100\)"):
        one.weights("step-10")
    with pytest.raises(InputError, match="step-100"):
        one.offer(100, weights())


def test_force_keeps_all_and_selective_only_what_is_better(tmp_path: Path) -> None:
    forced, selective = league(tmp_path / "a"), league(tmp_path / "b", mode="selective")
    for one in (forced, selective):
        one.note(WINNING)
        assert one.offer(100, weights()).kept  # the first is better than nobody
        one.note(LOSING)
    assert forced.offer(200, weights()).kept
    refused = selective.offer(200, weights())
    assert not refused.kept and "not surely above step-100" in refused.why
    assert files(tmp_path / "b") == ["step-000000100.npz"]
    assert not selective.due(299) and selective.due(300)  # asked again after as many steps
    for _ in range(8):
        selective.note(WINNING)
    assert selective.offer(300, weights()).kept
    assert selective.names == ["step-100", "step-300"]


def test_a_file_goes_only_after_the_version_without_it_is_committed(tmp_path: Path) -> None:
    one = league(tmp_path, max_saved=2)
    one.offer(100, weights(1))
    one.offer(200, weights(2))
    one.encode()
    assert one.delete_unlisted() == []
    assert one.offer(300, weights(3)).left == ("step-200",)  # first and last stay
    assert one.names == ["step-100", "step-300"]
    # Not committed yet: the newest version still lists step-200.
    assert one.delete_unlisted() == [] and len(files(tmp_path)) == 3
    one.encode()
    assert one.delete_unlisted() == ["step-200"]
    assert files(tmp_path) == ["step-000000100.npz", "step-000000300.npz"]


def test_a_pool_that_is_allowed_less_gets_smaller(tmp_path: Path) -> None:
    one = league(tmp_path, max_saved=5)
    for steps in range(100, 600, 100):
        one.offer(steps, weights())
    fewer = league(tmp_path, max_saved=2)
    fewer.restore(one.encode())
    left = fewer.offer(600, weights()).left
    assert sorted(left) == ["step-200", "step-300", "step-400", "step-500"]
    assert fewer.names == ["step-100", "step-600"]


def test_anchors_never_move(tmp_path: Path) -> None:
    one = league(tmp_path)
    for results in (WINNING, LOSING, {"strong": (30, 0, 0)}) * 5:
        one.note(results)
    assert {name: one.rating(name) for name in ANCHORS} == ANCHORS
    assert one.rating("nobody knows") == Rating()
    one.note({"stranger": (0, 0, 20)})
    assert one.rating("stranger").mu > 25.0  # not an anchor: it is rated as well


def test_an_anchor_alone_is_the_origin_whatever_an_older_program_wrote(tmp_path: Path) -> None:
    one = league(tmp_path)
    one.restore(encode(LeagueState(anchors={"victim": Rating()})))
    assert one.rating("victim") == ORIGIN
    one.restore(encode(LeagueState(anchors=dict.fromkeys(("a", "b"), Rating(7.0, 3.0)))))
    assert one.rating("a") == one.rating("b") == Rating(7.0, 3.0)


def test_a_league_of_an_older_program_goes_on_with_what_it_knew(tmp_path: Path) -> None:
    one = league(tmp_path)
    one.note(WINNING)
    one.offer(100, weights())
    old = msgspec.json.decode(one.encode())
    assert old.pop("trend") and old.pop("covariance")
    back = league(tmp_path)
    back.restore(msgspec.json.encode(old))
    assert back.learner == one.learner and back.rating("step-100") == one.rating("step-100")
    back.note({"strong": (0, 0, 30), "step-100": (5, 0, 5)})
    assert back.rating("step-100").mu < one.rating("step-100").mu  # they were too high together
    again = league(tmp_path)
    again.restore(back.encode())
    assert again.encode() == back.encode()


def test_who_beats_us_lately_is_met_more(tmp_path: Path) -> None:
    one = league(tmp_path, sampler="prioritised")
    assert one.draw(0.5) is None
    for steps in (100, 200, 300):
        one.offer(steps, weights())
    for _ in range(20):
        one.note({"step-100": (5, 0, 0), "step-200": (0, 1, 4)})
    assert one.win_rate("step-200") < one.win_rate("step-300") == 0.5 < one.win_rate("step-100")
    drawn = [one.draw(uniform) for uniform in np.linspace(0.0, 0.999, 500)]
    met = [drawn.count(name) for name in one.names]
    assert met[1] > met[2] > met[0] > 0
    for _ in range(400):
        one.note({})
    assert one.win_rate("step-200") == pytest.approx(0.5, abs=0.2)  # long ago: worth a look again


def test_who_left_is_still_rated_for_a_while_and_nothing_is_lost(tmp_path: Path) -> None:
    one = league(tmp_path, max_saved=2)
    one.offer(1, weights())
    one.offer(2, weights())
    one.offer(3, weights())
    one.note({"step-2": (3, 1, 0)})  # a match that was not over yet
    assert one.rating("step-2").mu < one.learner.mu
    for steps in range(4, 4 + REMEMBERED):
        one.offer(steps, weights())
        one.note(dict.fromkeys(one.names, (1, 0, 0)))
    one.note({"step-2": (0, 0, 5)})  # so late that nobody knows it any more
    state = decode(one.encode())
    assert state.gone.counts == (3, 1, 5)
    assert len(state.ratings) == len(state.left) + 2 == REMEMBERED + 2


def test_results_that_cannot_be_are_refused(tmp_path: Path) -> None:
    one = league(tmp_path)
    before = one.encode()
    with pytest.raises(InputError, match="weak"):
        one.note({"middling": (1, 0, 0), "weak": (1, -1, 0)})
    assert one.encode() == before


def live(one: League, rng: np.random.Generator, first: int, last: int) -> list[str]:
    """Iterations of a made-up run; who was drawn."""
    drawn: list[str] = []
    for iteration in range(first, last):
        who = [name for _ in range(3) if (name := one.draw(rng.random()))]
        drawn += who
        opponents = {*ANCHORS, *who}
        one.note({name: tuple(rng.integers(0, 4, 3).tolist()) for name in sorted(opponents)})
        if one.due(40 * iteration):
            one.offer(40 * iteration, weights(iteration))
        if iteration % 7 == 0:
            one.encode()
            one.delete_unlisted()
    return drawn


@pytest.mark.parametrize("sampler", ["prioritised", "recent"])
def test_a_restored_league_goes_on_as_if_it_had_never_stopped(tmp_path: Path, sampler: str) -> None:
    settings = {"max_saved": 4, "sampler": sampler, "recent": 2, "mode": "force"}
    whole = league(tmp_path / "whole", **settings)
    drawn = live(whole, np.random.default_rng(5), 1, 40)

    rng = np.random.default_rng(5)
    stopped = league(tmp_path / "parts", **settings)
    parts = live(stopped, rng, 1, 23)
    kept = stopped.encode()
    again = League(stopped._config, tmp_path / "parts", stopped._pool._spec, {})
    again.restore(kept)
    assert again.encode() == kept  # byte for byte
    parts += live(again, rng, 23, 40)
    assert parts == drawn
    assert again.encode() == whole.encode()


def test_going_back_to_an_older_version_goes_on_without_what_left_since(tmp_path: Path) -> None:
    one = league(tmp_path, max_saved=3)
    for steps in (100, 200, 300):
        one.offer(steps, weights(steps))
    older = one.encode()
    one.offer(400, weights(400))
    one.encode()
    assert one.delete_unlisted() == ["step-200"]
    (tmp_path / "step-000000300.npz").write_bytes(b"of another branch")
    back = league(tmp_path, max_saved=3)
    with pytest.raises(FileFormatError, match="step-000000200"):
        back.restore(older)
    assert back.restore(older, newest=False) == ["step-200", "step-300"]
    assert back.names == ["step-100"]
    back.note({"step-200": (1, 0, 0)})  # still known by its rating
    assert back.rating("step-200") != Rating()
    assert (tmp_path / "step-000000400.npz").is_file()  # the newest version lists it still


def test_a_snapshot_that_is_gone_is_missed_at_once(tmp_path: Path) -> None:
    one = league(tmp_path)
    one.offer(100, weights())
    kept = one.encode()
    (tmp_path / "step-000000100.npz").unlink()
    other = league(tmp_path)
    with pytest.raises(FileFormatError, match=r"step-000000100\.npz"):
        other.restore(kept)
    with pytest.raises(FileFormatError, match=r"version 7: league\.json"):
        other.restore(b"{}x", what="version 7: league.json")
    assert other.names == []  # nothing was half restored
