"""The reward of a run's versions, and what it is measured against, as plain data for screens."""

from __future__ import annotations

import math

import msgspec
import numpy as np

from understudy.core.spaces import ActionSpace, Discrete
from understudy.registry.comparisons import Comparison, best_fixed
from understudy.registry.run_folder import RunFolder
from understudy.registry.scores import ENOUGH, Score, ScoreInterval
from understudy.registry.versions import Manifest
from understudy.telemetry.report_parts import estimate
from understudy.telemetry.status import Estimate, RewardStatus, VersionReward

_TRAINED = "train"


def reward_status(folder: RunFolder) -> RewardStatus | None:
    """As the newest version knows it; None: no reward was ever counted."""
    head = folder.versions.head_manifest()
    return None if head is None else rewards_in(head)


def rewards_in(manifest: Manifest) -> RewardStatus | None:
    """What a version knew when it was made."""
    scores = manifest.scores
    matches = any(one.rewarded for one in scores)
    if not matches and not any(one.episodes for one in scores):
        return None
    known = [found for one in scores if (found := version_reward(one, matches=matches)) is not None]
    status = RewardStatus(
        per="match" if matches or manifest.mode == _TRAINED else "decision",
        now=known[-1] if known else None,
        start=known[0] if known else None,
        counted=scores[-1].rewarded if matches else scores[-1].episodes,
        needed=ENOUGH,
    )
    comparison = sum(manifest.comparisons, Comparison())
    return _compared(status, comparison, manifest.spec.actions) if comparison.decisions else status


def version_reward(score: Score, *, matches: bool) -> VersionReward | None:
    """Of matches with a result, or of other episodes; None: too few."""
    mean = score.mean_return if matches else score.mean_reward
    if mean is None:
        return None
    count = score.rewarded if matches else score.episodes
    return VersionReward(first=score.first, last=score.last, count=count, reward=Estimate(*mean))


def _compared(status: RewardStatus, comparison: Comparison, space: ActionSpace) -> RewardStatus:
    best = best_fixed(comparison)
    found = {} if best is None else {
        "fixed": Estimate(*best[1]),
        "fixed_action": action_name(best[0], space),
        "fixed_known": best[2],
    }  # fmt: skip
    return msgspec.structs.replace(
        status,
        decisions=comparison.decisions,
        policy=_estimate(comparison.policy.interval()),
        random=_estimate(comparison.random.interval()),
        random_segments=comparison.random.effective_groups,
        fixed_compared=len(comparison.fixed),
        actions=math.prod(space.parts),
        **found,
    )


def action_name(number: int, space: ActionSpace) -> str:
    """`attack`, or of an action in parts the option of each: `2/0`."""
    if isinstance(space, Discrete):
        return space.names[number]
    return "/".join(str(option) for option in np.unravel_index(number, space.parts))


def _estimate(interval: ScoreInterval | None) -> Estimate | None:
    return None if interval is None else Estimate(*interval)


def won_text(score: Score | None) -> str:
    rate = None if score is None else score.win_rate
    return "" if score is None or rate is None else f"{rate.mean:.0%} won of {score.matches}"


def score_text(score: Score) -> str:
    return won_text(score) or f"reward {reward_text(score)}"


def reward_text(score: Score | None) -> str:
    """With its interval; or how much is missing for one."""
    if score is None:
        return ""
    found = version_reward(score, matches=score.rewarded > 0)
    if found is None:
        count = score.rewarded or score.episodes
        return f"({count} of {ENOUGH} results)" if count else ""
    return estimate(found.reward)
