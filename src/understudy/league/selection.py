"""Selection in population-based training: which agents are replaced by mutated copies of which.

Pure, and all from a seed: the same evidence gives the same lineage. No agent is replaced by bad
luck: a round of equally strong agents replaces none, with 95% confidence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import msgspec
import numpy as np

from understudy.core.chance import fold, uniform
from understudy.core.ops import NUMPY
from understudy.core.statistics import one_sided
from understudy.league.lineage import LineageRow, Settings

Counts: TypeAlias = tuple[int, int, int]
"""Wins, draws and losses."""
Evidence: TypeAlias = Mapping[str, Counts]
"""What an agent's matches since the last round came to, by scripted opponent."""

MIN_MATCHES = 30
"""Fewer matches say nothing: such an agent is neither among the best nor among the worst."""
CONFIDENCE = 0.95
FIRST_SPREAD = 4.0
"""Agents begin up to so many changes away from the settings that were given."""
SHAPING = (0.1, 10.0)
_FIRST, _CHANGE = 0xF125, 0xC4A6
_ENTROPY_MOST = 1.0


class Limits(NamedTuple):
    """Where a setting ends, for each of them: least and most."""

    learning_rate: tuple[float, float]
    entropy_weight: tuple[float, float] = (0.0, _ENTROPY_MOST)
    shaping: tuple[float, float] = SHAPING

    def within(self, settings: Settings) -> Settings:
        """The nearest settings that are allowed."""
        values = settings.as_dict()
        return Settings(
            **{
                name: min(max(value, getattr(self, name)[0]), getattr(self, name)[1])
                for name, value in values.items()
            }
        )


class AgentStanding(NamedTuple):
    """How good an agent is, and the standard error of that."""

    fitness: float
    error: float


def first_settings(
    given: Settings, *, agents: int, spread: float, limits: Limits, seed: int
) -> list[Settings]:
    """Those that a population begins with: the first agent has what was given."""
    others = [
        changed(given, spread=spread**FIRST_SPREAD, limits=limits, key=(seed, _FIRST, agent))
        for agent in range(2, agents + 1)
    ]
    return [given, *others]


def changed(settings: Settings, *, spread: float, limits: Limits, key: tuple[int, ...]) -> Settings:
    """Each setting multiplied or divided by up to `spread`, evenly on a scale of ratios."""
    hashed = np.zeros(1, np.uint32)
    for word in key:
        hashed = fold(hashed, word)
    values = settings.as_dict()
    draws = uniform(NUMPY, hashed, np.arange(len(values), dtype=np.uint32))[:, 0]
    factors = [spread ** (2.0 * float(draw) - 1.0) for draw in draws]
    return limits.within(
        Settings(
            **{
                name: value * factor
                for (name, value), factor in zip(values.items(), factors, strict=True)
            }
        )
    )


def standings(evidence: Sequence[Evidence]) -> list[AgentStanding | None]:
    """How good each agent is; None for one with too few matches.

    The mean over opponents, not over matches: an agent that loses fast meets the same opponent more
    often. Only those opponents count that every agent with enough matches has met.
    """
    enough = [sum(map(sum, each.values())) >= MIN_MATCHES for each in evidence]
    judged = [each for each, one in zip(evidence, enough, strict=True) if one]
    common = [name for name in (judged[0] if judged else ()) if all(_met(e, name) for e in judged)]
    return [
        _standing([each[name] for name in common]) if one and common else None
        for each, one in zip(evidence, enough, strict=True)
    ]


def pairs(found: Sequence[AgentStanding | None], *, replaced: float) -> list[tuple[int, int]]:
    """Indices (who gives way, whose copy takes its place): the worst gives way to the best, the
    second worst to the second best, and so on for the share `replaced` of all, at least one pair.

    A pair counts only where the difference is more than noise. Without that, equal agents would
    replace each other by luck alone, and after a few rounds all would descend from one: nothing
    would be left to select from. The bar is for the most different of all pairs (Bonferroni).
    """
    known = [index for index, one in enumerate(found) if one is not None]
    most = min(max(1, int(replaced * len(found))), len(known) // 2) if replaced else 0
    if not most:
        return []
    bar = one_sided(1.0 - (1.0 - CONFIDENCE) / (len(known) * (len(known) - 1)))
    ranked = sorted(known, key=lambda index: (-_sure(found[index]).fitness, index))
    return [
        (worst, best)
        for best, worst in zip(ranked[:most], reversed(ranked), strict=False)
        if _surely_better(_sure(found[best]), _sure(found[worst]), bar)
    ]


def held_round(
    *,
    number: int,
    steps: int,
    evidence: Sequence[Evidence],
    settings: Sequence[Settings],
    broken: Sequence[bool],
    replaced: float,
    spread: float,
    limits: Limits,
    seed: int,
) -> list[LineageRow]:
    """A round: one row an agent. `broken`: learning gave numbers that are not finite."""
    found = standings(evidence)
    parents = dict(pairs(found, replaced=replaced))
    rows = []
    for index, before in enumerate(settings):
        parent = parents.get(index, index)
        after, why = before, "stays"
        if parent != index:
            key = (seed, _CHANGE, number, index)
            after = changed(settings[parent], spread=spread, limits=limits, key=key)
            why = f"copy of agent {parent + 1}"
        elif broken[index]:
            half = msgspec.structs.replace(before, learning_rate=before.learning_rate / 2.0)
            after, why = limits.within(half), "numbers were not finite: half the learning rate"
        elif found[index] is None:
            why = "stays: too few matches"
        rows.append(
            LineageRow(
                round=number,
                steps=steps,
                agent=index + 1,
                parent=parent + 1,
                fitness=_fitness(found[index]),
                parent_fitness=_fitness(found[parent]),
                before=before,
                after=after,
                why=why,
            )
        )
    return rows


def _met(evidence: Evidence, name: str) -> bool:
    return sum(evidence.get(name, (0, 0, 0))) > 0


def _standing(counts: Sequence[Counts]) -> AgentStanding:
    scores, variance = [], 0.0
    for wins, draws, losses in counts:
        matches = wins + draws + losses
        scores.append((wins + 0.5 * draws) / matches)
        # With one win and one loss more: ten wins of ten are not a certainty.
        mean = (wins + 1 + 0.5 * draws) / (matches + 2)
        one = (wins + 1 + 0.25 * draws) / (matches + 2) - mean * mean
        variance += one / matches
    return AgentStanding(sum(scores) / len(scores), math.sqrt(variance) / len(scores))


def _surely_better(one: AgentStanding, other: AgentStanding, bar: float) -> bool:
    return one.fitness - other.fitness > bar * math.hypot(one.error, other.error)


def _sure(standing: AgentStanding | None) -> AgentStanding:
    assert standing is not None
    return standing


def _fitness(standing: AgentStanding | None) -> float | None:
    return None if standing is None else round(standing.fitness, 6)
