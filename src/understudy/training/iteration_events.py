"""What an iteration of the arena tells the journal. Pure."""

from __future__ import annotations

import math

from understudy.arena.results import Iteration, OpponentLatents
from understudy.match.tally import EvaluationReport
from understudy.telemetry import events

_FEW = 3
"""Numbers of a latent that are told: enough to see opponents part, few enough to keep for ever."""


def batch_trained(
    iteration: Iteration, *, steps: int, seconds: float, learning_rate: float, passes: int
) -> events.BatchTrained:
    """What its update came to."""
    return events.BatchTrained(
        matches=iteration.matches,
        replayed=0,
        steps=steps,
        seconds=seconds,
        learning_rate=learning_rate,
        samples_per_insert=float(passes),
        **iteration.metrics,  # type: ignore[arg-type]  # all floats, by name
    )


def evaluated(report: EvaluationReport, *, version: int, opponent: str) -> events.Evaluated:
    """Frozen matches against one opponent."""
    tally = report.tally
    return events.Evaluated(
        version=version,
        matches=tally.matches,
        wins=tally.wins,
        draws=tally.draws,
        losses=tally.losses,
        opponent=opponent,
    )


def matches_trained(iteration: Iteration, *, steps: int, stage: str) -> events.MatchesTrained:
    """What its matches came to."""
    results = iteration.results
    played = {name: one for name, one in results.items() if one.matches}
    return events.MatchesTrained(
        steps=steps,
        stage=stage,
        results={name: (one.started, *one.counts) for name, one in results.items()},
        returns={name: one.returns / one.matches for name, one in played.items()},
        terms={name: one.terms for name, one in played.items()},
        measures={name: one.measures for name, one in played.items() if one.measures},
        ended=[(one.opponent, one.score, one.frames, one.returned) for one in iteration.ended],
        residual=iteration.residual,
    )


def strategy_measured(
    now: OpponentLatents, before: OpponentLatents | None, *, steps: int
) -> events.StrategyMeasured:
    """What it makes of its opponents, and how far that moved since the last time."""
    return events.StrategyMeasured(
        steps=steps,
        latent_mean=now.mean,
        latent_spread=now.spread,
        attention_entropy=now.attention_entropy,
        drift=drift(now, before),
        by_opponent={name: latent[:_FEW] for name, latent in now.latents.items()},
    )


def drift(now: OpponentLatents, before: OpponentLatents | None) -> float:
    """The mean distance between the latents of each opponent then and now; 0 at the start."""
    known = before.latents if before else {}
    moved = [math.dist(now.latents[name], known[name]) for name in now.latents if name in known]
    return sum(moved) / len(moved) if moved else 0.0


def checkpoint_judged(
    reports: dict[str, EvaluationReport], *, steps: int, version: int, seconds: float
) -> events.CheckpointJudged:
    """Frozen matches of a version, by opponent."""
    return events.CheckpointJudged(
        steps=steps,
        version=version,
        seconds=seconds,
        opponents={name: _judged(report) for name, report in reports.items()},
    )


def _judged(report: EvaluationReport) -> events.OpponentTally:
    tally, means = report.tally, report.measures
    sums = {name: means.get(name, 0.0) * tally.matches for name in events.OPPONENT_MEASURES}
    return events.OpponentTally(
        wins=tally.wins,
        draws=tally.draws,
        losses=tally.losses,
        mean_return=report.mean_return,
        **sums,
    )
