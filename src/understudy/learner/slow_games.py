"""Slow games: how a batch of one or two new matches is learned from (ADR 0051).

All decisions of a match have its result in common, so many steps on one match follow the noise of
one result, and the optimiser takes steps that repeat each other for a signal. A batch of few new
matches is therefore one step, over these matches and the earlier ones that still have samples left:
each match is sampled as often as elsewhere, beside others and not in a row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import structs

from understudy.core.config import LearnerConfig
from understudy.experience.episode import Episode

FEW = 3
"""Fewer matches than this are few."""
_RATE, _KL = 16.0, 0.02
"""One step instead of dozens may be larger, as far as it moves the policy this much less."""
_ENTROPY = 0.5
"""The bonus acts with every match, its counterweight with those that say something new."""


def batch_settings(
    config: LearnerConfig, new: Sequence[Episode], *, by_evidence: bool
) -> LearnerConfig:
    """Settings for a batch with these new matches: `config` itself, unless they are few.

    They are also `config` itself where rules play, or evidence moves the champion: a clone needs
    its passes, and ADR 0037 says how small steps are beside rules. The same holds without replay,
    where there is nothing to learn from beside the new match.
    """
    if by_evidence or not config.replay_matches or not 0 < len(new) < FEW:
        return config
    if np.mean([episode.sampled.mean() for episode in new]) < 0.5:
        return config
    columns = config.batch_matches + config.replay_matches
    earlier = (config.samples_per_insert - 1) * len(new)
    return structs.replace(
        config,
        epochs=1,
        minibatches=1,
        replay_matches=max(min(earlier, columns - len(new)), 0),
        learning_rate_max=_RATE * config.learning_rate_max,
        kl_target=_KL * config.kl_target,
        entropy_weight=_ENTROPY * config.entropy_weight,
    )
