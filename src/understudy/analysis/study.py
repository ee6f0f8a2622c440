"""The study of a recording: probes over time, the geometry of latents, and attention.

It computes numbers: `figures` draws them, `tables` writes them as CSV, and `findings` as JSON and
text. The trained encoder is always compared with untrained ones on the same matches.

Geometry: projections to two dimensions, how tight the clusters of opponents are, and how far apart.
Every column of the latents is standardised first, so that no single large number dominates.

Attention: the weights of the pool are [T, N, window], the oldest frame first; before the first
frame of a match they are 0. They are reported relative to uniform attention, which is 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from understudy.analysis.encoding import Encoder, attention, latents, strategist_of, untrained_twin
from understudy.analysis.probing import (
    ProbeInputs,
    ProbeVerdict,
    ceiling,
    compare,
    folds,
    verdict,
)
from understudy.analysis.recording import MatchRecording, Show, no_progress, portion
from understudy.core.arrays import NDArray
from understudy.core.ops import NUMPY
from understudy.policy.layers import read_out
from understudy.policy.policy import Policy
from understudy.supervise.maths_threads import one_thread

_PERPLEXITY = 30.0
_ITERATIONS = 600
"""Iterations of t-SNE; hundreds of points hardly move after that."""
SECONDS = (1, 2, 4, 8)
"""Times of the probes."""
SHOWN_S = 4
"""The time of the figures of latents."""
UNTRAINED = 3
"""Untrained encoders; the baseline is their mean."""
READINGS = {
    "latent": "the strategy latent of that frame",
    "latents": "the mean of all latents up to that frame",
    "frame": "what the agent saw of its opponent in that frame alone",
    "frames": "the mean of what it saw of its opponent up to that frame",
    "itself": "no probe: whom the agent names, by the head that training taught it",
}
"""Inputs of a probe; the agent acts on the first. Those of frames need no encoder: they show what
the observation itself contains. `itself` is the agent's own prediction, which can be right only
about opponents that it met in training."""


@dataclass(frozen=True)
class Encoded:
    """Latents of N matches at each of `SECONDS`: index 0 is trained, the others untrained."""

    at: NDArray
    """float32 [1 + UNTRAINED, K, N, latent]"""
    mean: NDArray
    """the same, of the mean of all latents so far"""


@dataclass(frozen=True)
class LatentGeometry:
    """The geometry of latents at one time; index 0 is trained, 1 is the first untrained one."""

    seconds: int
    labels: NDArray
    principal: NDArray
    """[2, N, 2]"""
    explained: NDArray
    """[2, 2]: the share of the variance along each axis"""
    neighbours: NDArray
    """[2, N, 2]"""
    distances: NDArray
    """[2, O, O]; index 1 is the mean of the untrained encoders"""


@dataclass(frozen=True)
class AttentionRecord:
    """Attention in a few matches against each opponent; index 0 is trained, 1 is untrained."""

    columns: NDArray
    """int [M]: matches of the recording"""
    weights: NDArray
    """[2, T, M, window]"""
    evenness: NDArray
    """[2, T, M]; index 1 is the mean of the untrained encoders"""
    received: NDArray
    """[2, T, M]; index 1 is the mean of the untrained encoders"""


# --- the study ---------------------------------------------------------------------------------


def frames_at(frames_per_s: int) -> tuple[int, ...]:
    """The number of frames at each of `SECONDS`."""
    return tuple(seconds * frames_per_s for seconds in SECONDS)


def encode(
    policy: Policy,
    record: MatchRecording,
    *,
    frames_per_s: int,
    encoder: Encoder,
    show: Show = no_progress,
) -> Encoded:
    """Runs the trained encoder and the untrained ones over the same matches."""
    at, mean = [], []
    for index, one in enumerate(with_untrained(policy)):
        here = portion(show, index / (1 + UNTRAINED), (index + 1) / (1 + UNTRAINED))
        found = latents(one, record.seen, encoder=encoder, show=here)
        reached = [min(frames, len(found)) for frames in frames_at(frames_per_s)]
        at.append(np.stack([found[frames - 1] for frames in reached]))
        mean.append(np.stack([found[:frames].mean(0) for frames in reached]))
    return Encoded(np.stack(at), np.stack(mean))


def with_untrained(policy: Policy) -> list[Policy]:
    """The policy, and untrained copies of fixed seeds."""
    return [policy, *(untrained_twin(policy, seed) for seed in range(UNTRAINED))]


def answers(
    policy: Policy, encoded: Encoded, opponents: Sequence[str], bots: Sequence[str]
) -> NDArray | None:
    """The opponents that the agent itself predicts at each of `SECONDS`, int [K, N].

    `bots` are those of the game, as numbered in training. None: the network has no such head, or
    an opponent is not a bot.
    """
    network = strategist_of(policy, who="policy")
    if network.kinds < len(bots) or not set(opponents) <= set(bots):
        return None
    logits = read_out(NUMPY, policy.weights.params, "kind", encoded.at[0])
    predicted: NDArray = logits[..., [bots.index(name) for name in opponents]].argmax(-1)
    return predicted


def probe_all(
    record: MatchRecording,
    encoded: Encoded,
    predicted: NDArray | None,
    *,
    opponent: int,
    frames_per_s: int,
    show: Show = no_progress,
) -> dict[str, dict[int, ProbeVerdict]]:
    """Probes every input at every time that enough matches reached.

    `predicted` are the agent's own `answers`; the last `opponent` features are the opponent's.
    """
    readings = [name for name in READINGS if name != "itself" or predicted is not None]
    verdicts: dict[str, dict[int, ProbeVerdict]] = {reading: {} for reading in readings}
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
            reading = ProbeInputs(trained, untrained, labels, record.numbers[lasted])
            verdicts[name][seconds] = compare(reading, opponents=len(record.opponents))
        if predicted is not None:
            verdicts["itself"][seconds] = verdict(
                labels, predicted[index, lasted], opponents=len(record.opponents)
            )
        show((index + 1) / len(SECONDS))
    return verdicts


def ceilings(record: MatchRecording, *, frames_per_s: int) -> dict[int, float]:
    """The highest accuracy that any predictor can reach, at every time."""
    found = {}
    for seconds, frames in zip(SECONDS, frames_at(frames_per_s), strict=True):
        lasted = record.reaching(frames)
        if lasted.any():
            found[seconds] = ceiling(record.seen[:frames, lasted], record.numbers[lasted])
    return found


def silhouettes(
    record: MatchRecording, encoded: Encoded, *, frames_per_s: int
) -> dict[int, list[float]]:
    """[trained, mean of the untrained], at every time."""
    found = {}
    for index, (seconds, frames) in enumerate(zip(SECONDS, frames_at(frames_per_s), strict=True)):
        lasted = record.reaching(frames)
        labels = record.labels[lasted]
        if not _too_few(record, lasted):
            scores = [silhouette(one[index, lasted], labels) for one in encoded.at]
            found[seconds] = [scores[0], float(np.mean(scores[1:]))]
    return found


def geometry_of(
    record: MatchRecording, encoded: Encoded, *, frames_per_s: int
) -> LatentGeometry | None:
    """Projections and distances at `SHOWN_S`; None: too few matches lasted so long."""
    lasted = record.reaching(SHOWN_S * frames_per_s)
    labels = record.labels[lasted]
    if _too_few(record, lasted):
        return None
    now = encoded.at[:, SECONDS.index(SHOWN_S), lasted]
    places = [principal(one) for one in now[:2]]
    apart = [distances(one, labels, opponents=len(record.opponents)) for one in now]
    return LatentGeometry(
        seconds=SHOWN_S,
        labels=labels,
        principal=np.stack([place for place, _ in places]),
        explained=np.stack([share for _, share in places]),
        neighbours=np.stack([neighbours(one) for one in now[:2]]),
        distances=np.stack([apart[0], np.mean(apart[1:], axis=0)]),
    )


def attend(
    policy: Policy, record: MatchRecording, *, each: int, show: Show = no_progress
) -> AttentionRecord:
    """Attention in the first `each` matches against every opponent."""
    columns = record.columns(each=each)
    seen = record.seen[:, columns]
    each_of = 1 / (1 + UNTRAINED)
    with one_thread():
        weights = [
            attention(one, seen, show=portion(show, at * each_of, (at + 1) * each_of))
            for at, one in enumerate(with_untrained(policy))
        ]
    return AttentionRecord(
        columns=columns,
        weights=np.stack(weights[:2]),
        evenness=_against_mean([evenness(one) for one in weights]),
        received=_against_mean([received(one) for one in weights]),
    )


def _against_mean(every: Sequence[NDArray]) -> NDArray:
    """The first, and the mean of the others."""
    return np.stack([every[0], np.mean(every[1:], axis=0)])


def _split(every: NDArray) -> tuple[NDArray, NDArray]:
    return every[0], every[1:]


def _too_few(record: MatchRecording, lasted: NDArray) -> bool:
    """Whether the matches of an opponent that `lasted` [N] are all in one fold."""
    groups = folds(record.numbers)
    return any(
        len(np.unique(groups[lasted & (record.labels == one)])) < 2
        for one in range(len(record.opponents))
    )


# --- geometry of latents -----------------------------------------------------------------------


def standardised(numbers: NDArray) -> NDArray:
    """numbers [N, D] with mean 0 and spread 1 in each column; a constant column becomes 0."""
    wide = numbers.astype(np.float64)
    spread = wide.std(0)
    scaled: NDArray = (wide - wide.mean(0)) / np.where(spread > 1e-12, spread, 1.0)
    return scaled


def principal(numbers: NDArray) -> tuple[NDArray, NDArray]:
    """numbers [N, D] to their first two principal components [N, 2], and the variances [2]."""
    from sklearn.decomposition import PCA

    fitted = PCA(n_components=2, svd_solver="full")
    places: NDArray = fitted.fit_transform(standardised(numbers))
    return places, np.asarray(fitted.explained_variance_ratio_)


def neighbours(numbers: NDArray, *, seed: int = 0) -> NDArray:
    """numbers [N, D] to places [N, 2] by t-SNE, which keeps neighbours near."""
    from sklearn.manifold import TSNE

    perplexity = min(_PERPLEXITY, (len(numbers) - 1) / 3)
    drawn = TSNE(perplexity=perplexity, init="pca", max_iter=_ITERATIONS, random_state=seed)
    places: NDArray = drawn.fit_transform(standardised(numbers).astype(np.float32))
    return places


def silhouette(numbers: NDArray, labels: NDArray) -> float:
    """The silhouette score, -1 to 1, of matches clustered by opponent."""
    from sklearn.metrics import silhouette_score

    return float(silhouette_score(standardised(numbers), labels))


def distances(numbers: NDArray, labels: NDArray, *, opponents: int) -> NDArray:
    """[O, O] between the mean latents of opponents, in units of the spread within an opponent.

    The spread is the root mean square distance of a match from its own opponent's mean.
    """
    scaled = standardised(numbers)
    means = np.stack([scaled[labels == one].mean(0) for one in range(opponents)])
    spread = np.sqrt(((scaled - means[labels]) ** 2).sum(1).mean())
    apart: NDArray = np.sqrt(((means[:, None] - means[None]) ** 2).sum(-1))
    return apart / max(float(spread), 1e-12)


# --- attention -----------------------------------------------------------------------------------


def evenness(weights: NDArray) -> NDArray:
    """[T, N, W] to [T, N]: entropy over that of uniform weights; 1 is uniform, 0 is one frame.

    The first frame of a match, with one frame in the window, counts as 1.
    """
    length, _, window = weights.shape
    logs = np.log(np.maximum(weights, 1e-30), dtype=np.float64)
    entropy = -(weights * logs).sum(-1)
    most = np.log(np.minimum(np.arange(1, length + 1), window))
    even: NDArray = np.where(
        most[:, None] > 0, entropy / np.where(most > 0, most, 1.0)[:, None], 1.0
    )
    return even


def received(weights: NDArray) -> NDArray:
    """[T, N, W] to [T, N]: the mean weight of a frame while it is in the window, 1 if uniform.

    NaN for the last frames, which do not pass through the whole window.
    """
    length, matches, window = weights.shape
    total, looks = np.zeros((length, matches)), np.zeros(length)
    held = np.minimum(np.arange(1, length + 1), window)
    for ago in range(min(window, length)):
        # At frame t, the entry `window - 1 - ago` is frame t - ago.
        relative = weights[ago:, :, window - 1 - ago] * held[ago:, None]
        total[: length - ago] += relative
        looks[: length - ago] += 1
    return np.where(looks[:, None] < min(window, length), np.nan, total / looks[:, None])


def by_action(share: NDArray, chosen: NDArray) -> dict[int, tuple[float, int]]:
    """share [T, N], chosen bool [O, T, N]: option -> mean share, and number of frames.

    Frames with an unknown share do not count.
    """
    known = [where & np.isfinite(share) for where in chosen]
    return {
        option: (float(share[where].mean()), int(where.sum()))
        for option, where in enumerate(known)
        if where.any()
    }
