"""The rows of the tables of training: a pure translation of journal entries.

A row belongs to one table and says at how many steps it was made; rows come in the order of steps.
A match and a rare event give a row at once. Iterations are added up in a `TrainingInterval` until
some seconds are over, a version is made or the stage of the curriculum changes.

An interval keeps sums alone, so its rows are exact however it was cut. Returns and reward terms are
multiples of 2**-16: float64 adds them without rounding, and the residual of an interval is 0 unless
a match's own sums were not exact.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

from understudy.core.statistics import wilson
from understudy.telemetry import events as ev
from understudy.telemetry.journal import Entry
from understudy.telemetry.table import Value

ALL = "all"
"""What takes an opponent's place in rows over all of them; no bot can be called so."""

Ratio: TypeAlias = tuple[str, str]
"""The two measures of a game that a ratio divides."""
NO_RATIOS: Mapping[str, Ratio] = MappingProxyType({})

_MEANS = (
    "loss", "policy_loss", "value_loss", "opponent_loss", "recognition_loss", "entropy", "kl",
    "clip_share", "gradient_norm", "explained_variance",
)  # fmt: skip

MONITOR = "monitor"
BEHAVIOUR = "behavior_metrics"
REWARDS = "reward_breakdown"
STRATEGY = "strategy_analysis"
CHECKPOINTS = "checkpoint_benchmarks"
TRAINING = "training_metrics"
LEAGUE = "league"

_MEASURES = "*"
"""Stands where the measures of games have their columns."""
_RESULTS = ("matches", "wins", "draws", "losses", "win_rate")
_COLUMNS: dict[str, tuple[str, ...]] = {
    MONITOR: ("r", "l", "t", "steps", "opponent", "result"),
    BEHAVIOUR: (
        "time_s", "steps", "stage", "opponent", *_RESULTS, "mean_return", "mean_frames", _MEASURES,
    ),
    REWARDS: ("time_s", "steps", "stage", "opponent", "matches", "return", "residual"),
    STRATEGY: (
        "time_s", "steps", "opponent", "latent_mean", "latent_spread", "attention_entropy", "drift",
    ),
    CHECKPOINTS: (
        "time_s", "steps", "version", "opponent", *_RESULTS, "low", "high", "mean_return",
        _MEASURES, "seconds",
    ),
    TRAINING: (
        "time_s", "steps", "stage", "iterations", "loss", "policy_loss", "value_loss",
        "opponent_loss", "recognition_loss", "entropy", "kl", "clip_share", "gradient_norm",
        "explained_variance", "behaviour_kl", "behaviour_kl_max", "learning_rate",
        "gradient_steps", "steps_s",
    ),
    LEAGUE: ("time_s", "steps", "event", "name", "mu", "sigma", "kept", "pool", "note"),
}  # fmt: skip
_WORDS = {1: "win", 0: "draw", -1: "loss"}
_EVERY_S = 5.0

TableRow: TypeAlias = tuple[str, dict[str, Value]]


@dataclass
class Meetings:
    """Matches that ended against one opponent."""

    wins: int = 0
    draws: int = 0
    losses: int = 0
    unjudged: int = 0
    """without a winner or loser, as Gymnasium and PettingZoo environments have them"""
    frames: int = 0
    timed: int = 0
    """matches whose frames are known"""
    returned: float = 0.0
    terms: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    measures: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    @property
    def matches(self) -> int:
        """How many ended."""
        return self.wins + self.draws + self.losses + self.unjudged

    def join(self, other: Meetings) -> None:
        """Add those of another."""
        self.wins += other.wins
        self.draws += other.draws
        self.losses += other.losses
        self.unjudged += other.unjudged
        self.frames += other.frames
        self.timed += other.timed
        self.returned += other.returned
        _add(self.terms, other.terms)
        _add(self.measures, other.measures)


class TrainingInterval:
    """What happened since it began; give it every iteration once."""

    def __init__(self, ratios: Mapping[str, Ratio] = NO_RATIOS) -> None:
        self.steps = 0
        self.stage = ""
        self._ratios = ratios
        self.against: dict[str, Meetings] = {}
        self._batches: list[ev.BatchTrained] = []

    def add_batch(self, batch: ev.BatchTrained) -> None:
        """An update."""
        self._batches.append(batch)

    def add_matches(self, told: ev.MatchesTrained) -> None:
        """The matches of an iteration."""
        self.steps, self.stage = told.steps, told.stage
        unjudged = told.returns.keys() - told.results.keys()
        for name in unjudged:
            self._of(name).unjudged += told.matches
        for name, (_, wins, draws, losses) in told.results.items():
            if wins + draws + losses:
                one = self._of(name)
                one.wins += wins
                one.draws += draws
                one.losses += losses
        for name, _, frames, returned in told.ended:
            one = self._of(name)
            one.frames += frames
            one.timed += 1
            one.returned += returned
        if not told.ended:
            for name, mean in told.returns.items():
                one = self._of(name)
                judged = sum(told.results.get(name, (0, told.matches))[1:])
                one.returned += mean * judged
        for name, terms in told.terms.items():
            _add(self._of(name).terms, terms)
        for name, measures in told.measures.items():
            _add(self._of(name).measures, measures)

    def training(self) -> dict[str, Value]:
        """The row of `training_metrics.csv`, or nothing where nothing was updated."""
        batches = self._batches
        if not batches:
            return {}
        row: dict[str, Value] = {"iterations": len(batches)}
        row |= {name: sum(getattr(one, name) for one in batches) / len(batches) for name in _MEANS}
        seconds = sum(one.seconds for one in batches)
        means = [one.behaviour_kl for one in batches if one.behaviour_kl is not None]
        largest = [one.behaviour_kl_max for one in batches if one.behaviour_kl_max is not None]
        return row | {
            "behaviour_kl": sum(means) / len(means) if means else None,
            "behaviour_kl_max": max(largest, default=None),
            "learning_rate": batches[-1].learning_rate,
            "gradient_steps": sum(one.gradient_steps for one in batches),
            "steps_s": sum(one.steps for one in batches) / seconds if seconds > 0 else None,
        }

    def behaviour(self) -> list[dict[str, Value]]:
        """The rows of `behavior_metrics.csv`: one for each opponent that was met to the end."""
        return [self._behaviour(name, one) for name, one in self.against.items() if one.matches]

    def rewards(self) -> list[dict[str, Value]]:
        """The rows of `reward_breakdown.csv`: over all matches, then for each opponent."""
        met = {name: one for name, one in self.against.items() if one.matches}
        if not met:
            return []
        every = Meetings()
        for one in met.values():
            every.join(one)
        return [_rewards(name, one) for name, one in {ALL: every, **met}.items()]

    def _behaviour(self, name: str, one: Meetings) -> dict[str, Value]:
        judged = one.wins + one.draws + one.losses
        return {
            "opponent": name,
            "matches": one.matches,
            "wins": one.wins,
            "draws": one.draws,
            "losses": one.losses,
            "win_rate": one.wins / judged if judged else None,
            "mean_return": one.returned / one.matches,
            "mean_frames": one.frames / one.timed if one.timed else None,
            **behaviour_of(one.measures, one.matches, self._ratios),
        }

    def _of(self, name: str) -> Meetings:
        return self.against.setdefault(name, Meetings())


def behaviour_of(
    measures: Mapping[str, float], matches: int, ratios: Mapping[str, Ratio]
) -> dict[str, Value]:
    """Sums of measures as means over matches, and ratios as far as they can be formed."""
    row: dict[str, Value] = {name: total / matches for name, total in measures.items()}
    for name, (upper, lower) in ratios.items():
        if upper in measures and measures.get(lower):
            row[name] = measures[upper] / measures[lower]
    return row


def _add(totals: dict[str, float], more: Mapping[str, float]) -> None:
    for name, value in more.items():
        totals[name] += value


def _rewards(name: str, one: Meetings) -> dict[str, Value]:
    row: dict[str, Value] = {
        "opponent": name,
        "matches": one.matches,
        "return": one.returned / one.matches,
    }
    if one.terms and one.timed == one.matches:
        row["residual"] = one.returned - sum(one.terms.values())
    return row | {f"term_{term}": total / one.matches for term, total in one.terms.items()}


def columns_of(measures: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The columns that each table always has; `measures` are those of games, and their ratios.

    Reward terms (`term_…`), further measures and numbers of the latent (`latent_1`…) come after
    them, as they appear.
    """
    return {
        table: tuple(
            name for column in columns for name in (measures if column == _MEASURES else (column,))
        )
        for table, columns in _COLUMNS.items()
    }


class TrainingRows:
    """Turns entries into rows; times count from `start`, and `ratios` are columns of measures."""

    def __init__(
        self,
        start: float,
        *,
        ratios: Mapping[str, Ratio] = NO_RATIOS,
        every_s: float = _EVERY_S,
    ) -> None:
        self._start = start
        self._ratios = ratios
        self._every_s = every_s
        self._opened: float | None = None
        self._last = start
        self._interval = TrainingInterval(ratios)
        self._rating: ev.LearnerRated | None = None
        self._strategy: ev.StrategyMeasured | None = None

    def add(self, entry: Entry) -> Iterator[TableRow]:
        """The rows that this entry brings about; it counts once they are taken."""
        self._last = entry.t
        match entry.e:
            case ev.BatchTrained() as e:
                self._interval.add_batch(e)
            case ev.MatchesTrained() as e:
                yield from self._matches(e, entry.t)
            case ev.LearnerRated() as e:
                self._rating = e
            case ev.StrategyMeasured() as e:
                self._strategy = e
            case ev.VersionPublished() | ev.LearnerStopped():
                yield from self.close()
            case ev.CheckpointJudged() as e:
                yield from self.close()
                yield from self._judged(e)
            case ev.SnapshotTaken() | ev.StageChanged() | ev.AgentReplaced() as e:
                yield from self.close()
                yield self._row(LEAGUE, e.steps, _rare(e))

    def close(self) -> Iterator[TableRow]:
        """The rows of the interval so far; the next entry begins another."""
        interval, self._interval = self._interval, TrainingInterval(self._ratios)
        self._opened = self._last
        rating, self._rating = self._rating, None
        strategy, self._strategy = self._strategy, None
        stage: dict[str, Value] = {"stage": interval.stage}
        training = interval.training()
        if training and interval.steps:
            yield self._row(TRAINING, interval.steps, stage | training)
        for row in interval.behaviour():
            yield self._row(BEHAVIOUR, interval.steps, stage | row)
        for row in interval.rewards():
            yield self._row(REWARDS, interval.steps, stage | row)
        if strategy is not None:
            for row in _strategy(strategy):
                yield self._row(STRATEGY, strategy.steps, row)
        if rating is not None:
            rated: dict[str, Value] = {
                "event": "rating", "name": "learner", "mu": rating.mu, "sigma": rating.sigma,
            }  # fmt: skip
            yield self._row(LEAGUE, rating.steps, rated)

    def _matches(self, e: ev.MatchesTrained, t: float) -> Iterator[TableRow]:
        if e.stage != self._interval.stage and self._interval.steps:
            # The update of this iteration came before it: it is counted to the stage that ends.
            yield from self.close()
        for opponent, score, frames, returned in e.ended:
            result = _WORDS[score] if opponent in e.results else ""
            yield (
                MONITOR,
                {
                    "r": round(returned, 6), "l": frames, "t": round(t - self._start, 6),
                    "steps": e.steps, "opponent": opponent, "result": result,
                },
            )  # fmt: skip
        self._interval.add_matches(e)
        if self._opened is None:
            self._opened = t
        if not 0.0 <= t - self._opened < self._every_s:  # below 0: the clock was set back
            yield from self.close()

    def _judged(self, e: ev.CheckpointJudged) -> Iterator[TableRow]:
        for name, one in e.opponents.items():
            matches = one.wins + one.draws + one.losses
            if not matches:
                continue
            low, high = wilson(one.wins, matches)
            row: dict[str, Value] = {
                "version": e.version, "opponent": name, "matches": matches, "wins": one.wins,
                "draws": one.draws, "losses": one.losses, "win_rate": one.wins / matches,
                "low": low, "high": high, "mean_return": one.mean_return, "seconds": e.seconds,
            }  # fmt: skip
            behaviour = behaviour_of(one.measures, matches, self._ratios)
            yield self._row(CHECKPOINTS, e.steps, row | behaviour)

    def _row(self, table: str, steps: int, row: dict[str, Value]) -> TableRow:
        time_s = round(self._last - self._start, 3)
        return table, {"time_s": time_s, "steps": steps, **row}


def _strategy(e: ev.StrategyMeasured) -> Iterator[dict[str, Value]]:
    yield {
        "opponent": ALL,
        "latent_mean": e.latent_mean,
        "latent_spread": e.latent_spread,
        "attention_entropy": e.attention_entropy,
        "drift": e.drift,
    }
    for name, latent in e.by_opponent.items():
        yield {"opponent": name} | {f"latent_{i}": x for i, x in enumerate(latent, start=1)}


def _rare(e: ev.SnapshotTaken | ev.StageChanged | ev.AgentReplaced) -> dict[str, Value]:
    match e:
        case ev.SnapshotTaken():
            return {
                "event": "snapshot", "name": e.name, "kept": int(e.kept), "pool": e.pool,
                "note": e.reason,
            }  # fmt: skip
        case ev.StageChanged():
            came = f"after {e.before}: " if e.before else ""
            return {"event": "stage", "name": e.after, "note": f"{came}{e.reason}"}
        case ev.AgentReplaced():
            settings = ", ".join(f"{name} {value:.4g}" for name, value in e.settings.items())
            note = (
                f"by a copy of agent-{e.parent} (fitness {e.parent_fitness:.4g} against "
                f"{e.fitness:.4g}): {settings}"
            )
            return {"event": "replaced", "name": f"agent-{e.agent}", "note": note}
