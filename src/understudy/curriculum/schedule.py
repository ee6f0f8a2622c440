"""How far the rewards of a stage have turned from its first set into its last. Pure."""

from __future__ import annotations


def blend(stage_steps: int, anneal_steps: int) -> float:
    """The share of the last set after so many steps in the stage: 0 at its start, 1 from
    `anneal_steps` on, a straight line between; always 0 where nothing is annealed."""
    if anneal_steps <= 0:
        return 0.0
    return min(max(stage_steps / anneal_steps, 0.0), 1.0)
