"""The metrics that a server and a bot have in common, under the same names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from understudy.telemetry.promotion_status import PromotionStatus
from understudy.telemetry.status import LearnerState, Learning, Status


def gauge(name: str, words: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"understudy_{name}", words, value=value)


def counter(name: str, words: str, value: float) -> CounterMetricFamily:
    return CounterMetricFamily(f"understudy_{name}", words, value=value)


def learning_metrics(run: Status) -> Iterator[Metric]:
    """What the learner does, and what comes of it."""
    state = GaugeMetricFamily("understudy_learner", "What the learner does.", labels=["state"])
    for name in get_args(LearnerState):
        state.add_metric([name], float(run.learner == name))
    yield state
    learning = GaugeMetricFamily(
        "understudy_learning", "Whether anything comes of it.", labels=["state"]
    )
    for name in get_args(Learning):
        learning.add_metric([name], float(run.learning == name))
    yield learning
    waits_s = run.experience_waits_s
    yield gauge("experience_waiting_seconds", "Since when no version has come for it.", waits_s)
    yield counter("learner_deaths", "Times that it was started again.", run.learner_deaths)
    yield counter("training_steps", "Batches learned from.", run.batches_trained)
    yield counter("versions", "Versions published.", run.versions)
    yield gauge("buffer_episodes", "Episodes that wait to be learned from.", run.buffer_file_count)
    yield counter("rollbacks", "Times that learning was given up.", run.rollbacks)
    if (learner := run.continuous) is not None:
        yield gauge("learner_utilisation", "Share of its time in batches.", learner.utilisation)
        yield gauge("replay_items", "Items that it samples from.", learner.buffer)
        yield gauge("samples_per_insert", "Samples for each item.", learner.samples_per_insert)
        if learner.step_share is not None:
            yield gauge("step_share", "Size of its steps, 1 is full size.", learner.step_share)
        if learner.agreement is not None:
            yield gauge(
                "gate_agreement", "Share that the gate judges as before.", learner.agreement
            )


def promotion_metrics(promotion: PromotionStatus) -> Iterator[Metric]:
    """Who plays by evidence, and the test that runs."""
    yield gauge("incumbent", "The champion by evidence; 0: the rules.", promotion.incumbent)
    unit = "segments" if promotion.served else "matches"
    for one in promotion.tests[:1]:
        yield gauge("canary", "The version that is tested.", one.version)
        yield gauge("canary_share", f"The share of {unit} that it plays.", one.share)
        yield gauge("evidence_better", "Evidence that it is better.", one.better)
        yield gauge("evidence_worse", "Evidence that it is worse.", one.worse)
