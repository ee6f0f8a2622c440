"""A linear probe: how accurately the opponent can be predicted from numbers about a match.

A probe is a multinomial logistic regression on standardised numbers, cross-validated in folds by
seed. All matches on one seed are in one fold: two scripts that act alike at first play the *same*
first seconds there, and an equal match with the other label in the training set would teach the
wrong answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from understudy.analysis.paired import Effect, effect
from understudy.core.arrays import NDArray
from understudy.core.statistics import wilson
from understudy.supervise.maths_threads import one_thread

FOLDS = 5
_STRENGTH = 0.1
"""The inverse of the penalty. Between 0.03 and 1 no accuracy changed by four points."""
_PASSES = 2000


def predict(values: NDArray, labels: NDArray, numbers: NDArray) -> NDArray:
    """The opponents that a probe predicts, [N].

    values [N, D] are of matches against opponents `labels` [N] on the seeds `numbers` [N].
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    wide, answers = values.astype(np.float64), np.empty_like(labels)
    fold = folds(numbers)
    with one_thread():
        for one in np.unique(fold):
            probe = make_pipeline(
                StandardScaler(), LogisticRegression(C=_STRENGTH, max_iter=_PASSES)
            )
            probe.fit(wide[fold != one], labels[fold != one])
            answers[fold == one] = probe.predict(wide[fold == one])
    return answers


def folds(numbers: NDArray) -> NDArray:
    """The fold of each match, [N].

    The agent changes its slot from number to number, so a fold gets pairs of numbers, and both
    slots.
    """
    found: NDArray = numbers // 2 % FOLDS
    return found


def ceiling(seen: NDArray, numbers: NDArray) -> float:
    """The highest accuracy that any predictor can reach from seen [T, N, F].

    Matches on one seed that are equal to the last bit cannot be told apart: of k such opponents at
    most one in k is predicted. A predictor that knows the seed and every script reaches that.
    """
    rows: dict[tuple[int, bytes], int] = {}
    keys = [(int(n), seen[:, at].tobytes()) for at, n in enumerate(numbers)]
    for key in keys:
        rows[key] = rows.get(key, 0) + 1
    return float(np.mean([1 / rows[key] for key in keys]))


@dataclass(frozen=True)
class ProbeInputs:
    """The inputs of a probe at one time: values [N, D] of the trained encoder and [S, N, D] of
    untrained ones (S is 0 without an encoder); labels and numbers [N] of the matches."""

    trained: NDArray
    untrained: NDArray
    labels: NDArray
    numbers: NDArray


class Accuracy(msgspec.Struct, frozen=True, kw_only=True):
    """The share of matches with the right prediction, and Wilson's 95% interval."""

    share: float
    low: float
    high: float
    matches: int

    @classmethod
    def of(cls, right: NDArray) -> Accuracy:
        """From right bool [N] or, averaged over seeds on the same matches, [S, N]."""
        hits = right.reshape(-1, right.shape[-1]).mean(0)
        low, high = wilson(float(hits.sum()), len(hits))
        return cls(share=float(hits.mean()), low=low, high=high, matches=len(hits))


class ProbeVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one kind of input at one time."""

    trained: Accuracy
    untrained: Accuracy | None
    gain: Effect | None
    """Trained less untrained, on the same matches"""
    confusion: list[list[int]]
    """Of the trained encoder: rows are true opponents, columns predicted ones"""


def compare(reading: ProbeInputs, *, opponents: int) -> ProbeVerdict:
    """Compares the trained encoder with the mean of the untrained ones."""
    labels, numbers = reading.labels, reading.numbers
    answers = predict(reading.trained, labels, numbers)
    zero = [predict(one, labels, numbers) == labels for one in reading.untrained]
    return verdict(labels, answers, zero, opponents=opponents)


def verdict(
    labels: NDArray, answers: NDArray, zero: Sequence[NDArray] = (), *, opponents: int
) -> ProbeVerdict:
    """Of answers [N], and of where each untrained encoder was right, bool [N]."""
    right = answers == labels
    return ProbeVerdict(
        trained=Accuracy.of(right),
        untrained=Accuracy.of(np.stack(zero)) if zero else None,
        gain=effect(right, np.mean(zero, axis=0)) if zero else None,
        confusion=confusion(labels, answers, opponents=opponents),
    )


def confusion(labels: NDArray, answers: NDArray, *, opponents: int) -> list[list[int]]:
    """How often each opponent (row) was predicted as each (column)."""
    return [
        [int(((labels == who) & (answers == name)).sum()) for name in range(opponents)]
        for who in range(opponents)
    ]
