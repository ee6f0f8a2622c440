"""How the numbers of a run went over time, in bounded memory: what sparklines and checks read.

A trend holds at most `_MOST` bins, each of equally many values; a full one joins neighbours, which
changes no mean. So a year of play takes as much room as an hour, with wider bins.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from understudy.telemetry import events as ev
from understudy.telemetry.journal import Entry
from understudy.telemetry.played import played_by_rules

_MOST = 512
_LARGEST = 1e100
_WON = {"victory": 1.0, "tie": 0.0, "defeat": 0.0}


class TrendBin(msgspec.Struct, array_like=True, gc=False):
    """Neighbouring values: when the last of them was, the newest version then, and their mean.
    Only `Trend.add` changes one: the last."""

    t: float
    version: int
    weight: float
    total: float
    least: float
    most: float

    @property
    def mean(self) -> float:
        return self.total / self.weight


class Trend(msgspec.Struct):
    """One number over the time of a run."""

    bins: list[TrendBin] = []
    values_a_bin: int = 1
    room: int = 0
    """Values that the last bin still takes."""

    def add(self, t: float, value: float, *, version: int, weight: float = 1.0) -> None:
        """One more value; what is not finite or weighs nothing is left out, and what is so large
        that sums of it would not be finite."""
        if not (-_LARGEST < value < _LARGEST and weight > 0):
            return
        if self.room:
            last = self.bins[-1]
            last.t, last.version = t, version
            last.weight += weight
            last.total += value * weight
            last.least = min(last.least, value)
            last.most = max(last.most, value)
        else:
            if len(self.bins) == _MOST:
                pairs = zip(self.bins[::2], self.bins[1::2], strict=True)
                self.bins = [_joined(a, b) for a, b in pairs]
                self.values_a_bin *= 2
            self.bins.append(TrendBin(t, version, weight, value * weight, value, value))
            self.room = self.values_a_bin
        self.room -= 1

    def copied(self) -> Trend:
        """The trend now: what is added later does not change the copy."""
        last = [msgspec.structs.replace(one) for one in self.bins[-1:]]
        return Trend([*self.bins[:-1], *last], self.values_a_bin, self.room)

    def means(self) -> list[float]:
        """The mean of each bin, oldest first."""
        return [one.mean for one in self.bins]

    @property
    def weight(self) -> float:
        """Of all values together."""
        return sum(one.weight for one in self.bins)

    def mean(self, *, of: Sequence[TrendBin] | None = None) -> float | None:
        """The mean of some bins or of all; None: there are none."""
        bins = self.bins if of is None else of
        weight = sum(one.weight for one in bins)
        return sum(one.total for one in bins) / weight if weight else None

    def last(self, weight: float) -> list[TrendBin]:
        """The newest bins that together weigh `weight` at least, or all."""
        taken, count = 0.0, 0
        for one in reversed(self.bins):
            if taken >= weight:
                break
            taken += one.weight
            count += 1
        return self.bins[len(self.bins) - count :]


Trends: TypeAlias = dict[str, Trend]
"""By name; a name without values is not there. `TrendFold` says which there are."""


class TrendFold:
    """Makes trends from journal entries, each added once.

    | name | of | weight |
    |---|---|---|
    | `win_rate`, `rules_win_rate` | finished matches of the policy, of the rules | matches |
    | `return` | rewards of a match | matches |
    | `match_s`, `decisions` | a match of a bot | matches |
    | `decision_p50_us`, `decision_p99_us` | `decide` in a match | decisions |
    | `loss`, `policy_loss`, `value_loss`, `entropy`, `kl`, `explained_variance`, `clip_share`,
      `gradient_norm`, `learning_rate`, `samples_per_insert`, `behaviour_kl` | batches | batches |
    | `steps_s` | decisions trained on a second of training | seconds |
    | `reward`, `utilisation`, `buffer` | of the learner behind a server | events |
    | `benchmark.OPPONENT` | frozen win rate of a checkpoint | matches |
    """

    def __init__(self, trends: Trends | None = None, *, version: int = 0) -> None:
        self.trends: Trends = {} if trends is None else trends
        self.version = version

    def copied(self) -> Trends:
        """The trends now; also the state that the constructor takes back, with `version`."""
        return {name: trend.copied() for name, trend in self.trends.items()}

    def add(self, entry: Entry) -> None:
        """One more entry."""
        match entry.e:
            case ev.MatchFinished() as e:
                self._match(entry.t, e)
            case ev.BatchTrained() as e:
                self._batch(entry.t, e)
            case ev.MatchesTrained() as e:
                self._matches(entry.t, e)
            case ev.ContinuousTrained() as e:
                self._put(entry.t, "loss", e.loss, e.batches)
                self._put(entry.t, "utilisation", e.utilisation)
                self._put(entry.t, "buffer", e.buffer)
                self._put(entry.t, "samples_per_insert", e.samples_per_insert)
            case ev.CheckpointJudged() as e:
                for name, one in e.opponents.items():
                    count = one.wins + one.draws + one.losses
                    self._put(entry.t, f"benchmark.{name}", one.wins / max(count, 1), count)
            case ev.VersionPublished() as e:
                self.version = max(self.version, e.version)

    def _match(self, t: float, e: ev.MatchFinished) -> None:
        if e.outcome in _WON:
            who = "rules_win_rate" if played_by_rules(e) else "win_rate"
            self._put(t, who, 0.0 if e.fault else _WON[e.outcome])
        self._put(t, "return", e.reward)
        self._put(t, "match_s", e.seconds)
        self._put(t, "decisions", e.decisions)
        self._put(t, "decision_p50_us", e.decision_us[0], e.decisions)
        self._put(t, "decision_p99_us", e.decision_us[1], e.decisions)

    def _batch(self, t: float, e: ev.BatchTrained) -> None:
        for name in _OF_A_BATCH:
            self._put(t, name, getattr(e, name))
        if e.behaviour_kl is not None:
            self._put(t, "behaviour_kl", e.behaviour_kl)
        if e.seconds > 0:
            self._put(t, "steps_s", e.steps / e.seconds, e.seconds)

    def _matches(self, t: float, e: ev.MatchesTrained) -> None:
        wins, draws, losses = (sum(one[i] for one in e.results.values()) for i in (1, 2, 3))
        if count := wins + draws + losses:
            self._put(t, "win_rate", wins / count, count)
        for name, mean in e.returns.items():
            ended = sum(e.results[name][1:]) if name in e.results else e.matches
            self._put(t, "return", mean, ended)

    def _put(self, t: float, name: str, value: float, weight: float = 1.0) -> None:
        trend = self.trends.get(name)
        if trend is None:
            trend = self.trends[name] = Trend()
        trend.add(t, value, version=self.version, weight=weight)


_OF_A_BATCH = (
    "loss", "policy_loss", "value_loss", "entropy", "kl", "explained_variance", "clip_share",
    "gradient_norm", "learning_rate", "samples_per_insert",
)  # fmt: skip


def _joined(a: TrendBin, b: TrendBin) -> TrendBin:
    return TrendBin(
        b.t, b.version, a.weight + b.weight, a.total + b.total,
        min(a.least, b.least), max(a.most, b.most),
    )  # fmt: skip
