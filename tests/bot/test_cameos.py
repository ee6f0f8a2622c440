"""Cameos: windows of the policy inside matches of the rules, by a coin, within a share."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy import Understudy
from understudy.bot import cameos as cameo_module
from understudy.bot.cameos import COIN, LONGEST, SHORTEST, CameoBudget, MatchCameos
from understudy.core.errors import InputError
from understudy.experience.episode import Episode
from understudy.gates.promotion.records import Ordered
from understudy.policy.policy import Choice, Policy
from understudy.promotion.cameos import results_of
from understudy.telemetry import events as ev

from .minds import REMEMBERING, auto, episodes, journal, mind, publish, tried

SHARE = 0.25
"""Of the bots below: windows are frequent, and tests short."""


def simulated(lengths: list[int], *, share: float, seed: int) -> list[list[int]]:
    """The windows of matches of so many decisions, one after the other: 0, k or -k a decision."""
    budget, rng = CameoBudget(share), np.random.default_rng(seed)
    found = []
    for length in lengths:
        match = MatchCameos(budget, rng.spawn(1)[0])
        played = []
        for row in range(length):
            window = match.look(row, usable=True) if row >= match.turn else match.window
            played.append(0 if window is None else 1 if window.policy else -1)
        match.stop(length)
        marks = match.marks(length)
        kept = [0] * length if marks is None else marks.tolist()
        assert np.sign(kept).tolist() == played, "what is recorded is what was played"
        found.append(kept)
    return found


@settings(deadline=None, max_examples=60)
@given(
    lengths=st.lists(st.integers(1, 400), min_size=1, max_size=25),
    share=st.sampled_from([0.01, 0.05, 0.3, 0.99]),
    seed=st.integers(0, 2**32),
)
def test_the_share_is_never_exceeded(lengths: list[int], share: float, seed: int) -> None:
    marks = np.concatenate(simulated(lengths, share=share, seed=seed))
    decisions = np.arange(1, len(marks) + 1)
    assert (np.cumsum(marks > 0) <= share * decisions + 1e-9).all()


def test_windows_are_frequent_random_and_of_both_players() -> None:
    matches = simulated([90] * 4000, share=0.05, seed=1)
    marks = np.concatenate(matches)
    policy, control = (marks > 0).mean(), (marks < 0).mean()
    assert 0.045 < policy <= 0.05, "nearly all of the share is used"
    assert abs(policy - control) < 0.004, "and as much is control"
    begins, lengths = [], []
    for match in matches:
        for number in range(1, max(map(abs, match)) + 1):
            rows = np.flatnonzero(np.abs(match) == number)
            begins.append(rows[0])
            if rows[-1] < 89:
                lengths.append(len(rows))
    counts = np.bincount(lengths)
    assert set(lengths) == set(range(SHORTEST, LONGEST + 1))
    assert counts[SHORTEST : LONGEST + 1].min() > 0.5 * counts[SHORTEST : LONGEST + 1].mean()
    # Every moment is as likely, but for those that lie in a window.
    early, late = np.mean(np.array(begins) < 30), np.mean(np.array(begins) >= 60)
    assert abs(early - late) < 0.03


def test_the_same_seed_gives_the_same_windows() -> None:
    assert simulated([300] * 9, share=0.2, seed=5) == simulated([300] * 9, share=0.2, seed=5)
    assert simulated([300] * 9, share=0.2, seed=5) != simulated([300] * 9, share=0.2, seed=6)


def test_a_window_that_ends_early_gives_back_what_it_did_not_use() -> None:
    budget = CameoBudget(0.99)
    budget.add(10**6)
    match = MatchCameos(budget, np.random.default_rng(0))
    row = 0
    while (window := match.look(row, usable=True)) is None or not window.policy:
        row += 1
    before = budget._left
    match.end(row + 2)
    assert match.window is None
    assert budget._left == before + (window.end - row - 2)
    match.stop(row + 3)
    marks = match.marks(row + 3)
    assert marks is not None and (marks > 0).sum() == 2


def test_threads_that_share_a_budget_keep_the_share() -> None:
    budget, share, used = CameoBudget(0.3), 0.3, []

    def play(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(100):
            match = MatchCameos(budget, rng.spawn(1)[0])
            for row in range(100):
                if row >= match.turn:
                    match.look(row, usable=True)
            match.stop(100)
            marks = match.marks(100)
            used.append(0 if marks is None else int((marks > 0).sum()))

    threads = [threading.Thread(target=play, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(used) == 400 and 0 < sum(used) <= share * 40_000


# --- in a bot ------------------------------------------------------------------------------------


def rules(step: int) -> str:
    return ("left", "right", "wait")[step % 3]


def play(one: Understudy, decisions: int = 120, **options: Any) -> Any:
    with one.match(**options) as match:
        for step in range(decisions):
            action = match.decide([step % 7, 1.0], fallback=rules(step))
            last = match.last
            assert last.action == action and last.sampled == (last.probability is not None)
            assert last.sampled or action == rules(step)
        match.finish("victory")
    return match


def bot(root: Path, **changes: Any) -> Understudy:
    kept = {"cameo_share": SHARE, "practice_share": 0.0}
    return auto(root, **{**kept, **changes})


def windows(episode: Episode) -> list[int]:
    """Of each window: its decisions, below 0 for a control."""
    assert episode.cameos is not None
    last = int(np.abs(episode.cameos).max())
    found = [(episode.cameos == k).sum() - (episode.cameos == -k).sum() for k in range(1, last + 1)]
    return [int(one) for one in found]


def test_the_policy_draws_in_its_windows_and_the_rules_decide_everything_else(
    tmp_path: Path,
) -> None:
    with bot(tmp_path) as one:
        publish(one.folder, 1, champion=False)
        one.refresh()
        for _ in range(12):
            assert play(one).role == "rules"
    kept = episodes(tmp_path)
    with_windows = [episode for episode in kept if episode.cameos is not None]
    assert len(with_windows) > 6
    assert any(length > 0 for one in with_windows for length in windows(one))
    assert any(length < 0 for one in with_windows for length in windows(one))
    decided, disagreed = 0, 0
    for episode in kept:
        cameos = np.zeros(len(episode), np.int16) if episode.cameos is None else episode.cameos
        by_rules = np.arange(len(episode)) % 3
        np.testing.assert_array_equal(episode.sampled, cameos > 0)
        np.testing.assert_array_equal(
            episode.actions[~episode.sampled, 0], by_rules[~episode.sampled]
        )
        assert (episode.log_probs[episode.sampled] < 0).all() and (episode.versions == 1).all()
        assert not episode.log_probs[~episode.sampled].any()
        assert episode.values.all(), "the policy also looks on in control windows"
        assert episode.meta.cameo_coin == (0.0 if episode.cameos is None else COIN)
        decided += int(episode.sampled.sum())
        disagreed += int((episode.actions[:, 0] != by_rules).sum())
    assert 0 < disagreed <= decided <= SHARE * 12 * 120


@pytest.mark.parametrize(
    "why", ["no version", "share 0", "this match", "shadow", "a test", "pinned rules"]
)
def test_where_the_rules_are_promised_there_are_no_cameos(tmp_path: Path, why: str) -> None:
    share = 0.0 if why == "share 0" else SHARE
    if why == "shadow":
        one = mind(tmp_path, mode="shadow", settings={"promotion.cameo_share": SHARE})
    else:
        one = bot(tmp_path, cameo_share=share, first_share=0.5, share=0.5)
    with one:
        if why == "a test":
            tried(one, 1)
        elif why != "no version":
            publish(one.folder, 1, champion=False)
        if why == "pinned rules":
            one.folder.pointers.pin("champion", 0, by="a test")
        one.refresh()
        roles = [play(one, cameos=why != "this match").role for _ in range(12)]
    assert roles.count("rules") > 2
    for role, episode in zip(roles, episodes(tmp_path), strict=True):
        assert episode.cameos is None
        assert episode.sampled.any() == (role == "canary")


def test_a_holdout_of_the_rules_beside_a_champion_has_no_cameos(tmp_path: Path) -> None:
    with bot(tmp_path, holdout=0.5) as one:
        tried(one, 1)
        assert one.promotion is not None
        one.promotion.order(Ordered(order="approve", version=1))
        one.refresh()
        roles = [play(one).role for _ in range(10)]
    assert {"holdout", "champion"} == set(roles)
    assert all(episode.cameos is None for episode in episodes(tmp_path))


def test_no_tag_is_named_cameos(tmp_path: Path) -> None:
    with bot(tmp_path) as one, pytest.raises(InputError, match="cameos: expected True or False"):
        one.match(cameos="many")


def test_one_version_decides_a_whole_window(tmp_path: Path) -> None:
    with bot(tmp_path) as one:
        publish(one.folder, 1, champion=False)
        one.refresh()
        number = 1
        with one.match() as match:
            for step in range(300):
                match.decide([step % 7, 1.0], fallback=rules(step))
                if step % 10 == 0:
                    number += 1
                    publish(one.folder, number, champion=False)
                    one.refresh()
            match.finish("tie")
    (episode,) = episodes(tmp_path)
    assert episode.cameos is not None and len(windows(episode)) > 2
    for k in range(1, len(windows(episode)) + 1):
        assert len(set(episode.versions[np.abs(episode.cameos) == k])) == 1
    assert len(set(episode.versions)) > 15


def test_several_open_matches_share_one_budget(tmp_path: Path) -> None:
    with bot(tmp_path) as one:
        publish(one.folder, 1, champion=False)
        one.refresh()
        matches = [one.match() for _ in range(5)]
        by_policy = 0
        for step in range(400):
            for done, match in enumerate(matches, start=1):
                match.decide([step % 7, 1.0], fallback=rules(step))
                by_policy += match.last.sampled
                assert by_policy <= SHARE * (5 * step + done)
        for match in matches:
            match.finish("defeat")
    assert by_policy > 0.5 * SHARE * 2000


def test_features_that_are_not_finite_end_a_window(tmp_path: Path) -> None:
    with bot(tmp_path) as one:
        publish(one.folder, 1, champion=False)
        one.refresh()
        with one.match() as match:
            broken = []
            for step in range(900):
                ends = match.decisions > 2 and match.last.sampled and step % 3 == 0
                seen = [np.nan if ends else step % 7, 1.0]
                action = match.decide(seen, fallback=rules(step))
                if ends:
                    broken.append(step)
                    assert action == rules(step) and not match.last.sampled
            match.finish("tie")
    (episode,) = episodes(tmp_path)
    assert episode.cameos is not None and broken
    assert not episode.cameos[broken].any()
    lengths = [length for length in windows(episode) if length > 0]
    assert lengths and max(lengths) <= 3


@pytest.mark.parametrize("network", ["plain", "remembers"])
def test_a_version_that_fails_in_a_window_costs_no_match_and_has_no_other_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, network: str
) -> None:
    act = Policy.act

    def fails(self: Policy, obs: Any, memory: Any, **options: Any) -> Choice:
        if self.version == 1 and options.get("uniforms") is not None:
            raise ZeroDivisionError("of a layer")
        return act(self, obs, memory, **options)

    monkeypatch.setattr(Policy, "act", fails)
    changes = {"network": REMEMBERING} if network == "remembers" else {}
    with bot(tmp_path, **changes) as one:
        publish(one.folder, 1, champion=False)
        one.refresh()
        matches = [play(one) for _ in range(8)]
        publish(one.folder, 2, champion=False)
        one.refresh()
        for _ in range(6):
            play(one)
    assert not any(match.fault for match in matches), "it is the rules' match"
    kept = episodes(tmp_path)
    assert not any(episode.sampled.any() for episode in kept[:8])
    assert any(episode.sampled.any() for episode in kept[8:]), "another version has windows again"
    problems = [event.message for event in journal(tmp_path) if isinstance(event, ev.Problem)]
    assert problems == ["version 1 failed: it raised ZeroDivisionError: of a layer"]
    results = [event for event in journal(tmp_path) if isinstance(event, ev.MatchFinished)]
    assert [event.role for event in results] == ["rules"] * 14


@pytest.mark.parametrize("why", ["fails", "slow"])
def test_a_window_that_a_failure_ends_has_no_value_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    act, drawn = Policy.act, []

    def fourth_time(self: Policy, obs: Any, memory: Any, **options: Any) -> Choice:
        drawn.append(options.get("uniforms") is not None)
        if why == "fails" and sum(drawn) == 4:
            raise ZeroDivisionError("of a layer")
        return act(self, obs, memory, **options)

    monkeypatch.setattr(Policy, "act", fourth_time)
    # Every decision takes longer than a nanosecond, so the first one in the window ends it.
    with bot(tmp_path, slow_ms=1e-6 if why == "slow" else 50.0) as one:
        publish(one.folder, 1, champion=False)
        one.refresh()
        while not any(drawn):
            play(one)
    episode = episodes(tmp_path)[-1]
    assert episode.cameos is not None and windows(episode)[-1] == (3 if why == "fails" else 1)
    shown = results_of(episode, gamma=0.99)
    assert len(shown) == len(windows(episode)) - 1 and not any(one.policy for one in shown)


def test_a_refused_decision_in_a_window_changes_nothing(tmp_path: Path) -> None:
    with bot(tmp_path) as one:
        publish(one.folder, 1, champion=False)
        one.refresh()
        with one.match() as match:
            for step in range(500):
                with pytest.raises(InputError):
                    match.decide([1.0], fallback="left")
                with pytest.raises(InputError, match="needs fallback"):
                    match.decide([1.0, 2.0])
                match.decide([step % 7, 1.0], fallback=rules(step))
            match.finish("victory")
    (episode,) = episodes(tmp_path)
    assert len(episode) == 500 and episode.sampled.any()


def test_a_bot_of_the_same_seed_plays_the_same_cameos(tmp_path: Path) -> None:
    kept = []
    for name in ("a", "b"):
        with bot(tmp_path / name) as one:
            publish(one.folder, 1, champion=False)
            one.refresh()
            for _ in range(6):
                play(one)
        kept.append([episode.actions.tolist() for episode in episodes(tmp_path / name)])
    assert kept[0] == kept[1]


def test_a_match_may_have_more_windows_than_int16_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cameo_module, "_MOST_WINDOWS", 3)
    (marks,) = simulated([3000], share=0.5, seed=3)
    assert max(map(abs, marks)) == 3
