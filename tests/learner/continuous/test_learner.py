from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from walk.toys import (
    SPEC,
    SetClock,
    check_registry,
    counts,
    head_tally,
    manifests,
    metas,
    open_run,
    problems,
    reasons,
    spool_of,
    tally_of,
)

from learner.toy_items import ToyItems, continuous, segment, settings, told
from understudy.core.arrays import NDArray
from understudy.core.errors import NotFinite
from understudy.experience.episode import Episode, Outcome
from understudy.gates.decision import OpenGate, Verdict
from understudy.learner.batch import Batch
from understudy.learner.continuous.items import cut
from understudy.learner.continuous.learner import ContinuousLearner
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import LEARNER, WEIGHTS
from understudy.telemetry import events


def run(root: Path, **values: object) -> tuple[RunFolder, SetClock]:
    clock = SetClock()
    return open_run(root, settings(**values), clock), clock


def arrive(folder: RunFolder, *numbers: int, **changes: Any) -> None:
    spool = spool_of(folder)
    assert isinstance(folder.clock, SetClock)
    for number in numbers:
        spool.put(segment(number, finished_at=folder.clock.time(), **changes))
        folder.clock.now += 1e-4  # names are in the order of time


def turns(mind: ContinuousLearner, clock: SetClock, count: int) -> None:
    """So many seconds, a turn each."""
    for _ in range(count):
        while mind.work():
            pass
        clock.advance(1.0)


def champion(folder: RunFolder) -> int:
    record = folder.pointers.read("champion")
    assert record is not None
    return record.version


def ingested(folder: RunFolder) -> Counter[str]:
    return Counter(key for manifest in manifests(folder) for key in manifest.ingested)


# --- samples per insert --------------------------------------------------------------------------


def test_without_new_experience_it_waits_rather_than_memorise(tmp_path: Path) -> None:
    folder, clock = run(tmp_path, continuous__samples_per_insert=3.0, learner__epochs=2)
    toy = ToyItems()
    mind = continuous(folder, toy)
    arrive(folder, *range(5))  # ten items
    turns(mind, clock, 500)
    shown = sum(toy.tally.sampled.values())
    assert 2 * shown <= 3 * 10, "both passes over a batch count"
    assert 2 * shown > 3 * 10 - 2 * 4, "and no less than it may"
    assert len(told(folder, events.WaitingForExperience)) == 1
    assert mind.samples_per_insert <= 3.0
    batches = len(toy.rates)
    arrive(folder, 5, 6)
    turns(mind, clock, 500)
    assert len(toy.rates) > batches
    assert 2 * sum(toy.tally.sampled.values()) <= 3 * 14
    assert len(told(folder, events.WaitingForExperience)) == 2


def test_a_batch_every_interval_and_not_more_often(tmp_path: Path) -> None:
    folder, clock = run(tmp_path, continuous__training_interval_s=5.0)
    toy = ToyItems()
    mind = continuous(folder, toy)
    arrive(folder, *range(20))
    mind.work()
    assert mind.wait_s() == pytest.approx(5.0)
    turns(mind, clock, 20)
    assert len(toy.rates) == 4


@pytest.mark.parametrize("promotion", ["auto", "latest"])
def test_a_run_that_serves_its_newest_version_again_is_not_bound_to_a_champion(
    tmp_path: Path, promotion: str
) -> None:
    """Its log of promotion is still there."""
    folder, clock = run(tmp_path, live__promotion=promotion, learner__max_version_lag=0)
    folder.promotion.mkdir()
    toy = ToyItems()
    mind = continuous(folder, toy)
    arrive(folder, *range(4))
    turns(mind, clock, 1)
    assert mind.version > 0
    arrive(folder, *range(4, 20), versions=np.zeros(4, np.int32))
    turns(mind, clock, 3)
    assert set(toy.by_evidence) == {promotion == "auto"}
    assert toy.batches[-1].on_policy.any() == (promotion == "auto"), "by age, or by distance"


def test_with_too_few_items_it_waits(tmp_path: Path) -> None:
    folder, clock = run(tmp_path, continuous__min_batch=4)
    toy = ToyItems()
    mind = continuous(folder, toy)
    arrive(folder, 0)
    turns(mind, clock, 3)
    assert toy.rates == [] and folder.versions.numbers() == []
    assert mind.wait_s() == float("inf")
    assert counts(tmp_path) == (1, 0, 0), "not learned from: it stays in the buffer"
    arrive(folder, 1)
    turns(mind, clock, 1)
    assert len(toy.rates) == 1 and counts(tmp_path) == (0, 2, 0)


def test_a_restart_and_a_rollback_allow_no_sample_more(tmp_path: Path) -> None:
    folder, clock = run(tmp_path, continuous__samples_per_insert=2.5)
    first = continuous(folder)
    arrive(folder, *range(6))
    turns(first, clock, 40)
    for _ in range(3):
        toy = ToyItems()
        again = continuous(folder, toy)
        assert again.samples_per_insert >= first.samples_per_insert
        folder.pointers.pin("champion", 1, by="rollback")
        turns(again, clock, 40)
        assert toy.rates == []
        folder.pointers.release("champion")
    arrive(folder, 6, 7)
    turns(again, clock, 40)
    every: Counter[str] = Counter()
    for manifest in manifests(folder):
        before = tally_of(folder, manifest.parent).sampled if manifest.parent else {}
        every.update(Counter(tally_of(folder, manifest.number).sampled) - Counter(before))
    assert 0 < sum(every.values()) <= 2.5 * 16


def test_what_a_version_says_of_samples_is_never_less_than_happened(tmp_path: Path) -> None:
    folder, clock = run(tmp_path, continuous__samples_per_insert=4.0)
    mind = continuous(folder)
    arrive(folder, *range(3), length=7)  # four items each
    turns(mind, clock, 9)
    head = manifests(folder)[-1]
    sampled = head_tally(folder).sampled
    assert {key: entry.samples for key, entry in head.replay.items()} == {
        key: -(-sampled[key] // 4) for key in ("0", "1", "2")
    }
    assert head.counters["items"] == 12
    assert head.counters["samples"] == sum(sampled.values())


def test_nothing_is_learned_from_when_it_is_too_old(tmp_path: Path) -> None:
    folder, clock = run(
        tmp_path,
        continuous__max_age_s=60.0,
        continuous__samples_per_insert=1000.0,
        learner__publish_interval_s=50.0,
    )
    toy = ToyItems()
    mind = continuous(folder, toy)
    for number in range(12):
        arrive(folder, number)
        if number == 6:  # came in late: as old as it is, not as it came
            spool_of(folder).put(segment(99, finished_at=clock.time() - 45.0))
        seen = len(toy.batches)
        turns(mind, clock, 20)
        for batch in toy.batches[seen:]:
            shown = set(batch.obs[0, batch.valid[0] > 0, 1].astype(int))
            assert shown <= {*range(number - 3, number + 1), 99}
    late = [99 in batch.obs[0, :, 1] for batch in toy.batches]
    assert 0 < sum(late) <= 16
    mind.publish_rest()
    mind = continuous(folder, toy)  # what is held again is as old as before
    clock.advance(3600.0)
    seen = len(toy.batches)
    turns(mind, clock, 5)
    assert len(toy.batches) == seen


def test_the_oldest_leave_when_it_is_full(tmp_path: Path) -> None:
    folder, clock = run(tmp_path, continuous__capacity=8)
    toy = ToyItems()
    mind = continuous(folder, toy)
    arrive(folder, *range(20))
    turns(mind, clock, 10)
    assert set(toy.tally.sampled) <= {"16", "17", "18", "19"}
    assert set(manifests(folder)[-1].replay) == {"16", "17", "18", "19"}
    assert set(ingested(folder)) == {str(number) for number in range(20)}


# --- publishing, and what a person did -----------------------------------------------------------


def test_updating_is_not_publishing(tmp_path: Path) -> None:
    folder, clock = run(tmp_path, learner__publish_interval_s=3.0)
    toy = ToyItems()
    mind = continuous(folder, toy)
    arrive(folder, *range(20))
    turns(mind, clock, 7)
    assert (len(toy.rates), len(folder.versions.numbers())) == (7, 3)
    clock.advance(0.0)
    mind.work()
    mind.publish_rest()
    assert head_tally(folder).sampled == toy.tally.sampled
    check_registry(folder)


def test_what_is_published_is_archived_and_named_once(tmp_path: Path) -> None:
    folder, clock = run(tmp_path)
    mind = continuous(folder)
    for number in range(0, 40, 4):
        arrive(folder, *range(number, number + 4))
        turns(mind, clock, 2)
    spool_of(folder).put(segment(7))
    turns(mind, clock, 3)
    assert ingested(folder) == Counter(map(str, range(40)))
    assert counts(tmp_path)[:2] == (0, 40)
    assert all(reason.startswith("a copy") for reason in reasons(folder).values())


def test_after_a_persons_rollback_learning_goes_on_from_there(tmp_path: Path) -> None:
    folder, clock = run(tmp_path)
    toy = ToyItems()
    mind = continuous(folder, toy)
    arrive(folder, *range(8))
    turns(mind, clock, 4)
    folder.pointers.pin("champion", 2, by="rollback")
    turns(mind, clock, 2)
    assert manifests(folder)[4].parent == 2
    assert champion(folder) == 2, "pinned"
    assert ingested(folder) == Counter(map(str, range(8)))


# --- the gate ------------------------------------------------------------------------------------


class Moody:
    """Sends what is above the mark."""

    name = "moody"

    def __init__(self, mark: float) -> None:
        self.mark = mark

    def evaluate(self, observation: NDArray, action: NDArray) -> Verdict:
        return Verdict.of(float(observation[0]), threshold=self.mark)


def gated(folder: RunFolder, *numbers: int) -> None:
    """Of four decisions the gate sent the later two; the first was explored."""
    arrive(
        folder,
        *numbers,
        sent=np.array([True, False, True, True]),
        explored=np.array([True, False, False, False]),
        expected=np.arange(4, dtype=np.float32),
    )


def test_where_the_gate_agrees_its_simulation_is_mixed_in(tmp_path: Path) -> None:
    folder, clock = run(tmp_path, continuous__length=4, continuous__wait_multiplier=0.5)
    toy = ToyItems()
    gated(folder, *range(4))
    turns(continuous(folder, toy, Moody(1.5)), clock, 1)
    rewards = toy.batches[0].rewards[:4, 0]
    np.testing.assert_allclose(rewards, [1.0, 0.5, 0.7 + 0.3, 0.7 + 0.3], atol=1e-6)
    assert toy.batches[0].valid[:4].all()
    assert told(folder, events.ContinuousTrained)[0].agreement == 1.0


def test_where_it_does_not_nothing_is_learned_and_the_drift_is_told(tmp_path: Path) -> None:
    folder, clock = run(tmp_path, continuous__length=4)
    toy = ToyItems()
    gated(folder, *range(4))
    turns(continuous(folder, toy, Moody(2.5)), clock, 3)
    for batch in toy.batches:
        np.testing.assert_array_equal(batch.valid[:5, 0], [1, 1, 0, 1, 0])
        np.testing.assert_array_equal(batch.ongoing[:5, 0], [1, 1, 0, 0, 0])
    first = told(folder, events.ContinuousTrained)[0]
    assert first.agreement == pytest.approx(0.75)
    assert first.skipped == 4 * first.batches and first.steps == 12 * first.batches
    assert 0.0 <= first.utilisation <= 1.0 and first.buffer == 4
    assert first.step_share == 0.5


@pytest.mark.parametrize("gate", [None, OpenGate(), Moody(2.5)])
def test_without_a_gate_or_when_told_not_to_nobody_looks_again(tmp_path: Path, gate: Any) -> None:
    look = not isinstance(gate, Moody)
    folder, clock = run(tmp_path, continuous__length=4, continuous__revalidate=look)
    toy = ToyItems()
    gated(folder, *range(4))
    turns(continuous(folder, toy, gate), clock, 3)
    assert toy.batches[0].valid[:4].all()
    np.testing.assert_allclose(toy.batches[0].rewards[:4, 0], [1.0, 0.5, 1.0, 1.0])
    assert told(folder, events.ContinuousTrained)[0].agreement is None


def test_only_what_a_gate_judged_is_judged_again(tmp_path: Path) -> None:
    """Not the safe answer of an overloaded server, nor what was sent without an expectation; what
    was blocked for want of time was blocked."""
    folder, clock = run(tmp_path, continuous__length=4, continuous__actual_weight=0.5)
    toy = ToyItems()
    arrive(
        folder,
        *range(4),
        sampled=np.array([False, True, True, True]),
        sent=np.array([True, True, False, True]),
        explored=np.zeros(4, bool),
        expected=np.array([0.0, np.nan, np.nan, 3.0], np.float32),
    )
    turns(continuous(folder, toy, Moody(2.5)), clock, 1)
    batch = toy.batches[0]
    np.testing.assert_array_equal(batch.valid[:4, 0], [1, 1, 1, 1])
    np.testing.assert_allclose(batch.rewards[:4, 0], [1.0, 1.0, 0.5, 0.5 + 0.3])
    assert told(folder, events.ContinuousTrained)[0].agreement == 1.0


# --- when something goes wrong -------------------------------------------------------------------


def poisoned_by(*culprits: str) -> ToyItems:
    def meet(ids: Sequence[str]) -> None:
        if set(culprits) & set(ids):
            raise NotFinite("the loss is nan")

    return ToyItems(meet)


def test_nonsense_goes_back_to_the_last_version_slower(tmp_path: Path) -> None:
    folder, clock = run(tmp_path, learner__publish_interval_s=2.0, continuous__batch=8)
    toy = poisoned_by("9")
    mind = continuous(folder, toy)
    arrive(folder, *range(4))
    turns(mind, clock, 2)
    rate, kept = toy.rates[-1], head_tally(folder)
    toy.restored.clear()
    arrive(folder, 9)
    while not toy.restored:
        mind.work()
        clock.advance(1.0)
    assert toy.restored == [f"version {mind.version}"]
    assert toy.tally.sampled == head_tally(folder).sampled and kept.sampled
    assert mind.learning_rate == rate / 2.0
    (back,) = told(folder, events.RolledBack)
    assert (back.reason, back.to) == ("not finite", mind.version)
    assert champion(folder) == mind.version


@pytest.mark.parametrize("culprits", [{"3"}, {"0", "9"}])
def test_poison_is_set_aside_and_all_others_are_learned_from(
    tmp_path: Path, culprits: set[str]
) -> None:
    folder, clock = run(tmp_path, continuous__samples_per_insert=30.0)
    toy = poisoned_by(*culprits)
    arrive(folder, *range(10))
    turns(continuous(folder, toy), clock, 60)
    assert {meta.id for meta in metas(tmp_path / "quarantine")} == culprits
    assert all(reason.startswith("poison") for reason in reasons(folder).values())
    assert set(ingested(folder)) | culprits == set(map(str, range(10)))
    assert set(ingested(folder).values()) == {1}
    assert not (tmp_path / "suspects.json").exists()
    assert set(head_tally(folder).sampled) == set(map(str, range(10))) - culprits


def test_what_turns_bad_after_it_was_archived_is_not_sampled_again(tmp_path: Path) -> None:
    folder, clock = run(tmp_path, continuous__samples_per_insert=60.0)
    turned = False

    def meet(ids: Sequence[str]) -> None:
        if turned and "2" in ids:
            raise NotFinite("the loss is nan")

    toy = ToyItems(meet)
    mind = continuous(folder, toy)
    arrive(folder, *range(6))
    turns(mind, clock, 4)
    turned = True
    turns(mind, clock, 40)
    assert [meta.id for meta in metas(tmp_path / "quarantine")] == ["2"]
    assert "2" not in manifests(folder)[-1].replay
    assert counts(tmp_path) == (0, 5, 1)
    trusted = len(told(folder, events.RolledBack))
    turns(continuous(folder, toy), clock, 10)
    assert len(told(folder, events.RolledBack)) == trusted


def test_after_nonsense_the_normaliser_counts_what_it_had_counted_again(tmp_path: Path) -> None:
    folder, clock = run(tmp_path, learner__publish_interval_s=1e9)
    failing = False

    def meet(ids: Sequence[str]) -> None:
        if failing:
            raise NotFinite("the loss is nan")

    toy = ToyItems(meet)
    mind = continuous(folder, toy)
    arrive(folder, 0, 1)
    turns(mind, clock, 1)  # a version, since there was none
    arrive(folder, 2, 3)
    turns(mind, clock, 1)  # counted, in no version yet
    assert folder.versions.numbers() == [1]
    arrive(folder, 4)
    failing = True
    mind.work()
    assert set(toy.tally.ingested) == {"0", "1"}, "those of the version"
    failing = False
    turns(mind, clock, 3)
    assert toy.tally.ingested == dict.fromkeys("01234", 1)


def test_poison_is_not_counted_by_the_normaliser_again(tmp_path: Path) -> None:
    folder, clock = run(tmp_path, continuous__samples_per_insert=30.0)
    toy = poisoned_by("3")
    arrive(folder, *range(6))
    turns(continuous(folder, toy), clock, 60)
    assert toy.tally.ingested == dict.fromkeys("01245", 1)


class Counting(ToyItems):
    """Fails when the normaliser counts a large number, whatever is in the batch."""

    broken = False
    """It has counted one before, and fails when it counts anything."""

    def train_items(
        self, batch: Batch, *, new: Sequence[Episode], **options: Any
    ) -> tuple[dict[str, float], NDArray]:
        if any(self.broken or one.observations.max() >= 1e12 for one in new):
            raise NotFinite("the loss is nan")
        return super().train_items(batch, new=new, **options)


@pytest.mark.parametrize("items", [2, 0])
def test_what_only_the_normaliser_cannot_take_is_found_as_well(tmp_path: Path, items: int) -> None:
    """It need not be drawn, nor have anything to draw."""
    folder, clock = run(tmp_path, continuous__batch=2, continuous__samples_per_insert=30.0)
    mind = continuous(folder, Counting())
    arrive(folder, *range(3))
    turns(mind, clock, 3)
    arrive(folder, *range(10, 16))
    one = segment(30, finished_at=clock.time(), length=4 if items else 1)
    outcome = Outcome.TIE if items else Outcome.ABORTED
    meta = msgspec.structs.replace(one.meta, tags={"client": "web-7"}, outcome=outcome)
    one = replace(one, meta=meta)
    one.observations[0, 0] = 1e12
    assert len(cut(one, SPEC, length=2)["length"]) == items
    spool_of(folder).put(one)
    before = mind.version
    turns(mind, clock, 80)
    assert [meta.id for meta in metas(tmp_path / "quarantine")] == ["30"]
    (reason,) = reasons(folder).values()
    assert "client 'web-7': feature 'a' is 1e+12 in decision 0" in reason
    assert mind.version > before
    assert set(ingested(folder)) == {*map(str, range(3)), *map(str, range(10, 16))}
    assert not (tmp_path / "suspects.json").exists()


def test_nobody_is_condemned_for_what_a_version_counted_long_ago(tmp_path: Path) -> None:
    """A run that an absurd number stopped before there was a bound goes on under its normaliser."""
    folder, clock = run(tmp_path, continuous__samples_per_insert=30.0)
    toy = Counting()
    mind = continuous(folder, toy)
    arrive(folder, *range(4))
    turns(mind, clock, 3)
    toy.broken = True
    before = mind.version
    for number in range(4, 10):
        arrive(folder, number)
        turns(mind, clock, 2)
    assert counts(tmp_path)[2] == 0, "nothing is quarantined"
    assert mind.version > before
    assert set(ingested(folder)) == set(map(str, range(10)))
    assert len(told(folder, events.RolledBack)) == 1
    assert any("normaliser of version" in problem for problem in problems(folder))


def test_a_gate_that_fails_on_an_episode_makes_it_poison(tmp_path: Path) -> None:
    """An exception of the gate ends the learner; whoever starts next has to get past it."""
    folder, clock = run(tmp_path, continuous__samples_per_insert=100.0)

    class Fragile:
        name = "fragile"

        def evaluate(self, observation: NDArray, action: NDArray) -> Verdict:
            if observation[1] == 3:
                raise ZeroDivisionError
            return Verdict.of(1.0, threshold=0.0)

    gated(folder, *range(6))
    deaths = 0
    for _ in range(60):
        try:
            toy = ToyItems()
            turns(continuous(folder, toy, Fragile()), clock, 20)
            break
        except ZeroDivisionError:
            deaths += 1
    assert 0 < deaths < 60
    assert [meta.id for meta in metas(tmp_path / "quarantine")] == ["3"]
    assert set(head_tally(folder).sampled) == {"0", "1", "2", "4", "5"}


def test_after_a_persons_rollback_good_is_what_was_good_then(tmp_path: Path) -> None:
    folder, clock = run(tmp_path, continuous__entropy_floor=0.1)
    toy = ToyItems()
    mind = continuous(folder, toy)
    arrive(folder, *range(30))
    turns(mind, clock, 4)
    folder.pointers.pin("champion", 2, by="rollback")
    toy.entropy = 0.0
    turns(mind, clock, 5)
    (back,) = told(folder, events.RolledBack)
    assert (back.reason, back.to) == ("collapse", 2), "not 4, which the person went back from"


def test_batches_without_a_choice_make_no_version_good(tmp_path: Path) -> None:
    folder, clock = run(tmp_path, continuous__entropy_floor=0.1, continuous__max_age_s=50.0)
    toy = ToyItems()
    mind = continuous(folder, toy)
    arrive(folder, *range(4))
    turns(mind, clock, 2)
    clock.advance(60.0)
    toy.entropy = 0.0
    arrive(folder, *range(10, 14), legal=np.tile([True, False], (4, 1)))
    turns(mind, clock, 3)
    assert [manifest.counters["good"] for manifest in manifests(folder)] == [1, 2, 2, 2, 2]
    assert "entropy_share" not in manifests(folder)[-1].metrics
    assert told(folder, events.ContinuousTrained)[-1].entropy_share == pytest.approx(1.0)


def test_a_collapse_brings_the_last_good_version_back(tmp_path: Path) -> None:
    folder, clock = run(tmp_path, continuous__entropy_floor=0.1)
    toy = ToyItems()
    mind = continuous(folder, toy)
    arrive(folder, *range(30))
    turns(mind, clock, 3)
    rate, weight = toy.rates[-1], toy.entropy_weights[-1]
    toy.entropy = 0.15 * float(np.log(2.0))  # not what one would go back to, and no collapse yet
    turns(mind, clock, 2)
    toy.entropy = 0.05 * float(np.log(2.0))
    turns(mind, clock, 5)
    (back,) = told(folder, events.RolledBack)
    assert (back.reason, back.version, back.to, back.published) == ("collapse", 9, 3, 10)
    copy, good = manifests(folder)[9], manifests(folder)[2]
    assert copy.parent == 3
    assert all(copy.files[name] == good.files[name] for name in (WEIGHTS, LEARNER))
    assert champion(folder) == 10, "moved by the rule, and by nobody's pin"
    assert folder.pointers.read("champion").pinned is False  # type: ignore[union-attr]
    assert ingested(folder) == Counter(map(str, range(30)))
    toy.entropy = float(np.log(2.0))
    turns(mind, clock, 1)
    assert (toy.rates[-1], toy.entropy_weights[-1]) == (rate / 2.0, weight * 2.0)
    turns(continuous(folder, toy), clock, 1)
    assert (toy.rates[-1], toy.entropy_weights[-1]) == (rate / 2.0, weight * 2.0), "kept"


def test_one_batch_without_variety_is_no_collapse_and_no_choice_is_none(tmp_path: Path) -> None:
    folder, clock = run(tmp_path)
    toy = ToyItems()
    mind = continuous(folder, toy)
    arrive(folder, *range(30))
    for entropy in (0.0, 0.0, 0.0, 0.0, 0.69) * 3:
        toy.entropy = entropy
        turns(mind, clock, 1)
    assert told(folder, events.RolledBack) == []
    forced, forced_clock = run(tmp_path / "forced")
    toy.entropy = 0.0
    one = np.tile([True, False], (4, 1))
    arrive(forced, *range(30), legal=one)
    turns(continuous(forced, toy), forced_clock, 12)
    assert told(forced, events.RolledBack) == []


def test_a_good_version_is_not_pruned_however_long_ago(tmp_path: Path) -> None:
    folder, clock = run(
        tmp_path, continuous__entropy_floor=0.1, registry__keep_versions=2,
        continuous__samples_per_insert=100.0,
    )  # fmt: skip
    toy = ToyItems()
    mind = continuous(folder, toy)
    arrive(folder, *range(10))
    turns(mind, clock, 3)
    toy.entropy = 0.15 * float(np.log(2.0))
    turns(mind, clock, 30)
    assert folder.versions.numbers()[0] == 3
    mind = continuous(folder, toy)
    toy.entropy = 0.0
    turns(mind, clock, 5)
    assert told(folder, events.RolledBack)[0].to == 3


def test_a_collapse_before_anything_good_gives_nothing_up(tmp_path: Path) -> None:
    folder, clock = run(tmp_path)
    toy = ToyItems()
    toy.entropy = 0.0
    mind = continuous(folder, toy)
    arrive(folder, *range(30))
    turns(mind, clock, 6)
    assert told(folder, events.RolledBack) == []
    assert any("collapsed" in message for message in problems(folder))
    assert toy.restored == [], "it never went back"
    assert toy.entropy_weights[-1] == 2.0 * toy.entropy_weights[0]


def test_the_learning_rate_decays_every_hundred_batches_to_its_floor(tmp_path: Path) -> None:
    folder, clock = run(
        tmp_path, continuous__learning_rate_decay=0.1, continuous__samples_per_insert=1e6,
        learner__publish_interval_s=1e9,
    )  # fmt: skip
    toy = ToyItems()
    arrive(folder, 0, 1)
    turns(continuous(folder, toy), clock, 301)
    config = folder.config.learner
    wanted = [config.learning_rate, config.learning_rate * 0.1] + 2 * [config.learning_rate_min]
    assert toy.rates[::100] == pytest.approx(wanted)
    assert toy.rates[99] == toy.rates[0]


def test_stopping_begins_nothing_and_publishes_what_was_learned(tmp_path: Path) -> None:
    folder, clock = run(tmp_path, learner__publish_interval_s=1e9)
    toy = ToyItems()
    mind = continuous(folder, toy)
    arrive(folder, *range(4))
    turns(mind, clock, 3)
    assert folder.versions.numbers() == [1]
    arrive(folder, 5)
    assert not mind.work(hurry=True)
    mind.publish_rest()
    assert head_tally(folder).sampled == toy.tally.sampled
    assert mind.pending() == 1, "what waits, waits for the next learner"


@pytest.mark.skipif(os.name != "posix", reason="forks children and kills them")
def test_sigkill_loses_nothing_and_takes_nothing_in_twice(tmp_path: Path) -> None:
    script = Path(__file__).parents[1] / "kill_continuous.py"
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path), "20", "1"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert found["kills"] >= 20 and found["in_training"] > 0
    folder = open_run(tmp_path, settings(continuous__samples_per_insert=3.0), SetClock(now=2e9))
    folder.clock.now = max(meta.finished_at for meta in _everything(tmp_path))  # type: ignore[attr-defined]
    mind = continuous(folder)
    turns(mind, folder.clock, 3)  # type: ignore[arg-type]
    check_registry(folder)
    finished = (tmp_path / "told.txt").read_text().split()
    named = ingested(folder)
    assert set(named.values()) == {1}
    waiting = {meta.id for meta in metas(tmp_path / "buffer")}
    assert set(finished) <= named.keys() | waiting | {*_ids(tmp_path / "quarantine")}
    assert not waiting & named.keys()
    # Kills that are not a segment's fault can make it look like poison, as rarely as chance does.
    poison = {meta.id for meta in metas(tmp_path / "quarantine")}
    assert len(poison) <= 2
    assert {meta.id for meta in metas(tmp_path / "archive")} | poison >= named.keys()
    every = sum(head_tally(folder).sampled.values())
    assert every <= 3.0 * manifests(folder)[-1].counters["items"]


def _ids(where: Path) -> list[str]:
    return [meta.id for meta in metas(where)]


def _everything(root: Path) -> list[Any]:
    return [meta for where in ("buffer", "archive") for meta in metas(root / where)]
