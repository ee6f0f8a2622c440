"""When a verdict is due: a running test, played on in simulation through the gate that ships. Pure.

Each simulated future begins with the test as it stands, throws the same coin, and looks after every
match. What both arms do in it is drawn from their results so far: a Bayesian bootstrap with a weak
prior (Jeffreys's, of wins and losses), so that few matches give a wide range. Before both arms have
a few matches an assumption stands in: the version is better by 20 points, the size of gain that the
defaults are made for. The draws have a fixed seed: the same log gives the same range.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from understudy.core.arrays import NDArray
from understudy.gates.promotion import trial as gate
from understudy.gates.promotion.records import TrialSettings
from understudy.gates.promotion.running import RunningTest, name_of
from understudy.gates.promotion.trial import PromotionTrial
from understudy.promotion.history import MatchColumns
from understudy.telemetry.promotion_status import ExpectedVerdict

FUTURES = 200
"""Simulated futures."""
_PIECE = 64
"""Matches that are simulated at once."""
_MOST_AHEAD = 2000
"""Matches that are simulated: a future that has not ended by then counts as undecided."""
ENOUGH_MATCHES = 5
"""Matches of each arm, or pairs, from which on their results are what is assumed."""
RANGE = (0.1, 0.9)
"""Eight of ten futures end within the range that is told."""
_GAIN = 0.2
"""What a version is assumed to gain; half of what is missing to 1, if that is less."""
_PRIOR = 0.5
"""The weight of one win and of one loss that each arm is given beside its results."""
_AS_SO_FAR = "if both go on as so far"
_KINDS = {gate.BETTER: "better", gate.HARM: "worse"}


class _Outcomes(NamedTuple):
    """What a match of one arm may come to, each outcome with a weight in each future."""

    results: NDArray
    """[K]"""
    strata: NDArray
    """[K]"""
    weights: NDArray
    """[K, R] Adds up to 1 over the outcomes."""

    def draw(self, uniform: NDArray) -> tuple[NDArray, NDArray]:
        """Results and strata [N, R] of matches with these uniform numbers [N, R]."""
        bounds = np.cumsum(self.weights, axis=0)
        places = np.stack(
            [
                np.searchsorted(bound, one, side="right")
                for bound, one in zip(bounds.T, uniform.T, strict=True)
            ],
            axis=1,
        )
        places = np.minimum(places, len(self.results) - 1)  # sums may end just below 1
        return self.results[places], self.strata[places]


def expected_verdict(
    now: RunningTest,
    *,
    columns: MatchColumns,
    pairs: NDArray,
    recheck: bool = False,
    incumbent_mean: float | None = None,
    scored: bool = False,
) -> ExpectedVerdict | None:
    """When this test or recheck ends, and how; None: it waits for a person, or has few pairs.

    Args:
        now: The test as it stands.
        columns: Its matches so far.
        pairs: [N, 2] Results of canary and incumbent so far, of a test by a simulator.
        recheck: It is a recheck of a champion.
        incumbent_mean: The mean result of the incumbent in all matches; None: not known.
        scored: Results are scores: no match is won, lost or tied.
    """
    if now.asks:
        return None
    rng = np.random.default_rng(now.number)
    played = now.paired if now.simulator else int(now.trial.matches)
    ahead = min(max(now.settings.longest - played, 1), _MOST_AHEAD)
    if now.simulator:
        if len(pairs) < ENOUGH_MATCHES:
            return None
        drawn = pairs[_bootstrap(rng, len(pairs), ahead)]
        _, looks = gate.advance_pairs(
            _widened(now.trial), now.settings, alpha=now.alpha,
            canary=drawn[..., 0], incumbent=drawn[..., 1],
        )  # fmt: skip
        return _summary(looks.verdict, assumption=_AS_SO_FAR)
    arms = _arms_so_far(columns, rng)
    assumption = _AS_SO_FAR
    if arms is None:
        against = name_of(now.against)
        arms, assumption = _assumed(incumbent_mean, against, recheck=recheck, scored=scored)
    settings = now.settings
    if recheck and len(columns.shares):  # its coin stays
        share = float(columns.shares[-1])
        settings = msgspec.structs.replace(settings, first_share=share, share=share)
    return _summary(
        _verdicts(now.trial, settings, now.alpha, arms, ahead, rng), assumption=assumption
    )


def next_verdict(
    settings: TrialSettings,
    *,
    alpha: float,
    against: int,
    incumbent_mean: float | None,
    scored: bool = False,
) -> ExpectedVerdict:
    """When a test ends that begins with the next match, if its version is better by 20 points."""
    arms, assumption = _assumed(incumbent_mean, name_of(against), recheck=False, scored=scored)
    rng = np.random.default_rng(0)
    ahead = min(settings.longest, _MOST_AHEAD)
    verdicts = _verdicts(gate.new_trial(), settings, alpha, arms, ahead, rng)
    return _summary(verdicts, assumption=assumption)


def _verdicts(
    trial: PromotionTrial,
    settings: TrialSettings,
    alpha: float,
    arms: Sequence[_Outcomes],
    ahead: int,
    rng: np.random.Generator,
) -> NDArray:
    """[N, R] What the gate says after each match in each future, until all of them have ended or
    `ahead` more matches are over."""
    shape = (ahead, FUTURES)
    uniform = rng.random(shape)
    early = uniform < settings.first_share
    before = trial.arm_counts[1] + np.cumsum(early, axis=0) - early
    # As long as the share is small, the canaries so far are those of the small share.
    share = np.where(before < settings.first_canaries, settings.first_share, settings.share)
    is_canary = uniform < share
    luck = rng.random(shape)
    (of_incumbent, where_incumbent), (of_canary, where_canary) = (one.draw(luck) for one in arms)
    strata = int(max(one.strata.max() for one in arms)) + 1
    columns = MatchColumns(
        arms=is_canary.astype(np.float64),
        shares=share,
        results=np.where(is_canary, of_canary, of_incumbent),
        strata=np.where(is_canary, where_canary, where_incumbent),
    )
    now = _widened(gate.with_strata(trial, max(strata, len(trial.totals))))
    found: list[NDArray] = []
    ended = np.zeros(FUTURES, np.bool_)
    for begin in range(0, ahead, _PIECE):
        piece = (column[begin : begin + _PIECE] for column in columns)
        now, looks = gate.advance(now, settings, alpha=alpha, **MatchColumns(*piece)._asdict())
        found.append(looks.verdict)
        ended |= (looks.verdict != gate.CONTINUE).any(0)
        if ended.all():
            break
    return np.concatenate(found)


def _widened(trial: PromotionTrial) -> PromotionTrial:
    """The same test in every future."""
    return PromotionTrial(*(np.repeat(one[..., None], FUTURES, axis=-1) for one in trial))


def _arms_so_far(columns: MatchColumns, rng: np.random.Generator) -> list[_Outcomes] | None:
    """The incumbent and the canary as they were so far; None: one has too few matches."""
    found = []
    for arm in (0.0, 1.0):
        mine = columns.arms == arm
        count = int(mine.sum())
        if count < ENOUGH_MATCHES:
            return None
        strata = columns.strata[mine]
        usual = np.bincount(strata).argmax()
        weights = rng.dirichlet([*np.ones(count), _PRIOR, _PRIOR], FUTURES).T
        found.append(
            _Outcomes(
                np.append(columns.results[mine], (0.0, 1.0)), np.append(strata, (usual,) * 2),
                weights,
            )
        )  # fmt: skip
    return found


def _assumed(
    incumbent_mean: float | None, against: str, *, recheck: bool, scored: bool
) -> tuple[list[_Outcomes], str]:
    """Both arms before there are results, and the assumption in words."""
    mean = 0.5 if incumbent_mean is None else incumbent_mean
    gain = min(_GAIN, (1.0 - mean) / 2.0)
    known = f"{mean:.0%}" if incumbent_mean is not None else "50%, not known yet"
    ties = "" if scored else ", a tie counts half"
    whose = "the champion's mean result is still" if recheck else "its mean result is"
    words = f"if {whose} {100 * gain:.0f} points above that of {against} ({known}{ties})"
    return [_win_or_lose(mean), _win_or_lose(mean + gain)], words


def _win_or_lose(mean: float) -> _Outcomes:
    weights = np.repeat([[1.0 - mean], [mean]], FUTURES, axis=1)
    return _Outcomes(np.array([0.0, 1.0]), np.zeros(2, np.int64), weights)


def _bootstrap(rng: np.random.Generator, count: int, ahead: int) -> NDArray:
    """[N, R] Places of pairs that were played."""
    weights = rng.dirichlet(np.ones(count), FUTURES)
    drawn: NDArray = np.stack([rng.choice(count, ahead, p=one) for one in weights], axis=1)
    return drawn


def _summary(verdicts: NDArray, *, assumption: str) -> ExpectedVerdict:
    """`verdicts` [N, R]: of each future the first one counts."""
    decided = verdicts != gate.CONTINUE
    at = np.where(decided.any(0), 1 + decided.argmax(0), len(verdicts))
    first = verdicts[at - 1, np.arange(verdicts.shape[1])]
    chances = {kind: float((first == code).mean()) for code, kind in _KINDS.items()}
    chances["undecided"] = max(1.0 - sum(chances.values()), 0.0)
    kind = max(chances, key=lambda one: chances[one])
    fewest, most = np.quantile(at, RANGE)
    return ExpectedVerdict(
        kind=kind,  # type: ignore[arg-type]
        matches=round(float(np.median(at))),
        fewest=int(fewest),
        most=int(np.ceil(most)),
        better=chances["better"],
        worse=chances["worse"],
        assumption=assumption,
    )
