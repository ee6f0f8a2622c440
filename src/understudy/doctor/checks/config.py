"""Checks of the settings: values that cancel one another, that can never act, or that are absurd.

What is wrong in any run is refused when settings are read (`core.config`). Here is what is allowed
and yet does not do what it says, given what kind of run this is and how long its matches are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from understudy.core.config import LeagueConfig, PopulationConfig, PromotionConfig
from understudy.core.config.section import Section
from understudy.core.opponents import SELF
from understudy.doctor.evidence import Evidence
from understudy.doctor.findings import Certainty, Finding, Weight, section
from understudy.gates.promotion.records import TrialSettings
from understudy.promotion.expectation import next_verdict
from understudy.registry.run_folder import holds_run

_MATCHES = 20
_CONCLUDES = 0.1
_SHORT_S = 120.0


class _Conflict(NamedTuple):
    """One disagreement, in words."""

    title: str
    figures: str
    advice: str
    weight: Weight = "warning"
    certainty: Certainty = "certain"


def disagreements(evidence: Evidence) -> Iterator[Finding]:
    """Settings that cancel one another, or can never act."""
    found = {
        "ring": (*_ring(evidence), *_promotion(evidence)),
        "server": (*_server(evidence), *_promotion(evidence)),
        "training": tuple(_training(evidence)),
    }
    for one in found[evidence.kind]:
        yield _finding("config-disagrees", one)


def absurd_values(evidence: Evidence) -> Iterator[Finding]:
    """Values with which nothing is learned, or everything is lost, in any game that we know."""
    for one in _absurd(evidence):
        yield _finding("config-absurd", one)


def _finding(check: str, one: _Conflict) -> Finding:
    return Finding(
        check=check,
        weight=one.weight,
        certainty=one.certainty,
        title=one.title,
        evidence=(one.figures,),
        next_step=one.advice,
        link=section(check),
    )


# --- the ring ------------------------------------------------------------------------------------


def _ring(evidence: Evidence) -> Iterator[_Conflict]:
    config, status = evidence.config.learner, evidence.status
    if config.replay_matches and config.samples_per_insert < 2 * config.epochs:
        yield _Conflict(
            "No match is ever replayed, though replay is on.",
            f"learner.epochs = {config.epochs} passes use {config.epochs} of "
            f"learner.samples_per_insert = {config.samples_per_insert} samples of a match at once; "
            f"what is left is less than another {config.epochs}.",
            f"Set learner.samples_per_insert to {2 * config.epochs} or more, or "
            "learner.replay_matches=0.",
            weight="note",
        )
    elif config.replay_matches and config.replay_capacity < config.replay_matches:
        yield _Conflict(
            "The replay holds fewer matches than a batch asks it for.",
            f"learner.replay_capacity = {config.replay_capacity}, learner.replay_matches = "
            f"{config.replay_matches}.",
            "Raise learner.replay_capacity, or lower learner.replay_matches.",
            weight="note",
        )
    if 0.0 < config.kl_stop < 0.5 * config.kl_target:
        yield _Conflict(
            "The learning rate can only rise: passes stop long before the KL that it aims at.",
            f"learner.kl_stop = {config.kl_stop:g} ends a batch before learner.kl_target = "
            f"{config.kl_target:g} is half reached, and the rate rises below half of it.",
            "Set learner.kl_stop above learner.kl_target, or 0.",
        )
    if not config.imitation_weight and status.mode in ("shadow", "auto"):
        yield _Conflict(
            "Nothing is imitated, and in this mode the rules play.",
            f"learner.imitation_weight = 0 in mode {status.mode!r}: their decisions teach the "
            "value alone.",
            "Set learner.imitation_weight=1, or play in mode learn.",
            weight="problem" if status.mode == "shadow" else "warning",
        )
    yield from _pace(evidence)


def _pace(evidence: Evidence) -> Iterator[_Conflict]:
    """Settings in seconds against how long matches take here."""
    config, status = evidence.config.learner, evidence.status
    lengths = evidence.trend("match_s")
    took = lengths.mean(of=lengths.last(_MATCHES))
    if lengths.weight < _MATCHES or took is None:
        return
    span = lengths.bins[-1].t - lengths.bins[0].t
    if config.publish_interval_s > span > _SHORT_S and status.versions < 2:
        yield _Conflict(
            "Versions are published more rarely than the whole run lasts.",
            f"learner.publish_interval_s = {config.publish_interval_s:g}; the run has played for "
            f"{span:,.0f} s and has {status.versions} versions.",
            "Lower learner.publish_interval_s: 0.5 is the default.",
        )
    if took > config.max_age_s:
        yield _Conflict(
            "Matches take longer than experience may be old, so none is learned from.",
            f"A match takes {took:,.0f} s, learner.max_age_s = {config.max_age_s:g}.",
            f"Raise learner.max_age_s to {10 * took:,.0f} or more.",
            weight="problem",
        )
    if status.mode != "learn" or not status.versions or span <= 0.0:
        return
    versions = evidence.trend("match_s").bins[-1].version - lengths.bins[0].version
    lag = versions / span * took
    if lag > config.max_version_lag:
        yield _Conflict(
            "Versions come so fast that a match is too old before it ends: it teaches the value "
            "alone.",
            f"{versions / span:.1f} versions a second and {took:,.0f} s a match make {lag:,.0f} "
            f"versions; learner.max_version_lag = {config.max_version_lag}.",
            f"Raise learner.max_version_lag to {2 * lag:,.0f}, or learner.publish_interval_s.",
            weight="problem",
        )


# --- promotion -----------------------------------------------------------------------------------


def _promotion(evidence: Evidence) -> Iterator[_Conflict]:
    config, status = evidence.config.promotion, evidence.status
    served = evidence.kind == "server"
    acts = (
        evidence.config.live.promotion == "auto" if served else status.mode in ("auto", "play", "")
    )
    if not acts:
        changed = _changed(config, PromotionConfig())
        if changed:
            where = "live.promotion is 'latest'" if served else f"the mode is {status.mode!r}"
            how = "--promotion auto" if served else "--mode auto"
            yield _Conflict(
                "Settings of promotion are set, and nothing is promoted in this run.",
                f"{_listed(changed)}; {where}.",
                f"Play with {how}, or leave them out.",
                weight="note",
            )
        return
    if not evidence.folder.by_evidence or config.policy == "latest":
        return
    if not config.practice_share and not config.cameo_share:
        yield _Conflict(
            "No version ever plays to learn, so versions can only copy the rules.",
            "promotion.practice_share = 0 and promotion.cameo_share = 0: rules that always choose "
            "alike show one action in a situation.",
            "Set promotion.practice_share=0.2 or promotion.cameo_share=0.05 (the defaults).",
            certainty="likely",
        )
    if config.first_canaries >= config.longest * config.first_share:
        yield _Conflict(
            "The canary never comes to its full share.",
            f"Until it has played promotion.first_canaries = {config.first_canaries} matches it "
            f"plays {config.first_share:.0%}; a test ends after {config.longest} in all.",
            "Lower promotion.first_canaries, or raise promotion.longest.",
        )
    yield from _length_of_tests(config, served=served)
    took = evidence.trend("match_s")
    longest = max((one.most for one in took.bins), default=0.0)
    if took.weight >= _MATCHES and longest > config.match_timeout_s:
        yield _Conflict(
            "Matches take longer than promotion waits for them: they count as lost.",
            f"The longest took {longest:,.0f} s, promotion.match_timeout_s = "
            f"{config.match_timeout_s:g}.",
            f"Raise promotion.match_timeout_s to {3 * longest:,.0f}.",
            weight="problem",
        )


def _length_of_tests(config: PromotionConfig, *, served: bool) -> Iterator[_Conflict]:
    """Whether a test could promote a version that is better by 20 points (it is simulated)."""
    tests = ("alpha", "spend", "reign_alpha", "first_share", "first_canaries", "share", "longest",
             "long")  # fmt: skip
    if not _changed(config, PromotionConfig(), only=tests):
        return
    settings = TrialSettings(**{name: getattr(config, name) for name in tests})
    alpha = config.alpha if config.spend == "each" else config.reign_alpha / 5.6
    found = next_verdict(settings, alpha=alpha, against=0, incumbent_mean=0.5, scored=served)
    if found.better < _CONCLUDES:
        yield _Conflict(
            "No test can promote a version: tests are too short for the evidence that is asked.",
            f"promotion.alpha = {config.alpha:g} asks for evidence of {1.0 / alpha:,.0f}; a test "
            f"ends after promotion.long = {config.long} matches. Of 200 simulated tests of a "
            f"version that is better by 20 points {found.better:.0%} promote it.",
            "Raise promotion.long and promotion.longest (300 and 600 by default), or "
            "promotion.alpha.",
            weight="problem",
            certainty="likely",
        )


# --- servers -------------------------------------------------------------------------------------


def _server(evidence: Evidence) -> Iterator[_Conflict]:
    live, continuous = evidence.config.live, evidence.config.continuous
    if live.threshold >= live.reward_clip:
        yield _Conflict(
            "The gate can send nothing: no expected reward is above its threshold.",
            f"live.threshold = {live.threshold:g}, and rewards are clipped to plus and minus "
            f"live.reward_clip = {live.reward_clip:g}.",
            "Lower live.threshold.",
            weight="problem",
        )
    if live.threshold < -live.reward_clip:
        yield _Conflict(
            "The gate lets everything through: every expected reward is above its threshold.",
            f"live.threshold = {live.threshold:g}, live.reward_clip = {live.reward_clip:g}.",
            "Raise live.threshold.",
        )
    if not continuous.actual_weight and not continuous.simulated_weight:
        yield _Conflict(
            "Every reward that is learned from is 0.",
            "continuous.actual_weight = 0 and continuous.simulated_weight = 0.",
            "Set continuous.actual_weight=0.7 and continuous.simulated_weight=0.3 (the defaults).",
            weight="problem",
        )
    if continuous.capacity < continuous.batch:
        yield _Conflict(
            "The replay holds fewer items than a batch has.",
            f"continuous.capacity = {continuous.capacity}, continuous.batch = {continuous.batch}.",
            "Raise continuous.capacity, or lower continuous.batch.",
        )
    if continuous.max_age_s < live.segment_s + continuous.training_interval_s:
        yield _Conflict(
            "Experience is too old before the learner sees it.",
            f"continuous.max_age_s = {continuous.max_age_s:g}, while a segment spans up to "
            f"live.segment_s = {live.segment_s:g} s before it leaves.",
            "Raise continuous.max_age_s (an hour by default).",
            weight="problem",
        )
    if continuous.samples_per_insert < 1.0 / continuous.capacity * continuous.min_batch:
        yield _Conflict(
            "The bound on samples is so low that hardly a batch is ever due.",
            f"continuous.samples_per_insert = {continuous.samples_per_insert:g}.",
            "Raise continuous.samples_per_insert (8 by default).",
        )
    if continuous.entropy_floor > 0.3:
        yield _Conflict(
            "A policy that decides anything counts as collapsed.",
            f"continuous.entropy_floor = {continuous.entropy_floor:g} of the largest entropy; "
            "a healthy server is below 0.3 after a minute.",
            "Lower continuous.entropy_floor (0.005 by default).",
            certainty="likely",
        )
    if live.score and live.score[1] - live.score[0] > 8.0 * live.reward_clip:
        yield _Conflict(
            "Scores of segments all lie in a small part of their scale, so tests take long.",
            f"live.score = {list(live.score)}, while rewards are within plus and minus "
            f"{live.reward_clip:g}.",
            "Set live.score to the lowest and highest mean reward that a segment really has.",
        )


# --- training ------------------------------------------------------------------------------------


def _training(evidence: Evidence) -> Iterator[_Conflict]:
    config, status = evidence.config, evidence.status
    train, league, stages = config.train, config.league, config.curriculum.stages
    mixes = [train.opponents, *(stage.opponents for stage in stages)]
    meets_itself = any(SELF in mix for mix in mixes)
    arena = status.reward is None
    if train.steps and meets_itself and league.save_freq > train.steps:
        yield _Conflict(
            "It never meets itself: no snapshot is taken before the end.",
            f"league.save_freq = {league.save_freq:,}, train.steps = {train.steps:,}.",
            "Lower league.save_freq.",
        )
    elif (
        arena
        and meets_itself
        and not stages
        and not status.snapshots
        and status.learner == "stopped"
        and status.steps > 1_000_000
    ):
        yield _Conflict(
            "It never met itself: the run took no snapshot.",
            f"league.save_freq = {league.save_freq:,}, and the run ended after "
            f"{status.steps:,} steps.",
            "Lower league.save_freq.",
        )
    if arena and status.opponents and not meets_itself:
        changed = _changed(league, LeagueConfig(), only=("sampler", "recent", "power", "stint"))
        if changed:
            yield _Conflict(
                "Settings say which snapshot is met, and no snapshot is ever met.",
                f"{_listed(changed, 'league')}; train.opponents = {train.opponents!r}.",
                f"Add {SELF} to train.opponents, or leave them out.",
                weight="note",
            )
    steps, every = train.steps, config.monitor.benchmark_steps
    if arena and steps and every > 10 * steps:
        yield _Conflict(
            "No benchmark is played: the run is shorter than a tenth of the steps between two.",
            f"monitor.benchmark_steps = {every:,}, train.steps = {steps:,}.",
            "Lower monitor.benchmark_steps.",
            weight="note",
        )
    # An agent of a population keeps its settings, for when it goes on alone.
    if config.population.agents == 1 and not holds_run(evidence.folder.root.parent):
        changed = _changed(config.population, PopulationConfig())
        if changed:
            yield _Conflict(
                "Settings of a population are set, and there is one agent.",
                f"{_listed(changed, 'population')}; population.agents = 1.",
                "Raise population.agents, or leave them out.",
                weight="note",
            )
    if config.curriculum.pin and len(stages) > 1:
        yield _Conflict(
            f"The curriculum stays in its stage {config.curriculum.pin}.",
            f"curriculum.pin = {config.curriculum.pin!r}: the other {len(stages) - 1} stages are "
            "never met.",
            "Leave curriculum.pin empty.",
            weight="note",
        )
    kl_stop, kl_target = config.learner.kl_stop, config.learner.kl_target
    if train.schedule == "adaptive" and 0.0 < kl_stop < 0.5 * kl_target:
        yield _Conflict(
            "The learning rate can only rise: passes stop long before the KL that it aims at.",
            f"learner.kl_stop = {kl_stop:g}, learner.kl_target = {kl_target:g}.",
            "Set learner.kl_stop above learner.kl_target, or 0.",
        )


# --- values --------------------------------------------------------------------------------------


def _absurd(evidence: Evidence) -> Iterator[_Conflict]:
    config = evidence.config.learner
    if config.learning_rate > 0.02:
        yield _Conflict(
            f"The learning rate is {config.learning_rate:g}: with Adam that throws learning away.",
            f"learner.learning_rate = {config.learning_rate:g}; the default is 0.0005, and named "
            "configs have at most 0.001.",
            "Set learner.learning_rate and learner.learning_rate_max below 0.003.",
            weight="problem",
            certainty="likely",
        )
    if config.entropy_weight > 0.5:
        yield _Conflict(
            "The entropy bonus outweighs every reward: the policy stays at random.",
            f"learner.entropy_weight = {config.entropy_weight:g}; the default is 0.02. Advantages "
            "are scaled to 1.",
            "Set learner.entropy_weight between 0 and 0.05.",
            certainty="likely",
        )
    if config.clip > 1.0:
        yield _Conflict(
            "Nothing keeps an update near the policy that played.",
            f"learner.clip = {config.clip:g} lets a probability grow "
            f"{1.0 + config.clip:g} times in one batch; the default is 0.2.",
            "Set learner.clip between 0.1 and 0.3.",
            certainty="likely",
        )
    if not config.value_weight and config.algorithm == "actor_critic":
        yield _Conflict(
            "The value is never trained, and advantages are measured by it.",
            "learner.value_weight = 0 with learner.algorithm = 'actor_critic'.",
            "Set learner.value_weight=0.5, or learner.algorithm=reinforce.",
        )
    yield from _horizon(evidence)


def _horizon(evidence: Evidence) -> Iterator[_Conflict]:
    """Whether a discount forgets the result of a match long before its end."""
    gamma, trend = evidence.config.learner.gamma, evidence.trend("decisions")
    if evidence.kind == "training":
        trend = evidence.trend("frames")
    length = trend.mean()
    if gamma >= 1.0 or trend.weight < _MATCHES or length is None:
        return
    horizon = 1.0 / (1.0 - gamma)
    if length < 20.0 * horizon:
        return
    yield _Conflict(
        "The result of a match is discounted to nothing before its first decisions.",
        f"learner.gamma = {gamma:g} looks about {horizon:.0f} decisions ahead, and a match has "
        f"{length:,.0f}.",
        f"Set learner.gamma={1.0 - 4.0 / length:.4f} or so, unless rewards follow at once.",
        certainty="possible",
    )


def _changed(now: Section, default: Section, *, only: tuple[str, ...] = ()) -> dict[str, object]:
    names = only or now.__struct_fields__
    values = msgspec.structs.asdict(now)
    return {name: values[name] for name in names if values[name] != getattr(default, name)}


def _listed(changed: dict[str, object], name: str = "promotion") -> str:
    shown = [f"{name}.{key} = {value!r}" for key, value in list(changed.items())[:4]]
    return ", ".join(shown) + (", ..." if len(changed) > 4 else "")


CHECKS = (disagreements, absurd_values)
