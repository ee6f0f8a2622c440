"""The coin of the next match: who may play it, with what probability, and how it falls. Pure.

A uniform number in [0, 1) falls into one of four slices that lie next to each other: the holdout,
practice, the canary, and the incumbent. Every probability is kept with the assignment.
"""

from __future__ import annotations

from typing import NamedTuple

from understudy.gates.promotion import trial as gate
from understudy.gates.promotion.records import RULES, Arm, Assigned
from understudy.gates.promotion.state import PromotionState


class Shares(NamedTuple):
    """What the coin of the next match decides."""

    test: int
    canary: int | None
    incumbent: int
    share: float
    """The probability of the canary, given neither the holdout nor practice."""
    holdout: float
    practice: int | None = None
    """The version that practises; None: none does."""
    practice_share: float = 0.0
    """The probability of practice, given that the match is not of the holdout."""


def shares(
    state: PromotionState, *, practice: int | None = None, practice_share: float = 0.0
) -> Shares:
    """How the next match is to be assigned. `practice`: the version that would practise."""
    incumbent = state.reigns[-1]
    holdout = 0.0 if incumbent.version == RULES else incumbent.settings.holdout
    if state.recheck is not None:
        return Shares(state.recheck.number, incumbent.version, RULES, (1.0 - holdout) / 2, 0.0)
    test = state.test
    if test is None or test.simulator:
        coin = Shares(0, None, incumbent.version, 0.0, holdout)
    else:
        share = float(gate.canary_share(test.trial, test.settings))
        coin = Shares(test.number, test.version, incumbent.version, share, holdout)
    if not practice or not practice_share or practice_refused(state, practice):
        return coin
    return coin._replace(practice=practice, practice_share=practice_share)


def practice_refused(state: PromotionState, version: int) -> str:
    """Why this version does not practise now; empty: it may."""
    if state.is_paused:
        return "promotion is paused"
    if state.recheck is not None:
        return f"champion {state.recheck.version} is being rechecked"
    if state.practice.suspended:
        return f"{state.practice.suspended} more matches without practice"
    if version == state.incumbent:
        return f"version {version} is the champion"
    if state.roles.get(version) == "retired":
        return f"version {version} was tried, and plays no more"
    return ""


def draw(coin: Shares, uniform: float) -> tuple[Arm, int]:
    """The arm and the version of a match whose coin came to `uniform`, in [0, 1)."""
    if uniform < coin.holdout:
        return "holdout", RULES
    rest = (uniform - coin.holdout) / (1.0 - coin.holdout)
    if coin.practice is not None and rest < coin.practice_share:
        return "practice", coin.practice
    rest = (rest - coin.practice_share) / (1.0 - coin.practice_share)
    if coin.canary is not None and rest < coin.share:
        return "canary", coin.canary
    return "incumbent", coin.incumbent


def assigned(coin: Shares, uniform: float, *, match: str, stratum: str = "") -> Assigned:
    """The assignment of a match whose coin came to `uniform`."""
    arm, version = draw(coin, uniform)
    return Assigned(
        match=match,
        arm=arm,
        version=version,
        test=0 if arm == "practice" else coin.test,
        share=coin.share,
        holdout=coin.holdout,
        practice=coin.practice_share,
        uniform=uniform,
        stratum=stratum,
    )
