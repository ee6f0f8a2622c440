"""Gates whose quality is known are told apart, and too little data gets no verdict."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.core.errors import InputError
from understudy.gates import calibration
from understudy.gates.calibration import Calibration, calibrate

SHARE = 0.1


def played(
    *, expects: Any, count: int = 20_000, share: float = SHARE, seed: int = 0, noise: float = 0.2
) -> dict[str, Any]:
    """A world of known truth: an action is worth `truth`, waiting is worth 0, and both are noisy;
    the gate sees the truth through `expects`."""
    rng = np.random.default_rng(seed)
    truth = rng.uniform(-0.5, 0.5, count)
    expected = expects(truth, rng)
    passed = expected > 0.0
    explored = ~passed & (rng.random(count) < share)
    sent = passed | explored
    rewards = np.where(sent, truth, 0.0) + rng.normal(0, noise, count)
    return {
        "sent": sent, "explored": explored, "expected": expected, "rewards": rewards,
        "threshold": 0.0, "explore_share": share, "truth": truth,
    }  # fmt: skip


def judged(data: dict[str, Any], **changes: Any) -> Calibration:
    return calibrate(**{key: value for key, value in {**data, **changes}.items() if key != "truth"})


def perfect(truth: Any, rng: Any) -> Any:
    return truth


def overconfident(truth: Any, rng: Any) -> Any:
    return 3.0 * truth


def inverted(truth: Any, rng: Any) -> Any:
    return -truth


def optimistic(truth: Any, rng: Any) -> Any:
    return truth + 0.2


def guessing(truth: Any, rng: Any) -> Any:
    return rng.uniform(-0.5, 0.5, len(truth))


@pytest.mark.parametrize(
    ("expects", "findings", "verdict"),
    [
        (perfect, ("calibrated",), "saves"),
        (overconfident, ("overconfident",), "saves"),
        (inverted, ("inverted",), "costs"),
        (optimistic, ("optimistic",), "saves"),
        (guessing, ("blind",), "undecided"),
    ],
)
def test_gates_of_known_quality_are_told_apart(expects: Any, findings: Any, verdict: str) -> None:
    found = judged(played(expects=expects))
    assert found.foresight.findings == findings
    assert found.worth.verdict == verdict
    assert findings[0] in found.foresight.words


def test_the_numbers_are_those_of_the_known_world() -> None:
    """A perfect gate blocks what is worth -0.25 on average, where waiting is worth 0."""
    found = judged(played(expects=perfect))
    worth, sight = found.worth, found.foresight
    assert found.sent.count + found.explored.count + found.waited.count == found.proposals
    assert worth.saved == pytest.approx(0.25, abs=0.03)
    assert worth.saved_interval is not None
    assert worth.saved_interval[0] < 0.25 < worth.saved_interval[1]
    assert worth.saved_total == pytest.approx(0.25 * found.waited.count, rel=0.12)
    assert sight.slope == pytest.approx(1.0, abs=0.05)
    assert sight.bias == pytest.approx(0.0, abs=0.02)
    assert sight.mean_absolute_error == pytest.approx(0.2 * np.sqrt(2 / np.pi), rel=0.05)
    # truth has variance 1/12, the noise 0.04
    assert sight.correlation == pytest.approx(np.sqrt((1 / 12) / (1 / 12 + 0.04)), abs=0.03)
    for row in found.rows:
        assert row.interval is not None
        assert row.low <= row.expected <= row.high
        assert row.actual == pytest.approx(row.expected, abs=0.06)


def test_the_few_that_were_explored_stand_for_everything_that_was_blocked() -> None:
    """Totals are unbiased: over many seeds the estimate centres on what sending all would bring."""
    errors = []
    for seed in range(40):
        data = played(expects=perfect, count=2_000, seed=seed)
        found = judged(data)
        assert found.worth.total_if_open is not None
        errors.append(found.worth.total_if_open - data["truth"].sum())
    assert abs(np.mean(errors)) < 3 * np.std(errors) / np.sqrt(len(errors))
    # and the bias of the gate is over all proposals, not over those that happen to have outcomes
    skewed = played(expects=lambda truth, rng: np.where(truth > 0, truth, truth - 0.4))
    assert judged(skewed).foresight.bias == pytest.approx(-0.2, abs=0.03)


def test_the_share_of_blocked_actions_that_would_have_been_good() -> None:
    none_good = judged(played(expects=perfect, noise=0.0))
    assert none_good.worth.good == 0
    assert none_good.worth.good_share == 0.0
    assert 0.0 < none_good.worth.good_interval[1] < 0.01
    all_good = judged(played(expects=inverted, noise=0.0))
    assert all_good.worth.good_share == 1.0
    strict = judged(played(expects=inverted, noise=0.0), threshold=0.25)
    assert strict.worth.good_share == pytest.approx(0.5, abs=0.06)


@pytest.mark.parametrize(
    ("share", "count", "words"),
    [
        (0.02, 1_000, "fewer than 30 explored: no verdict"),
        (0.0, 1_000, "fewer than 30 explored: no verdict"),
        (1.0, 1_000, "fewer than 30 waited"),
    ],
)
def test_too_little_data_gets_no_verdict(share: float, count: int, words: str) -> None:
    found = judged(played(expects=perfect, share=share, count=count))
    assert found.worth.verdict == calibration.NO_VERDICT
    assert words in found.worth.words


def test_few_outcomes_of_any_kind_say_nothing_of_foresight_either() -> None:
    found = judged(played(expects=perfect, count=40))
    assert found.foresight.findings == ()
    assert "fewer than 30 outcomes" in found.foresight.words


def test_nothing_at_all_and_nothing_blocked_are_no_trouble() -> None:
    empty = judged(played(expects=perfect, count=0))
    assert (empty.proposals, empty.rows, empty.sent.mean_reward) == (0, (), None)
    assert empty.foresight.words == "no outcome yet: no verdict"
    opened = judged(played(expects=lambda truth, rng: np.ones(len(truth)), count=500))
    assert opened.worth.words == "nothing was blocked"
    assert opened.worth.total_if_open == opened.worth.total
    assert opened.realised_share is None and opened.share_fits
    assert "blind" in opened.foresight.findings  # it expects the same of everything
    assert [row.count for row in opened.rows] == [500]


def test_a_share_that_was_changed_on_the_way_is_noticed() -> None:
    data = played(expects=perfect, share=0.1)
    assert judged(data).share_fits
    assert not judged(data, explore_share=0.3).share_fits


def test_verdicts_are_never_mixed_in_a_row() -> None:
    rows = judged(played(expects=perfect)).rows
    waits = [row for row in rows if row.verdict == "WAIT"]
    sends = [row for row in rows if row.verdict == "SEND"]
    assert len(waits) == len(sends) == 4
    assert max(row.high for row in waits) <= 0.0 < min(row.low for row in sends)
    counts = [row.count for row in sends]
    assert max(counts) - min(counts) <= 2


@pytest.mark.parametrize(
    ("field", "wrong"),
    [("rewards", np.zeros(3)), ("expected", np.full(100, np.nan)), ("sent", np.ones((100, 1)))],
)
def test_arrays_that_do_not_fit_are_named(field: str, wrong: Any) -> None:
    data = played(expects=perfect, count=100)
    with pytest.raises(InputError, match=field if field != "sent" else "sent|explored"):
        judged({**data, field: wrong})


@given(
    st.lists(
        st.tuples(
            st.sampled_from([(True, False), (True, True), (False, False)]),
            st.floats(-1, 1, width=32),
            st.floats(-1, 1, width=32),
        ),
        max_size=80,
    )
)
def test_any_record_is_accounted_for(record: list[Any]) -> None:
    found = calibrate(
        sent=np.array([fate[0] for fate, _, _ in record], bool),
        explored=np.array([fate[1] for fate, _, _ in record], bool),
        expected=np.array([e for _, e, _ in record], float),
        rewards=np.array([r for _, _, r in record], float),
        threshold=0.0,
        explore_share=0.5,
    )
    assert found.sent.count + found.explored.count + found.waited.count == len(record)
    assert sum(row.count for row in found.rows) == found.sent.count + found.explored.count
    assert found.foresight.correlation is None or -1 <= found.foresight.correlation <= 1
    low, high = found.worth.good_interval
    assert 0.0 <= low <= high <= 1.0
    numbers = [found.worth.total, found.foresight.bias, found.foresight.slope, found.worth.saved]
    assert all(np.isfinite(number) for number in numbers if number is not None)
