"""Everything that is asked of a record: probes over time, how latents lie, what was attended to.

Numbers only: `figures` draws them, `tables` writes them down, `report` tells them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from understudy.analysis import geometry
from understudy.analysis.attending import evenness, received
from understudy.analysis.encoding import (
    Encoder,
    attention,
    latents,
    strategist_of,
    untrained_twin,
)
from understudy.analysis.probing import Reading, Verdict, ceiling, compare, folds, verdict
from understudy.analysis.recording import Record, Show, nobody, portion
from understudy.analysis.threads import one_thread
from understudy.core.arrays import NDArray
from understudy.core.ops import NUMPY
from understudy.policy.layers import read_out
from understudy.policy.policy import Policy

SECONDS = (1, 2, 4, 8)
"""When the probe is asked."""
SHOWN_S = 4
"""When the pictures of latents are taken."""
UNTRAINED = 3
"""How many untrained encoders the zero line is the mean of."""
READINGS = {
    "latent": "the strategy latent of that frame",
    "latents": "the mean of all latents up to that frame",
    "frame": "what the agent saw of its opponent in that frame alone",
    "frames": "the mean of what it saw of its opponent up to that frame",
    "itself": "no probe: whom the agent names, by the head that training taught it",
}
"""What a probe can be given; the first is what the agent acts on. Those of frames need no encoder:
they say how much lies open in the observation, and have no untrained twin. Nor has the last, which
is the agent's own answer and can be right only about opponents that it met in training."""


@dataclass(frozen=True)
class Encoded:
    """Latents of N matches at each of `SECONDS`: index 0 is trained, the others are not."""

    at: NDArray
    """float32 [1 + UNTRAINED, K, N, latent]"""
    mean: NDArray
    """The same, of the mean of all latents so far."""


@dataclass(frozen=True)
class Lying:
    """How the latents of one moment lie; index 0 is trained, 1 is the first untrained one."""

    seconds: int
    labels: NDArray
    principal: NDArray
    """[2, N, 2]"""
    explained: NDArray
    """[2, 2]: the share of the variance along each axis."""
    neighbours: NDArray
    """[2, N, 2]"""
    distances: NDArray
    """[2, O, O]; of the untrained encoders the mean."""


@dataclass(frozen=True)
class Attended:
    """Attention in a few matches against each opponent; index 0 is trained, 1 is untrained."""

    columns: NDArray
    """int [M]: which matches of the record."""
    weights: NDArray
    """[2, T, M, window]"""
    evenness: NDArray
    """[2, T, M]; of the untrained encoders the mean."""
    received: NDArray
    """[2, T, M]; of the untrained encoders the mean."""


def frames_at(frames_per_s: int) -> tuple[int, ...]:
    """How many frames have been seen at each of `SECONDS`."""
    return tuple(seconds * frames_per_s for seconds in SECONDS)


def encode(
    policy: Policy, record: Record, *, frames_per_s: int, encoder: Encoder, show: Show = nobody
) -> Encoded:
    """The trained encoder and its untrained twins over the same matches, one after the other."""
    at, mean = [], []
    for index, one in enumerate(everyone(policy)):
        here = portion(show, index / (1 + UNTRAINED), (index + 1) / (1 + UNTRAINED))
        found = latents(one, record.seen, encoder=encoder, show=here)
        reached = [min(frames, len(found)) for frames in frames_at(frames_per_s)]
        at.append(np.stack([found[frames - 1] for frames in reached]))
        mean.append(np.stack([found[:frames].mean(0) for frames in reached]))
    return Encoded(np.stack(at), np.stack(mean))


def everyone(policy: Policy) -> list[Policy]:
    """The policy and its untrained twins, of fixed seeds."""
    return [policy, *(untrained_twin(policy, seed) for seed in range(UNTRAINED))]


def answers(
    policy: Policy, encoded: Encoded, opponents: Sequence[str], bots: Sequence[str]
) -> NDArray | None:
    """Whom of `opponents` the agent itself names at each of `SECONDS`, int [K, N].

    `bots` are the game's, in the order that training numbers them in; None where the agent names
    nobody, or somebody is no bot.
    """
    network = strategist_of(policy, who="policy")
    if network.kinds < len(bots) or not set(opponents) <= set(bots):
        return None
    logits = read_out(NUMPY, policy.weights.params, "kind", encoded.at[0])
    said: NDArray = logits[..., [bots.index(name) for name in opponents]].argmax(-1)
    return said


def probe_all(
    record: Record,
    encoded: Encoded,
    said: NDArray | None,
    *,
    opponent: int,
    frames_per_s: int,
    show: Show = nobody,
) -> dict[str, dict[int, Verdict]]:
    """Every reading at every time that enough matches lasted to.

    `said` are the agent's own `answers`; `opponent` is how many features, the last ones, are the
    opponent's.
    """
    readings = [name for name in READINGS if name != "itself" or said is not None]
    verdicts: dict[str, dict[int, Verdict]] = {reading: {} for reading in readings}
    for index, (seconds, frames) in enumerate(zip(SECONDS, frames_at(frames_per_s), strict=True)):
        lasted = record.reaching(frames)
        labels = record.labels[lasted]
        if _too_few(record, lasted):
            continue
        theirs = record.seen[:frames, lasted, -opponent:]
        none = np.empty((0, *theirs.shape[1:]), np.float32)
        for name, (trained, untrained) in (
            ("latent", _split(encoded.at[:, index, lasted])),
            ("latents", _split(encoded.mean[:, index, lasted])),
            ("frame", (theirs[-1], none)),
            ("frames", (theirs.mean(0), none)),
        ):
            reading = Reading(trained, untrained, labels, record.numbers[lasted])
            verdicts[name][seconds] = compare(reading, opponents=len(record.opponents))
        if said is not None:
            verdicts["itself"][seconds] = verdict(
                labels, said[index, lasted], opponents=len(record.opponents)
            )
        show((index + 1) / len(SECONDS))
    return verdicts


def ceilings(record: Record, *, frames_per_s: int) -> dict[int, float]:
    """What no reader can do better than, at every time."""
    found = {}
    for seconds, frames in zip(SECONDS, frames_at(frames_per_s), strict=True):
        lasted = record.reaching(frames)
        if lasted.any():
            found[seconds] = ceiling(record.seen[:frames, lasted], record.numbers[lasted])
    return found


def silhouettes(record: Record, encoded: Encoded, *, frames_per_s: int) -> dict[int, list[float]]:
    """Of the trained encoder, and the mean of the untrained ones, at every time."""
    found = {}
    for index, (seconds, frames) in enumerate(zip(SECONDS, frames_at(frames_per_s), strict=True)):
        lasted = record.reaching(frames)
        labels = record.labels[lasted]
        if not _too_few(record, lasted):
            scores = [geometry.silhouette(one[index, lasted], labels) for one in encoded.at]
            found[seconds] = [scores[0], float(np.mean(scores[1:]))]
    return found


def lie(record: Record, encoded: Encoded, *, frames_per_s: int) -> Lying | None:
    """The latents of one moment in two dimensions; None where too few matches lasted so long."""
    lasted = record.reaching(SHOWN_S * frames_per_s)
    labels = record.labels[lasted]
    if _too_few(record, lasted):
        return None
    now = encoded.at[:, SECONDS.index(SHOWN_S), lasted]
    places = [geometry.principal(one) for one in now[:2]]
    apart = [geometry.distances(one, labels, opponents=len(record.opponents)) for one in now]
    return Lying(
        seconds=SHOWN_S,
        labels=labels,
        principal=np.stack([place for place, _ in places]),
        explained=np.stack([share for _, share in places]),
        neighbours=np.stack([geometry.neighbours(one) for one in now[:2]]),
        distances=np.stack([apart[0], np.mean(apart[1:], axis=0)]),
    )


def attend(policy: Policy, record: Record, *, each: int, show: Show = nobody) -> Attended:
    """The pool's weights in the first `each` matches against every opponent."""
    columns = record.columns(each=each)
    seen = record.seen[:, columns]
    each_of = 1 / (1 + UNTRAINED)
    with one_thread():
        weights = [
            attention(one, seen, show=portion(show, at * each_of, (at + 1) * each_of))
            for at, one in enumerate(everyone(policy))
        ]
    return Attended(
        columns=columns,
        weights=np.stack(weights[:2]),
        evenness=_against_mean([evenness(one) for one in weights]),
        received=_against_mean([received(one) for one in weights]),
    )


def _against_mean(every: Sequence[NDArray]) -> NDArray:
    """The first, and the mean of the others."""
    return np.stack([every[0], np.mean(every[1:], axis=0)])


def _split(every: NDArray) -> tuple[NDArray, NDArray]:
    """The trained one and the untrained ones."""
    return every[0], every[1:]


def _too_few(record: Record, lasted: NDArray) -> bool:
    """Whether some opponent's matches that lasted so long, bool [N], are all in one fold."""
    groups = folds(record.numbers)
    return any(
        len(np.unique(groups[lasted & (record.labels == one)])) < 2
        for one in range(len(record.opponents))
    )
