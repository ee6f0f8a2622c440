"""Checks of `train`: does it win more, against whom, and where does its time go?

Win rates against snapshots stay near one half however much is learned, and shares of opponents
change between stages of a curriculum. So learning is judged by scripted bots, one by one, and by
frozen benchmarks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from understudy.core.opponents import SELF
from understudy.core.statistics import wilson
from understudy.doctor.comparing import deviations, fallen, first, mean_of, swings, windows
from understudy.doctor.evidence import Evidence
from understudy.doctor.findings import Finding, section
from understudy.policy.strategist import Strategist
from understudy.telemetry import events as ev
from understudy.telemetry.trends import Trend

_SURE = 3.0
"""Standard errors that no chance explains, with a few looks at a run."""
_ENOUGH_MATCHES = 500
_LEAST_STEPS = 1_000_000
"""Of the arena: with fewer, a healthy run has often won nothing yet (docs/benchmarks.md)."""
_LEAST_ENVIRONMENT_STEPS = 50_000
_LOW = 0.4
"""A win rate surely below this is low."""
_DROP = 0.15
"""A benchmark that has fallen by this from its best is a loss, if chance does not explain it."""
_LOST_SHARE, _SURE_OF_RETURNS = 0.5, 5.0
_FAILURES, _FAILED_SHARE = 2, 0.01
"""Failures of training, and their share of batches from which on they are more than bad luck."""
_NAN = "not finite"
_BEATS_ITSELF, _LOSES_TO_BOTS = 0.6, 0.5
_SWING = 0.25
_TURNS = 4
_BENCHMARKS = 4
_WINDOWS = 16
_MEASURED = 30
"""Iterations before the strategy encoder is judged."""
_APART = 0.05
_TINY = 1e-3
_UNIFORM = 0.99
"""Healthy runs of preset small begin at 0.996 of the largest entropy and are at 0.96 after 27
iterations."""
_ALL_DRAWN = 0.95
_SLOWER = 4.0
_BENCHMARK_SHARE = 0.4
_STAGE_MATCHES = 10


def _bots(evidence: Evidence) -> dict[str, Trend]:
    """The win rate against each scripted bot."""
    prefix = "win_rate."
    return {
        name.removeprefix(prefix): trend
        for name, trend in evidence.trends.items()
        if name.startswith(prefix) and name != f"{prefix}{SELF}"
    }


def not_learning(evidence: Evidence) -> Iterator[Finding]:
    """Neither wins nor returns have risen since the start, and few matches are won."""
    status = evidence.status
    if evidence.kind != "training" or status.stage or status.steps < _LEAST_STEPS:
        return
    rate, returns = evidence.trend("win_rate"), evidence.trend("return")
    if rate.weight < 4 * _ENOUGH_MATCHES or SELF in _met(evidence):
        return
    start = mean_of(first(rate, _ENOUGH_MATCHES), share=True)
    now = mean_of(rate.last(_ENOUGH_MATCHES), share=True)
    if deviations(now, start) > _SURE or now.mean + _SURE * now.error > _LOW:
        return
    if _risen(returns):
        return
    against = [
        f"Against {name}: {mean_of(trend.last(100), share=True).mean:.0%} of late."
        for name, trend in sorted(_bots(evidence).items())
    ]
    yield Finding(
        check="training-not-learning",
        weight="problem",
        certainty="likely",
        title="Training does not make the policy better.",
        evidence=(
            f"{status.steps:,} steps. Won at the start {start.mean:.1%} of {start.weight:,.0f}, "
            f"of late {now.mean:.1%} of {now.weight:,.0f}.",
            "The mean return has not risen either.",
            *against,
        ),
        next_step="Train against an easy opponent alone (train.opponents=constant), look at "
        "reward_breakdown.csv, and compare learner.learning_rate and learner.entropy_weight with "
        "their defaults: understudy config show",
        link=section("training-not-learning"),
    )


def environment_not_learning(evidence: Evidence) -> Iterator[Finding]:
    """In an environment the return is where it was at the start."""
    status, returns = evidence.status, evidence.trend("return")
    is_environment = evidence.kind == "training" and status.reward is not None
    if not is_environment or len(status.sides) > 1 or status.steps < _LEAST_ENVIRONMENT_STEPS:
        return
    if returns.weight < 100 or len(returns.bins) < 2 * _WINDOWS or _all_alike(evidence):
        return
    tenth = max(len(returns.bins) // 10, 3)
    start, now = mean_of(returns.bins[:tenth]), mean_of(returns.bins[-tenth:])
    if deviations(now, start) > _SURE or _risen(returns):
        return
    yield Finding(
        check="training-not-learning",
        weight="warning",
        certainty="possible",
        title="The return of a match is where it was at the start.",
        evidence=(
            f"{status.steps:,} steps, {returns.weight:,.0f} matches. Mean return of the first "
            f"tenth {start.mean:.4g}, of the last {now.mean:.4g}.",
        ),
        next_step="Explore further (--set train.noise_steps=16), train longer, or try another "
        "--seed. Where this return is the largest possible, all is well.",
        link=section("training-not-learning"),
    )


def _risen(returns: Trend) -> bool:
    """Whether a stretch after the first lies surely above the first; also where too little is
    known."""
    size = len(returns.bins) // 8
    if size < 2:
        return True
    parts = [mean_of(returns.bins[at : at + size]) for at in range(0, 8 * size, size)]
    return any(deviations(one, parts[0]) > _SURE for one in parts[1:])


def never_beaten(evidence: Evidence) -> Iterator[Finding]:
    """Many opponents are beaten, one never is."""
    if evidence.kind != "training" or evidence.status.steps < 2 * _LEAST_STEPS:
        return
    rates = {
        name: mean_of(trend.last(_ENOUGH_MATCHES), share=True)
        for name, trend in _bots(evidence).items()
        if trend.weight >= 2 * _ENOUGH_MATCHES
    }
    beaten = [name for name, rate in rates.items() if rate.mean > 0.5]
    for name, rate in sorted(rates.items()):
        if beaten and wilson(rate.mean * rate.weight, round(rate.weight))[1] < 0.05:
            yield Finding(
                check="opponent-never-beaten",
                weight="warning",
                certainty="likely",
                title=f"The policy wins against others, and never against {name}.",
                evidence=(
                    f"Of the last {rate.weight:,.0f} matches against {name} it won "
                    f"{rate.mean:.1%}; it wins most against {', '.join(sorted(beaten))}.",
                ),
                next_step=f"Meet {name} more often: train.opponents={name}=3,... or a stage of a "
                "curriculum.",
                link=section("opponent-never-beaten"),
            )


def went_backwards(evidence: Evidence) -> Iterator[Finding]:
    """The best benchmark is long past."""
    bins = evidence.trend("benchmark").bins
    if evidence.kind != "training":
        return
    found = fallen(bins, least=_DROP, errors=_SURE, last=_BENCHMARKS)
    if found is None:
        return
    then, now = found
    yield Finding(
        check="training-went-backwards",
        weight="problem",
        certainty="likely",
        title=f"Learning went backwards: version {then.version} was better than those of today.",
        evidence=(
            f"Benchmarks: version {then.version} won {then.mean:.0%} of {then.weight:,.0f}, the "
            f"last {_BENCHMARKS} together {now.mean:.0%} of {now.weight:,.0f}; it is the best of "
            f"{len(bins)} benchmarks.",
        ),
        next_step=f"Go back: understudy models rollback {then.version} --run "
        f"{evidence.folder.root}; then train on with a smaller learner.learning_rate_max or "
        "learner.clip.",
        link=section("training-went-backwards"),
    )


def return_went_backwards(evidence: Evidence) -> Iterator[Finding]:
    """In an environment, most of what the return had gained is lost again."""
    status, bins = evidence.status, evidence.trend("return").bins
    is_environment = evidence.kind == "training" and status.reward is not None
    size = len(bins) // 8
    if not is_environment or len(status.sides) > 1 or size < 4:
        return
    parts = [mean_of(bins[at : at + size]) for at in range(0, 8 * size, size)]
    start, best, now = (
        parts[0],
        max(parts[:-2], key=lambda one: one.mean),
        mean_of(bins[-2 * size :]),
    )
    if best.mean <= start.mean or best.mean - now.mean < _LOST_SHARE * (best.mean - start.mean):
        return
    if min(deviations(best, now), deviations(best, start)) < _SURE_OF_RETURNS:
        return
    yield Finding(
        check="training-went-backwards",
        weight="warning",
        certainty="possible",
        title="The return was better before: most of what it had gained is lost.",
        evidence=(
            f"Mean return of an eighth of the matches: {start.mean:.4g} at the start, "
            f"{best.mean:.4g} at its best (version {best.version}), {now.mean:.4g} of late.",
        ),
        next_step=f"Go back: understudy models rollback {best.version} --run "
        f"{evidence.folder.root}; then train on with a smaller learner.learning_rate_max.",
        link=section("training-went-backwards"),
    )


def not_finite(evidence: Evidence) -> Iterator[Finding]:
    """Batches gave numbers that are not finite, or the policy collapsed, and were given up."""
    status = evidence.status
    failed = [one for one in status.problems if one.where == "training" and _NAN in one.message]
    count = max(len(failed), status.rollbacks)
    if count < _FAILURES:
        return
    since = [one for one in failed if one.t >= (status.last_version_time or 0.0)]
    stuck = not status.versions or max(len(since), status.fruitless) >= _FAILURES
    often = count >= _FAILED_SHARE * status.batches_trained
    version = f"; the newest version is {status.version}" if status.versions else ""
    yield Finding(
        check="training-not-finite",
        weight="problem" if stuck else "warning" if often else "note",
        certainty="certain",
        title="Training fails again and again, and goes back to what it had."
        if stuck or often
        else "Training failed a few times, and went back to what it had.",
        evidence=(
            f"{count:,} times or more in {status.batches_trained:,} batches{version}.",
            *(f"The last time: {one.message}"[:300] for one in failed[-1:]),
        ),
        next_step="Smaller steps: learner.learning_rate_max a third of what it is "
        f"({evidence.config.learner.learning_rate_max:g}), learner.max_gradient_norm at most 0.5. "
        "Then look for a feature or a reward of absurd size.",
        link=section("training-not-finite"),
    )


def overfits_self_play(evidence: Evidence) -> Iterator[Finding]:
    """Wins against its own past, loses to scripted bots."""
    own, judged = evidence.trend(f"win_rate.{SELF}"), evidence.trend("benchmark")
    if evidence.kind != "training" or own.weight < _ENOUGH_MATCHES or len(judged.bins) < 2:
        return
    against_self = mean_of(own.last(_ENOUGH_MATCHES), share=True)
    against_bots = mean_of(judged.bins[-2:], share=True)
    if against_self.mean < _BEATS_ITSELF or against_bots.mean > _LOSES_TO_BOTS:
        return
    if deviations(against_self, against_bots) < _SURE:
        return
    worst = {
        name.removeprefix("benchmark."): trend.bins[-1].mean
        for name, trend in evidence.trends.items()
        if name.startswith("benchmark.")
    }
    named = ", ".join(f"{name} {rate:.0%}" for name, rate in sorted(worst.items()))
    yield Finding(
        check="overfits-self-play",
        weight="warning",
        certainty="likely",
        title="The policy beats its own past, and loses to scripted bots.",
        evidence=(
            f"Against snapshots it won {against_self.mean:.0%} of the last "
            f"{against_self.weight:,.0f} matches, in the last two benchmarks "
            f"{against_bots.mean:.0%} of {against_bots.weight:,.0f}.",
            f"The last benchmark: {named}.",
        ),
        next_step="Meet scripted bots more often: train.opponents=self=5,based=2,random=2,"
        "constant=1, or understudy train GAME --config curriculum",
        link=section("overfits-self-play"),
    )


def oscillates(evidence: Evidence) -> Iterator[Finding]:
    """Win rates against the same opponent swing beyond the error of sampling."""
    if evidence.kind != "training":
        return
    benchmark = evidence.trend("benchmark")
    series = {"benchmarks": windows(benchmark, count=64, least=1, share=True)}
    for name, trend in sorted(_bots(evidence).items()):
        series[f"matches against {name}"] = windows(trend, count=_WINDOWS, least=100, share=True)
    for what, values in series.items():
        turning = swings(values, least=_SWING)
        if len(turning) - 2 < _TURNS:
            continue
        shown = " -> ".join(f"{one.mean:.0%}" for one in turning[-8:])
        yield Finding(
            check="oscillates",
            weight="warning",
            certainty="likely",
            title=f"Training swings: the win rate in {what} rises and falls again and again.",
            evidence=(
                f"{len(turning) - 2} turns of {100 * _SWING:.0f} points or more, each beyond four "
                f"standard errors: {shown}.",
            ),
            next_step="Take smaller steps: halve learner.learning_rate_max, set learner.clip=0.1, "
            "or learn from more at once (train.games, train.segment).",
            link=section("oscillates"),
        )
        return


def latent_ignores_opponent(evidence: Evidence) -> Iterator[Finding]:
    """The strategy latent is the same against every opponent."""
    spread, apart = evidence.trend("latent_spread"), evidence.trend("latent_apart")
    if apart.weight < _MEASURED:
        return
    third = apart.weight / 3
    lie, differ = spread.mean(of=spread.last(third)), apart.mean(of=apart.last(third))
    if lie is None or differ is None or not (lie < _TINY or differ < _APART * lie):
        return
    yield Finding(
        check="latent-ignores-opponent",
        weight="warning",
        certainty="likely",
        title="The strategy latent does not tell opponents apart.",
        evidence=(
            f"Latents lie {lie:.3g} from their mean, the mean latents of different opponents "
            f"{differ:.3g} from each other (a healthy run: about as far).",
        ),
        next_step="Give the encoder something to learn from: learner.opponent_weight and "
        "learner.recognition_weight above 0, opponents that differ, and features that show what "
        "they do. understudy analyze shows whether it helps.",
        link=section("latent-ignores-opponent"),
    )


def uniform_attention(evidence: Evidence) -> Iterator[Finding]:
    """Attention weighs all frames alike."""
    network, trend = evidence.folder.spec.network, evidence.trend("attention_entropy")
    if not isinstance(network, Strategist) or trend.weight < 2 * _MEASURED:
        return
    largest = math.log(network.window)
    now = trend.mean(of=trend.last(trend.weight / 3))
    if network.window < 2 or now is None or now < _UNIFORM * largest:
        return
    yield Finding(
        check="uniform-attention",
        weight="note",
        certainty="likely",
        title="Attention weighs all frames of the opponent alike.",
        evidence=(
            f"Its entropy is {now:.3f} nats of at most {largest:.3f} (ln {network.window}), over "
            f"the last third of {trend.weight:,.0f} iterations.",
        ),
        next_step="See whether the latent tells opponents apart (understudy analyze). If not, "
        "raise learner.opponent_weight or train longer.",
        link=section("uniform-attention"),
    )


def never_by_goal(evidence: Evidence) -> Iterator[Finding]:
    """Time limits end all matches."""
    if evidence.kind != "training":
        return
    if _all_alike(evidence):
        count = evidence.trend("alike").weight
        what = f"The time limit ended all {count:,.0f} matches, each with the rewards of the first."
        advice = "Explore further: --set train.noise_steps=16"
        yield _no_goal("certain", what, advice)
        return
    draws, frames = evidence.trend("draw_rate"), evidence.trend("frames")
    last = frames.last(200)
    if draws.weight < 200 or not last:
        return
    rate = mean_of(draws.last(200), share=True)
    longest = max(one.most for one in last)
    if rate.mean >= _ALL_DRAWN and min(one.least for one in last) >= longest:
        what = (
            f"Of the last {rate.weight:,.0f} matches {rate.mean:.0%} were draws, and each took "
            f"{longest:,.0f} frames."
        )
        advice = (
            "Reward what leads to a goal (rewards.set=dense, or approach), or meet an opponent "
            "that comes: train.opponents=based"
        )
        yield _no_goal("likely", what, advice)


def _no_goal(certainty: str, what: str, advice: str) -> Finding:
    return Finding(
        check="never-by-goal",
        weight="problem",
        certainty="certain" if certainty == "certain" else "likely",
        title="No match ends by a goal, so there is nothing to learn from.",
        evidence=(what,),
        next_step=advice,
        link=section("never-by-goal"),
    )


def _all_alike(evidence: Evidence) -> bool:
    alike = evidence.trend("alike")
    return alike.weight >= 32 and min(one.least for one in alike.bins) >= 1.0


def stage_not_passed(evidence: Evidence) -> Iterator[Finding]:
    """A curriculum that has stood in one stage for most of a run."""
    status, curriculum = evidence.status, evidence.config.curriculum
    stage = next((one for one in curriculum.stages if one.name == status.stage), None)
    if stage is None or not stage.threshold or curriculum.pin:
        return
    _, whom = stage.measured
    spent = status.steps - status.stage_since
    if spent < _LEAST_STEPS or spent < status.steps / 2:
        return
    lines = []
    for name in whom:
        trend = evidence.trend(f"win_rate.{name}")
        if trend.weight < _STAGE_MATCHES * stage.min_matches:
            return
        now = mean_of(trend.last(stage.window), share=True)
        if now.mean > stage.threshold:
            return
        lines.append(
            f"Against {name} it won {now.mean:.0%} of the last {now.weight:,.0f} matches; the "
            f"stage asks for {stage.measure} above {stage.threshold:.0%}."
        )
    yield Finding(
        check="stage-not-passed",
        weight="warning",
        certainty="likely",
        title=f"The curriculum does not get beyond the stage {stage.name}.",
        evidence=(f"{spent:,} of {status.steps:,} steps were spent in it.", *lines),
        next_step=f"Lower {stage.where}.threshold, change its rewards or opponents, or put an "
        "easier stage before it.",
        link=section("stage-not-passed"),
    )


def no_update(evidence: Evidence) -> Iterator[Finding]:
    """A session ended before its first update."""
    status, train = evidence.status, evidence.config.train
    if evidence.kind != "training" or status.batches_trained or status.versions:
        return
    if status.learner != "stopped":
        return
    yield Finding(
        check="no-update",
        weight="problem",
        certainty="certain",
        title="Training ended before its first update: nothing was learned.",
        evidence=(
            f"{status.steps:,} steps were played. One iteration is train.games x train.segment = "
            f"{train.games:,} x {train.segment:,} = {train.games * train.segment:,} steps; in an "
            "environment the first one only fits the normaliser.",
        ),
        next_step="Train for more --steps, or set smaller train.games or train.segment.",
        link=section("no-update"),
    )


def slower_steps(evidence: Evidence) -> Iterator[Finding]:
    """Steps a second have fallen to a fraction of what they were."""
    trend = evidence.trend("steps_s")
    if evidence.kind != "training" or len(trend.bins) < 2 * _WINDOWS:
        return
    found = windows(trend, count=_WINDOWS, least=1.0)
    if len(found) < _WINDOWS // 2:
        return
    best, now = max(found[:-4], key=lambda one: one.mean), mean_of(trend.last(trend.weight / 8))
    if now.mean * _SLOWER > best.mean:
        return
    yield Finding(
        check="slower-steps",
        weight="note",
        certainty="possible",
        title=f"Training has become {best.mean / max(now.mean, 1e-9):.0f} times slower.",
        evidence=(
            f"{best.mean:,.0f} steps a second at its best, {now.mean:,.0f} of late.",
            *_where_time_goes(evidence),
        ),
        next_step="Look for another program on this machine, and at monitor.benchmark_steps and "
        "train.record, which take time of their own.",
        link=section("slower-steps"),
    )


def much_benchmarking(evidence: Evidence) -> Iterator[Finding]:
    """Benchmarks take a large part of the time."""
    judged, trained = evidence.trend("benchmark_s"), evidence.trend("steps_s")
    if evidence.kind != "training" or len(judged.bins) < _BENCHMARKS:
        return
    took, learned = sum(one.total for one in judged.bins), trained.weight
    share = took / max(took + learned, 1e-9)
    if share < _BENCHMARK_SHARE:
        return
    yield Finding(
        check="much-benchmarking",
        weight="warning",
        certainty="certain",
        title=f"Benchmarks take {share:.0%} of the time of training.",
        evidence=(
            f"{judged.weight:,.0f} benchmarks took {took:,.0f} s, training {learned:,.0f} s.",
            *_where_time_goes(evidence),
        ),
        next_step="Benchmark more rarely or with fewer matches: monitor.benchmark_steps "
        f"({evidence.config.monitor.benchmark_steps:,} now), monitor.benchmark_matches "
        f"({evidence.config.monitor.benchmark_matches} now).",
        link=section("much-benchmarking"),
    )


def _where_time_goes(evidence: Evidence) -> list[str]:
    """Of the newest entries of this session, in one line; nothing where they are too few."""
    entries = list(evidence.view.recent)
    starts = [at for at, one in enumerate(entries) if isinstance(one.e, ev.LearnerStarted)]
    entries = entries[starts[-1] :] if starts else entries
    wall = entries[-1].t - entries[0].t if entries else 0.0
    if wall <= 0.0:
        return []
    iterations = sum(one.e.seconds for one in entries if isinstance(one.e, ev.BatchTrained))
    judged = sum(one.e.seconds for one in entries if isinstance(one.e, ev.CheckpointJudged))
    rest = max(wall - iterations - judged, 0.0)
    parts = {"updates": iterations, "benchmarks": judged, "the rest": rest}
    shown = ", ".join(f"{name} {seconds / wall:.0%}" for name, seconds in parts.items())
    return [
        f"Of the last {wall:,.0f} s: {shown} (in the arena playing is a part of the updates, in "
        "environments of the rest)."
    ]


def _met(evidence: Evidence) -> str:
    """Who is met, as the settings say it."""
    return evidence.config.train.opponents


CHECKS = (
    not_learning,
    environment_not_learning,
    never_beaten,
    went_backwards,
    return_went_backwards,
    not_finite,
    overfits_self_play,
    oscillates,
    latent_ignores_opponent,
    uniform_attention,
    never_by_goal,
    stage_not_passed,
    no_update,
    slower_steps,
    much_benchmarking,
)
