"""What must hold in every run: random records, with overlap, losses and a person's words."""

from __future__ import annotations

import random
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.core.statistics import STAKES
from understudy.gates.promotion import roles
from understudy.gates.promotion.records import Assigned, Ordered, Paired, Resolved

from .promotion_worlds import HASTY, Story, plain, random_world, slow_evidence

SEEDS = st.integers(0, 10**6)


@settings(max_examples=15)
@given(SEEDS)
def test_records_in_any_pieces_give_the_same_state_and_verdicts(seed: int) -> None:
    story, rng = random_world(seed), random.Random(seed)
    state, verdicts = roles.fold(roles.PromotionState(), story.log)
    assert plain(state) == plain(story.state)
    assert verdicts == story.verdicts
    pieces, seen, start = roles.PromotionState(), list[roles.PromotionVerdict](), 0
    while start < len(story.log):
        end = start + rng.randint(1, 60)
        pieces, more = roles.fold(pieces, story.log[start:end])
        seen, start = seen + more, end
    assert plain(pieces) == plain(story.state)
    assert seen == story.verdicts


def test_the_random_worlds_see_every_verdict() -> None:
    kinds = Counter(one.kind for seed in range(60) for one in random_world(seed).verdicts)
    assert set(kinds) == set(roles.VerdictKind.__args__)  # type: ignore[attr-defined]


def most_evidence(story: Story, number: int, *, until: int) -> float:
    """The most evidence that a test ever had, by definition, from the log alone."""
    endings = dict[int, Resolved]()
    pairs = list[tuple[float, float]]()
    for sequence, record in story.log:
        if isinstance(record, Resolved):
            endings.setdefault(record.order, record)
        elif isinstance(record, Paired) and record.test == number and sequence <= until:
            pairs += zip(record.canary, record.incumbent, strict=True)
    capital, most = [1.0] * len(STAKES), 1.0
    for canary, incumbent in pairs:
        factors = (1.0 + stake * (canary - incumbent) for stake in STAKES)
        capital = [one * factor for one, factor in zip(capital, factors, strict=True)]
        most = max(most, sum(capital) / len(capital))
    mine = [
        (record, endings[sequence])
        for sequence, record in story.log
        if isinstance(record, Assigned)
        and record.test == number
        and record.arm != "holdout"
        and sequence <= until
        and sequence in endings
        and endings[sequence].ending != "void"
    ]
    looks = slow_evidence(
        [float(coin.arm == "canary") for coin, _ in mine],
        [coin.share for coin, _ in mine],
        [ending.result for _, ending in mine],
        [coin.stratum for coin, _ in mine],
    )
    return max([most, *looks])


@settings(max_examples=15)
@given(SEEDS)
def test_practice_changes_nothing_but_practice(seed: int) -> None:
    """Its matches are exchanged for void ones, which count for nothing at all."""
    story = random_world(seed)
    practice = {
        number
        for number, record in story.log
        if isinstance(record, Assigned) and record.arm == "practice"
    }
    without = [
        (number, Assigned(match="x", arm="incumbent", version=0))
        if number in practice
        else (number, Resolved(order=record.order, ending="void"))
        if isinstance(record, Resolved) and record.order in practice
        else (number, record)
        for number, record in story.log
    ]
    state, verdicts = roles.fold(roles.PromotionState(), without)
    for name in ("test", "recheck", "reigns", "records", "roles", "cool_down", "harmful"):
        assert plain(getattr(state, name)) == plain(getattr(story.state, name)), name
    others, all_others = (
        [one for one in told if one.kind not in ("practising", "suspended")]
        for told in (verdicts, story.verdicts)
    )
    assert others == all_others
    assert story.state.practice.begun == bool(practice)


@settings(max_examples=15)
@given(SEEDS)
def test_no_version_becomes_champion_without_evidence_or_a_persons_word(seed: int) -> None:
    story = random_world(seed)
    records = dict(story.log)
    for verdict in story.verdicts:
        if verdict.kind == "promoted":
            word = records[verdict.sequence]
            approved = isinstance(word, Ordered) and word.order == "approve"
            if not (approved and word.version == verdict.version):  # type: ignore[union-attr]
                most = most_evidence(story, verdict.test, until=verdict.sequence)
                assert most >= 1.0 / HASTY.alpha - 1e-9
    # A champion comes by a promotion, or by the rollback of the one after it.
    promoted = {one.version for one in story.verdicts if one.kind == "promoted"}
    state = roles.PromotionState()
    for record in story.log:
        state, _ = roles.fold(state, [record])
        assert state.champion is None or state.champion in promoted


@settings(max_examples=15)
@given(SEEDS)
def test_no_version_is_tested_twice_and_a_pause_is_kept(seed: int) -> None:
    story = random_world(seed)
    tested = [one.version for one in story.verdicts if one.kind == "nominated"]
    assert len(tested) == len(set(tested)) and 0 not in tested
    state = roles.PromotionState()
    for sequence, record in story.log:
        paused = state.is_paused
        state, verdicts = roles.fold(state, [(sequence, record)])
        if paused and state.is_paused and not isinstance(record, Ordered):
            assert not {"promoted", "nominated"} & {one.kind for one in verdicts}
