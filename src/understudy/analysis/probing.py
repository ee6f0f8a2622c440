"""A linear probe: how well the opponent's name can be read off some numbers about a match.

A probe is a multinomial logistic regression on standardised numbers. A match is judged by a probe
that saw nothing of it, nor of any match on the same seed: two scripts that act alike at first play
the *same* first seconds there, and the other's name on an equal match would teach the wrong answer.

One maths thread where products are small: two would mostly wait for each other.

Measured on two cores, busy ones most of all: a step of attention in 28 matches takes a tenth of the
time, a probe a quarter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec
import numpy as np

from understudy.analysis.paired import Effect, effect
from understudy.core.arrays import NDArray
from understudy.core.statistics import wilson


@contextmanager
def one_thread() -> Iterator[None]:
    """For what NumPy and scikit-learn do inside (which brings threadpoolctl)."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(1):
        yield


FOLDS = 5
_STRENGTH = 0.1
"""Inverse of the penalty. Between 0.03 and 1 no accuracy moved by as much as four points."""
_PASSES = 2000


def named(values: NDArray, labels: NDArray, numbers: NDArray) -> NDArray:
    """Whom a probe names, [N].

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
    """Which of `FOLDS` each match belongs to, [N]: all on one seed together.

    Slots take turns from number to number, so pairs of numbers: every fold has both slots.
    """
    found: NDArray = numbers // 2 % FOLDS
    return found


def ceiling(seen: NDArray, numbers: NDArray) -> float:
    """What no reader of seen [T, N, F] can do better than, whatever it reads and however.

    Matches on one seed that look alike to the last bit are one match: of k such opponents a reader
    names each in one of k cases at best. One who knows the seed and every script reaches that.
    """
    rows: dict[tuple[int, bytes], int] = {}
    keys = [(int(n), seen[:, at].tobytes()) for at, n in enumerate(numbers)]
    for key in keys:
        rows[key] = rows.get(key, 0) + 1
    return float(np.mean([1 / rows[key] for key in keys]))


@dataclass(frozen=True)
class ProbeInputs:
    """What can be read at one time: values [N, D] of the trained encoder, and [S, N, D] of
    untrained ones (S is 0 where no encoder is asked); labels and numbers [N] of the matches."""

    trained: NDArray
    untrained: NDArray
    labels: NDArray
    numbers: NDArray


class Accuracy(msgspec.Struct, frozen=True, kw_only=True):
    """Share of matches whose opponent was named, with Wilson's 95% interval."""

    share: float
    low: float
    high: float
    matches: int

    @classmethod
    def of(cls, right: NDArray) -> Accuracy:
        """From right [N] or, averaged over seeds on the same matches, [S, N]."""
        hits = right.reshape(-1, right.shape[-1]).mean(0)
        low, high = wilson(float(hits.sum()), len(hits))
        return cls(share=float(hits.mean()), low=low, high=high, matches=len(hits))


class ProbeVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of reading at one time."""

    trained: Accuracy
    untrained: Accuracy | None
    gain: Effect | None
    """Trained above untrained, on the same matches."""
    confusion: list[list[int]]
    """Of the trained one: rows are who it was, columns whom the probe named."""


def compare(reading: ProbeInputs, *, opponents: int) -> ProbeVerdict:
    """The trained encoder beside the mean of the untrained ones."""
    labels, numbers = reading.labels, reading.numbers
    answers = named(reading.trained, labels, numbers)
    zero = [named(one, labels, numbers) == labels for one in reading.untrained]
    return verdict(labels, answers, zero, opponents=opponents)


def verdict(
    labels: NDArray, answers: NDArray, zero: Sequence[NDArray] = (), *, opponents: int
) -> ProbeVerdict:
    """On answers [N], and on where each of the untrained ones was right, bool [N]."""
    right = answers == labels
    return ProbeVerdict(
        trained=Accuracy.of(right),
        untrained=Accuracy.of(np.stack(zero)) if zero else None,
        gain=effect(right, np.mean(zero, axis=0)) if zero else None,
        confusion=confusion(labels, answers, opponents=opponents),
    )


def confusion(labels: NDArray, answers: NDArray, *, opponents: int) -> list[list[int]]:
    """How often each opponent (row) was named as each (column)."""
    return [
        [int(((labels == who) & (answers == name)).sum()) for name in range(opponents)]
        for who in range(opponents)
    ]
