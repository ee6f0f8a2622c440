"""Settling: how large the steps of the learner are, by whether they agree with each other.

As long as there is something to learn, the parameters move in much the same direction from one
stretch of experience to the next. Once there is not, each stretch pulls them somewhere else: they
walk at random, as far as the steps are large, and the policy with them (ADR 0022). So the cosine
between what two successive windows moved is measured. Steps (the rate, how far a batch may move the
policy, the bonus for entropy) grow with agreement, up to what the settings say, and shrink without.

Small steps sway around a place whose own move is slower than they are, so a short window sees only
the swaying. The smaller the steps, the longer a window is (ADR 0032).

What a window moved is compared through a sketch: each parameter, with a sign, in one of `_BINS`
sums. That keeps inner products (up to 2% here) and versions small.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from understudy.core import chance
from understudy.core.arrays import NDArray
from understudy.learner.maths.returns import Moments, pooled


class SettlingWindows(NamedTuple):
    """What is compared with what."""

    window: float
    """Decisions trained on in one window, while steps are large."""
    expected: float
    """The cosine between windows of learning that still gets somewhere."""
    stretch: float = 1.0
    """How many times as long a window may become while steps are small."""
    least: float = 0.01
    """Steps never shrink below this share: what changes can still be followed."""
    by_results: bool = False
    """Whether steps grow only where the results of matches have changed."""


MATCHES = SettlingWindows(20_000.0, 0.05, stretch=8.0)
"""Batches of whole matches, a network without memory."""
WITH_MEMORY = SettlingWindows(20_000.0, 0.2, least=0.04, by_results=True)
"""A minibatch of a network with memory is whole matches, whose decisions pull alike: its steps
agree more, with less behind them, for hundreds of batches in which nothing is gained (ADR 0053).
They have shrunk to the least share after a few minutes, often on the way up, and stay there."""
ITEMS = SettlingWindows(4_000.0, 0.3, stretch=8.0)
"""Batches drawn from everything that is held. A window is few decisions, and windows agree at 0.1
even where nothing is gained."""
FEW_MATCHES = SettlingWindows(2_000.0, 0.2)
"""Batches of one or two matches, as of a slow game: all decisions of a match have its result in
common, so steps agree with little behind them, and 20,000 decisions would be hundreds of steps."""
SLOW_GAME = SettlingWindows(16_000.0, 0.3)
"""The same where a batch is one step over new matches and earlier ones: eight times the decisions,
and successive windows have matches in common."""
BESIDE_RULES = 0.15
"""The share of full steps there, once a clone of rules learns from matches of its own. Few of the
decisions are its own, so windows of them hardly agree and settling would end in a standstill; full
steps walk away from the clone before they have learned anything (ADR 0037)."""
_SMALL = 0.1
"""Below this share, windows become longer as steps become smaller."""
_MOST_CHANGE = 2.0
"""One window changes the share by this factor at most."""
_CHANGED = 2.0
"""Standard errors by which the mean result of a window differs from earlier ones, where it has
changed."""
_EARLIER = 4.0
"""Windows that results are compared with."""
_BINS = 4096


def _nothing() -> NDArray:
    return np.zeros(0, np.float32)


@dataclass(frozen=True)
class Settling:
    """Where a window began, what the one before moved, and the share of full steps by now."""

    share: float = 1.0
    decisions: float = 0.0
    """Trained on in this window."""
    start: NDArray = field(default_factory=_nothing)
    """Sketch of the parameters when the window began; empty: it has not."""
    moved: NDArray = field(default_factory=_nothing)
    """Sketch of what the last window moved; empty: there was none."""
    agreement: float = 0.0
    """Cosine between the last two windows."""
    results: Moments = field(default_factory=Moments)
    """Of the rewards of each match in this window."""
    earlier: Moments = field(default_factory=Moments)
    """The same in the windows before."""


def begun(old: Settling, params: Mapping[str, NDArray]) -> Settling:
    """Before a batch: a window begins, unless one has."""
    return old if len(old.start) else replace(old, start=sketch(params), decisions=0.0)


def settled(
    old: Settling,
    params: Mapping[str, NDArray],
    *,
    decisions: float,
    pace: SettlingWindows,
    returns: Sequence[float] = (),
) -> Settling:
    """After a batch of so many decisions: closes the window when it is full.

    Agreement above what is expected makes steps larger, below it smaller. A longer window has the
    effect of the shorter ones that it replaces. `returns`: the sum of rewards of each new match.
    """
    decisions += old.decisions
    old = replace(old, results=pooled(old.results, _moments(returns)))
    stretch = float(np.clip(_SMALL / old.share, 1.0, pace.stretch))
    if decisions < pace.window * stretch:
        return replace(old, decisions=decisions)
    now = sketch(params)
    moved = now - old.start
    most = _EARLIER * float(old.results.size)
    kept = old.earlier._replace(size=min(float(old.earlier.size), most))
    after = Settling(old.share, 0.0, now, moved, earlier=pooled(kept, old.results))
    if not len(old.moved):
        return after
    lengths = float(np.linalg.norm(moved)) * float(np.linalg.norm(old.moved))
    agreement = float(moved @ old.moved) / lengths if lengths > 0.0 else 0.0
    change = np.exp(stretch * (agreement - pace.expected))
    most_change = 1.0 if pace.by_results and not _changed(old) else _MOST_CHANGE
    change = np.clip(change, 1.0 / _MOST_CHANGE, most_change)
    share = float(np.clip(old.share * change, pace.least, 1.0))
    return replace(after, share=share, agreement=agreement)


def _moments(returns: Sequence[float]) -> Moments:
    if not returns:
        return Moments()
    return Moments(float(np.mean(returns)), float(np.mean(np.square(returns))), len(returns))


def _changed(old: Settling) -> bool:
    """Whether the results of this window differ from those of the windows before it."""
    now, before = old.results, old.earlier
    if now.size < 2 or before.size < 2:
        return False
    error = sum(max(one.square - one.mean**2, 0.0) / one.size for one in (now, before))
    return bool(abs(now.mean - before.mean) > _CHANGED * np.sqrt(error))


def interrupted(old: Settling) -> Settling:
    """The parameters have changed otherwise than by learning: windows begin anew."""
    return Settling(old.share, results=old.results, earlier=old.earlier)


def sketch(params: Mapping[str, NDArray]) -> NDArray:
    """float32 [_BINS] of all parameters, in the order of their names."""
    flat = np.concatenate([np.asarray(params[name]).ravel() for name in sorted(params)])
    bins, signs = _places(len(flat))
    return np.bincount(bins, signs * flat, minlength=_BINS).astype(np.float32)


@lru_cache(maxsize=4)
def _places(count: int) -> tuple[NDArray, NDArray]:
    """The bin and the sign of each parameter."""
    words = chance.mix(np.arange(count, dtype=np.uint32))
    bins = (words % np.uint32(_BINS)).astype(np.int64)
    return bins, np.where(words >> np.uint32(31), -1.0, 1.0)


def to_arrays(s: Settling) -> dict[str, NDArray]:
    """As a version keeps it, by name."""
    return {
        "settling": np.array([s.share, s.decisions, s.agreement]),
        "settling.start": s.start,
        "settling.moved": s.moved,
        "settling.results": np.array([*s.results, *s.earlier], np.float64),
    }


def from_arrays(arrays: Mapping[str, NDArray]) -> Settling:
    """As a version has it; older ones know nothing of it, or not of results. KeyError: what is
    missing."""
    if "settling" not in arrays:
        return Settling()
    share, decisions, agreement = (float(number) for number in arrays["settling"])
    results = [float(number) for number in arrays.get("settling.results", np.zeros(6))]
    return Settling(
        share,
        decisions,
        arrays["settling.start"],
        arrays["settling.moved"],
        agreement,
        Moments(*results[:3]),
        Moments(*results[3:]),
    )
