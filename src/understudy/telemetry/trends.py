"""How the numbers of a run went over time, in bounded memory: what sparklines and checks read.

A trend holds at most `_MOST` bins, each of equally many values; a full one joins neighbours, which
changes no mean. So a year of play takes as much room as an hour, with wider bins.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, reduce
from itertools import compress
from operator import add, attrgetter, mul
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

from understudy.core.opponents import kind_of
from understudy.telemetry import events as ev
from understudy.telemetry.journal import Entry
from understudy.telemetry.latency import quantile
from understudy.telemetry.played import played_by_rules

_MOST = 512
_MOST_TRENDS = 128
"""Names of opponents are a bot's own words: what would be the 129th trend is left out."""
_LARGEST = 1e100
_WON = {"victory": 1.0, "tie": 0.0, "defeat": 0.0}
_RETURN_OF = {"victory": "return_won", "defeat": "return_lost"}


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


TrendMoment: TypeAlias = tuple[float, int]
"""When a value was, and the newest version then."""


class Trend(msgspec.Struct):
    """One number over the time of a run."""

    bins: list[TrendBin] = []
    values_a_bin: int = 1
    room: int = 0
    """Values that the last bin still takes."""

    def add(
        self,
        t: float,
        value: float,
        version: int,
        weight: float = 1.0,
        least: float | None = None,
        most: float | None = None,
    ) -> None:
        """One more value; what is not finite or weighs nothing is left out, and what is so large
        that sums of it would not be finite.

        `least` and `most`: where the value is the mean of several, the bounds of those.
        """
        if not (-_LARGEST < value < _LARGEST and weight > 0):
            return
        low, high = value if least is None else least, value if most is None else most
        if self.room:
            last = self.bins[-1]
            last.t, last.version = t, version
            last.weight += weight
            last.total += value * weight
            # Not `min` and `max`: calls, in the line that a long journal runs through most often.
            if low < last.least:  # noqa: PLR1730
                last.least = low
            if high > last.most:  # noqa: PLR1730
                last.most = high
        else:
            if len(self.bins) == _MOST:
                pairs = zip(self.bins[::2], self.bins[1::2], strict=True)
                self.bins = [_joined(a, b) for a, b in pairs]
                self.values_a_bin *= 2
            self.bins.append(TrendBin(t, version, weight, value * weight, low, high))
            self.room = self.values_a_bin
        self.room -= 1

    def extend(
        self,
        moments: Sequence[TrendMoment],
        values: Sequence[float],
        weights: Sequence[float] | None = None,
    ) -> None:
        """Several values, each as `add` would, to the same bits; without weights each weighs 1."""
        place = 0
        while place < len(values):
            end = min(place + self.room, len(values))
            some = values[place:end]
            if some and self._fill(some, None if weights is None else weights[place:end]):
                self.bins[-1].t, self.bins[-1].version = moments[end - 1]
            else:  # the first value of a bin, or one among them may not count
                end = max(end, place + 1)
                for one in range(place, end):
                    t, version = moments[one]
                    self.add(t, values[one], version, 1.0 if weights is None else weights[one])
            place = end

    def _fill(self, values: Sequence[float], weights: Sequence[float] | None) -> bool:
        """Add values to the last bin, which has room for them. False: one of them may not count,
        and nothing was added."""
        last, least, most = self.bins[-1], min(values), max(values)
        # One after the other (`sum` compensates): values in any pieces give the same bits.
        if weights is None:
            weight: float = last.weight + len(values)
            total = reduce(add, values, last.total)
        else:
            weight = reduce(add, weights, last.weight)
            total = reduce(add, map(mul, values, weights), last.total)
        # What is not a number makes a total that is none, wherever it stands.
        if not (least > -_LARGEST and most < _LARGEST and math.isfinite(total)):
            return False
        if weights is not None and min(weights) <= 0:
            return False
        last.weight, last.total = weight, total
        last.least, last.most = min(last.least, least), max(last.most, most)
        self.room -= len(values)
        return True

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
    | `return_won`, `return_lost` | the same, of matches that were won, lost | matches |
    | `aborted` | share of matches without a result | matches |
    | `match_s`, `decisions` | a match of a bot | matches |
    | `decision_p50_us`, `decision_p99_us` | `decide` in a match | decisions |
    | `loss`, `policy_loss`, `value_loss`, `entropy`, `kl`, `explained_variance`, `clip_share`,
      `gradient_norm`, `learning_rate`, `samples_per_insert`, `behaviour_kl` | batches | batches |
    | `version_lag` | versions that the decisions of a batch were old, at least | decisions |
    | `steps_s` | decisions trained on a second of training | seconds |
    | `utilisation`, `buffer` | of the learner behind a server | events |
    | `entropy_share`, `gate_agreement` | of the learner behind a server | batches, events |
    | `answer_p50_us`, `answer_p99_us` | from reading a message to its answer | answers |
    | `decisions_s` | decisions of a server a second | seconds |
    | `wait_share` | what the gate of a server holds back, explored or not | proposals |
    | `benchmark.OPPONENT`, `benchmark` | frozen win rate of a checkpoint, against all together |
      matches |
    | `benchmark_s` | seconds that a benchmark took | benchmarks |
    | `win_rate.OPPONENT` | of `train`; snapshots together are `self` | matches |
    | `draw_rate`, `frames`, `alike` | of `train`: draws, the length of a match, and matches of an
      environment that a time limit ended with the rewards of the first | matches |
    | `latent_spread`, `latent_apart`, `attention_entropy` | strategy latents: how far they lie from
      their mean, how far the means of opponents lie from each other | iterations |
    | `memory_mb` | resident memory of the learner, where it is known | versions |
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
            case ev.VersionPublished() as e:
                self.version = max(self.version, e.version)
                if e.memory_mb:
                    self._put(entry.t, "memory_mb", e.memory_mb)
            case ev.MatchFinished() as e:
                self._match(entry.t, e)
            case ev.BatchTrained() as e:
                self._batch(entry.t, e)
            case ev.MatchesTrained() as e:
                self._matches(entry.t, e)
            case ev.ContinuousTrained() as e:
                self._continuous(entry.t, e)
            case ev.ServerCounted() as e:
                self._served(entry.t, e)
            case ev.CheckpointJudged() as e:
                self._judged(entry.t, e)
            case ev.StrategyMeasured() as e:
                self._strategy(entry.t, e)

    def extend(self, entries: Iterable[Entry]) -> None:
        """Some more entries, to the same bits as `add` of each. The matches and batches of a bot,
        which are most of a long journal, are added a trend at a time."""
        matches, batches = _Told[ev.MatchFinished](), _Told[ev.BatchTrained]()
        for entry in entries:
            event = entry.e
            if isinstance(event, ev.MatchFinished):
                matches.moments.append((entry.t, self.version))
                matches.events.append(event)
            elif isinstance(event, ev.BatchTrained):
                batches.moments.append((entry.t, self.version))
                batches.events.append(event)
            elif isinstance(event, ev.VersionPublished):
                self.add(entry)
            elif type(event) in _OTHERS:
                self._extend_all(matches, batches)
                matches, batches = _Told(), _Told()
                self.add(entry)
        self._extend_all(matches, batches)

    def _extend_all(
        self, matches: _Told[ev.MatchFinished], batches: _Told[ev.BatchTrained]
    ) -> None:
        if matches.events:
            self._extend_matches(matches)
        if batches.events:
            self._extend_batches(batches)

    def _extend_matches(self, told: _Told[ev.MatchFinished]) -> None:
        """`_match` of each."""
        events = told.events
        outcomes = [e.outcome for e in events]
        decisions = [e.decisions for e in events]
        finished = told.where([outcome in _WON for outcome in outcomes])
        rules = [played_by_rules(e) for e in finished.events]
        for name, theirs in (("rules_win_rate", True), ("win_rate", False)):
            mine = finished.where([one is theirs for one in rules])
            won = [0.0 if e.fault else _WON[e.outcome] for e in mine.events]
            self._extend(mine, name, won)
        self._extend(told, "return", [e.reward for e in events])
        for ending, name in _RETURN_OF.items():
            mine = told.where([outcome == ending for outcome in outcomes])
            self._extend(mine, name, [e.reward for e in mine.events])
        aborted = [1.0 if outcome == "aborted" else 0.0 for outcome in outcomes]
        self._extend(told, "aborted", aborted)
        self._extend(told, "match_s", [e.seconds for e in events])
        self._extend(told, "decisions", decisions)
        self._extend(told, "decision_p50_us", [e.decision_us[0] for e in events], decisions)
        self._extend(told, "decision_p99_us", [e.decision_us[1] for e in events], decisions)

    def _extend_batches(self, told: _Told[ev.BatchTrained]) -> None:
        """`_batch` of each; what is not a number is left out."""
        events, nan = told.events, math.nan
        for name, value in _OF_A_BATCH.items():
            self._extend(told, name, [value(e) for e in events])
        kl = [nan if e.behaviour_kl is None else e.behaviour_kl for e in events]
        self._extend(told, "behaviour_kl", kl)
        seconds = [e.seconds for e in events]
        steps_s = [e.steps / e.seconds if e.seconds > 0 else nan for e in events]
        self._extend(told, "steps_s", steps_s, seconds)
        lags, decisions = _Told[str](), list[int]()
        for moment, e in zip(told.moments, events, strict=True):
            for lag, count in e.version_lag.items():
                lags.moments.append(moment)
                lags.events.append(lag)
                decisions.append(count)
        self._extend(lags, "version_lag", [_least_lag(lag) for lag in lags.events], decisions)

    def _match(self, t: float, e: ev.MatchFinished) -> None:
        if e.outcome in _WON:
            who = "rules_win_rate" if played_by_rules(e) else "win_rate"
            self._put(t, who, 0.0 if e.fault else _WON[e.outcome])
        self._put(t, "return", e.reward)
        if e.outcome in _RETURN_OF:
            self._put(t, _RETURN_OF[e.outcome], e.reward)
        self._put(t, "aborted", float(e.outcome == "aborted"))
        self._put(t, "match_s", e.seconds)
        self._put(t, "decisions", e.decisions)
        self._put(t, "decision_p50_us", e.decision_us[0], e.decisions)
        self._put(t, "decision_p99_us", e.decision_us[1], e.decisions)

    def _batch(self, t: float, e: ev.BatchTrained) -> None:
        for name, value in _OF_A_BATCH.items():
            self._put(t, name, value(e))
        if e.behaviour_kl is not None:
            self._put(t, "behaviour_kl", e.behaviour_kl)
        if e.seconds > 0:
            self._put(t, "steps_s", e.steps / e.seconds, e.seconds)
        for lag, decisions in e.version_lag.items():
            self._put(t, "version_lag", _least_lag(lag), decisions)

    def _continuous(self, t: float, e: ev.ContinuousTrained) -> None:
        for name, value in _OF_A_BATCH.items():
            self._put(t, name, value(e), e.batches)
        self._put(t, "entropy_share", e.entropy_share, e.batches)
        if e.behaviour_kl is not None:
            self._put(t, "behaviour_kl", e.behaviour_kl, e.batches)
        self._put(t, "utilisation", e.utilisation)
        self._put(t, "buffer", e.buffer)
        if e.agreement is not None:
            self._put(t, "gate_agreement", e.agreement)

    def _served(self, t: float, e: ev.ServerCounted) -> None:
        answers = sum(e.answers)
        for name, share in (("answer_p50_us", 0.5), ("answer_p99_us", 0.99)):
            if (seconds := quantile(e.answers, share)) is not None:
                self._put(t, name, 1e6 * seconds, answers)
        if e.seconds > 0:
            self._put(t, "decisions_s", e.decisions / e.seconds, e.seconds)
        if judged := e.sent + e.waited:
            self._put(t, "wait_share", (e.waited + e.explored) / judged, judged)

    def _matches(self, t: float, e: ev.MatchesTrained) -> None:
        wins, draws, losses = (sum(one[i] for one in e.results.values()) for i in (1, 2, 3))
        if count := wins + draws + losses:
            self._put(t, "win_rate", wins / count, count)
            self._put(t, "draw_rate", draws / count, count)
        ended = {
            name: sum(e.results[name][1:]) if name in e.results else e.matches for name in e.returns
        }
        # One value for all opponents: one for each would show a line that jumps between them.
        if count := sum(ended.values()):
            total = sum(mean * ended[name] for name, mean in e.returns.items())
            self._put(t, "return", total / count, count)
        for name, (won, count) in _by_kind(e.results).items():
            self._put(t, f"win_rate.{name}", won / max(count, 1), count)
        if frames := [one[2] for one in e.ended]:
            mean = sum(frames) / len(frames)
            self._put(t, "frames", mean, len(frames), least=min(frames), most=max(frames))
        if e.matches:
            self._put(t, "alike", e.alike / e.matches, e.matches)

    def _judged(self, t: float, e: ev.CheckpointJudged) -> None:
        wins = matches = 0
        for name, one in e.opponents.items():
            count = one.wins + one.draws + one.losses
            wins, matches = wins + one.wins, matches + count
            self._put(t, f"benchmark.{name}", one.wins / max(count, 1), count)
        self._put(t, "benchmark", wins / max(matches, 1), matches)
        self._put(t, "benchmark_s", e.seconds)

    def _strategy(self, t: float, e: ev.StrategyMeasured) -> None:
        self._put(t, "latent_spread", e.latent_spread)
        self._put(t, "attention_entropy", e.attention_entropy)
        if len(e.by_opponent) > 1:
            self._put(t, "latent_apart", _apart(list(e.by_opponent.values())))

    def _put(
        self,
        t: float,
        name: str,
        value: float,
        weight: float = 1.0,
        *,
        least: float | None = None,
        most: float | None = None,
    ) -> None:
        trend = self.trends.get(name)
        if trend is None:
            counts = weight > 0 and -_LARGEST < value < _LARGEST
            if not counts or len(self.trends) >= _MOST_TRENDS:
                return
            trend = self.trends[name] = Trend()
        trend.add(t, value, self.version, weight, least, most)

    def _extend(
        self,
        told: _Told[Any],
        name: str,
        values: Sequence[float],
        weights: Sequence[float] | None = None,
    ) -> None:
        trend = self.trends.get(name, Trend())
        trend.extend(told.moments, values, weights)
        if trend.bins and len(self.trends) < _MOST_TRENDS:
            self.trends.setdefault(name, trend)


E = TypeVar("E")


class _Told(Generic[E]):
    """Events of one kind in their order, each with its moment."""

    def __init__(self) -> None:
        self.moments: list[TrendMoment] = []
        self.events: list[E] = []

    def where(self, taken: Sequence[bool]) -> _Told[E]:
        """Some of them."""
        some = _Told[E]()
        some.moments += compress(self.moments, taken)
        some.events += compress(self.events, taken)
        return some


_OTHERS = {
    ev.MatchesTrained,
    ev.ContinuousTrained,
    ev.ServerCounted,
    ev.CheckpointJudged,
    ev.StrategyMeasured,
}
"""Events with trends beside matches, batches and versions. Some are those of matches or batches
too, and the order in which trends begin says which are beyond `_MOST_TRENDS`."""
_OF_A_BATCH = {
    name: attrgetter(name)
    for name in (
        "loss", "policy_loss", "value_loss", "entropy", "kl", "explained_variance", "clip_share",
        "gradient_norm", "learning_rate", "samples_per_insert",
    )
}  # fmt: skip


@cache
def _least_lag(lag: str) -> float:
    """The lower end of a bucket of `BatchTrained.version_lag`: `4-7`, `64+`; nan: no number."""
    digits = lag.partition("-")[0].rstrip("+")
    return float(digits) if digits.isdecimal() else math.nan


def _by_kind(results: Mapping[str, tuple[int, int, int, int]]) -> dict[str, tuple[int, int]]:
    """Wins and matches by opponent, snapshots together."""
    found: dict[str, tuple[int, int]] = {}
    for name, (_, wins, draws, losses) in results.items():
        won, count = found.get(kind_of(name), (0, 0))
        found[kind_of(name)] = won + wins, count + wins + draws + losses
    return found


def _apart(latents: Sequence[Sequence[float]]) -> float:
    """The root of the mean square distance of latents from their mean, a number of them."""
    means = [sum(column) / len(latents) for column in zip(*latents, strict=True)]
    squares = [(x - mean) ** 2 for one in latents for x, mean in zip(one, means, strict=True)]
    return math.sqrt(sum(squares) / len(squares)) if squares else 0.0


def _joined(a: TrendBin, b: TrendBin) -> TrendBin:
    return TrendBin(
        b.t, b.version, a.weight + b.weight, a.total + b.total,
        min(a.least, b.least), max(a.most, b.most),
    )  # fmt: skip
