"""When practice begins: the newest version decides as the rules do, or has learned enough.

Until then it would lose most matches that it is given, and learn little from them.
"""

from __future__ import annotations

from collections.abc import Callable

from understudy.core.config import PromotionConfig


def may_practise(
    *,
    begun: bool,
    agreement: float | None,
    learned_enough: Callable[[], bool],
    config: PromotionConfig,
) -> bool:
    """Whether the newest version may be given whole matches, to learn.

    `begun`: a version of this run has practised before; then it stays. `learned_enough` says
    whether it may practise without agreement, and is only called where that decides.
    """
    if config.practice_share == 0.0:
        return False
    if begun or (agreement is not None and agreement >= config.practice_agreement):
        return True
    return learned_enough()
