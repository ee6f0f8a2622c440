"""Whether a policy became likelier to do what was rewarded: the newest version against older ones.

For each sampled decision, let A be its advantage (from recorded rewards and values) and d the
change of the log-probability of its action from the version that made it to the newest one. Let
h = d - E[d], the expectation being over all actions under the version that drew it. Then the mean
of A h is 0 for any policy change that has nothing to do with A, and stays 0 where values are wrong
by any amount that depends on the situation alone, since E[h] = 0 in each situation. It is the
first-order change of the expected return: learning makes it positive, a lost minus makes it
negative. Decisions of one match depend on each other, so the error is that between matches.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.errors import FileFormatError, RunFolderError
from understudy.core.ops import NUMPY
from understudy.core.spaces import Continuous
from understudy.doctor.evidence import Evidence
from understudy.experience.episode import Episode, returns_of
from understudy.policy import distributions
from understudy.policy.policy import Policy, untrained
from understudy.policy.weights import normalise

_MATCHES, _DECISIONS = 24, 1000
_MOST_VERSIONS = 16
_LARGEST_CHANGE = 3.0
"""A change of a log-probability counts up to this, so that no single decision outweighs all."""
_Z, _AGREES_Z = 4.0, 1.0
_CORRELATION = 0.02
"""Measured on swarm over 64 to 400 matches: -0.010 to +0.056 where learning is right, -0.045 to
-0.063 where the advantages were negated."""
_SAME = 0.01
"""Recorded and recomputed log-probabilities of one version are closer than this."""
_CHUNK = 64
"""Rows a product: larger ones start the threads of the maths library, which a busy machine delays
by tens of milliseconds each."""
_WORK = 1e10
"""Multiplications that this may take: larger networks with long matches are not looked at."""


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """How far the change of the policy agrees with the rewards."""

    version: int
    decisions: int
    episodes: int
    correlation: float
    z: float
    """The mean of A h, in standard errors."""

    @property
    def agrees(self) -> bool:
        """Whether the policy follows the rewards, most likely."""
        return self.z > _AGREES_Z

    @property
    def opposes(self) -> bool:
        """Whether the policy moved against the rewards, beyond chance."""
        return self.z < -_Z and self.correlation < -_CORRELATION


@dataclass(frozen=True)
class _Rows:
    """Decisions of one version, in whole matches where the policy has memory."""

    matches: NDArray
    """int64 [N]: which match"""
    observations: NDArray
    """float32 [N, F]"""
    options: NDArray
    """int64 [N, parts]: the actions, as indices of options"""
    legal: NDArray
    """bool [N, options]"""
    log_probs: NDArray
    """float32 [N], as they were recorded"""
    advantages: NDArray
    """float64 [N]"""


def agreement_with_rewards(evidence: Evidence, episodes: Sequence[Episode]) -> Agreement | None:
    """Over these episodes; None: too few decisions of versions that are still there."""
    newest = evidence.policy
    if newest is None or isinstance(newest.spec.actions, Continuous):
        return None
    found: list[tuple[NDArray, NDArray, NDArray]] = []
    for number, rows in _by_version(evidence, newest, episodes).items():
        policy = _version(evidence, number)
        if policy is None:
            continue
        before = _log_probs(policy, rows)
        drawn = np.take_along_axis(before, rows.options, axis=1).sum(1)
        if np.abs(drawn - rows.log_probs).max() < _SAME:  # else another policy drew them
            change = _change(before, _log_probs(newest, rows), rows.options)
            found.append((rows.matches, rows.advantages, change))
    if not found:
        return None
    matches, advantages, changes = (np.concatenate(each) for each in zip(*found, strict=True))
    return _agreement(matches, advantages, changes, version=newest.version)


def _agreement(
    matches: NDArray, advantages: NDArray, changes: NDArray, *, version: int
) -> Agreement | None:
    """Of A and h [N] of decisions in matches [N]."""
    scale = float(advantages.std() * changes.std())
    count = len(np.unique(matches))
    if count < _MATCHES or len(matches) < _DECISIONS or not 0.0 < scale < math.inf:
        return None
    # h has mean 0 in each situation, so the mean of A changes nothing but the noise.
    products = (advantages - advantages.mean()) * changes
    sums = np.bincount(np.unique(matches, return_inverse=True)[1], weights=products)
    return Agreement(
        version=version,
        decisions=len(matches),
        episodes=count,
        correlation=float(products.mean() / scale),
        z=float(sums.sum() / max(math.sqrt(np.square(sums).sum()), 1e-300)),
    )


def _by_version(
    evidence: Evidence, newest: Policy, episodes: Sequence[Episode]
) -> dict[int, _Rows]:
    """Decisions by the version that drew them, of the newest matches that policies played alone.

    A policy with memory is the same in the whole match, another one may be swapped at any decision.
    """
    parts = newest.spec.actions.parts
    starts = np.concatenate([[0], np.cumsum(parts)[:-1]])
    parameters = sum(np.asarray(one).size for one in newest.weights.params.values())
    decisions, found = 0, defaultdict[int, list[_Rows]](list)
    for match, episode in enumerate(reversed(episodes)):
        numbers = np.unique(episode.versions)
        usable = episode.sampled.all() and episode.taught.all() and episode.cuts is None
        if not usable or (newest.remembers and len(numbers) > 1):
            continue
        decisions += len(episode)
        if 4.0 * parameters * decisions > _WORK:
            break
        advantages = _advantages(episode, evidence)
        for number in numbers[numbers < newest.version].tolist():
            if number not in found and len(found) == _MOST_VERSIONS:
                continue
            rows = episode.versions == number
            found[number].append(
                _Rows(
                    matches=np.full(int(rows.sum()), match),
                    observations=episode.observations[rows],
                    options=(episode.actions + starts)[rows],
                    legal=_legal(episode, newest)[rows],
                    log_probs=episode.log_probs[rows],
                    advantages=advantages[rows],
                )
            )
    return {number: _joined(rows) for number, rows in found.items()}


def _joined(rows: list[_Rows]) -> _Rows:
    names = [one.name for one in fields(_Rows)]
    return _Rows(*(np.concatenate([getattr(one, name) for one in rows]) for name in names))


def _legal(episode: Episode, policy: Policy) -> NDArray:
    if episode.legal is not None:
        return episode.legal
    return np.ones((len(episode), policy.spec.actions.options), np.bool_)


def _version(evidence: Evidence, number: int) -> Policy | None:
    """None: it was pruned. The untrained policy is made again from its seed."""
    if number == 0:
        return untrained(evidence.folder.spec, evidence.config.learner.seed)
    try:
        return evidence.folder.versions.policy(number)
    except (RunFolderError, FileFormatError, OSError):
        return None


def _advantages(episode: Episode, evidence: Evidence) -> NDArray:
    """float64 [T]: generalised advantage estimates from recorded rewards and values."""
    config = evidence.config.learner
    values = episode.values.astype(np.float64)
    after = np.append(values[1:], values[-1] if episode.truncated else 0.0)
    errors = episode.rewards + config.gamma * after - values
    return returns_of(errors, config.gamma * config.gae_lambda)


def _change(before: NDArray, after: NDArray, options: NDArray) -> NDArray:
    """float64 [N]: h of the chosen options [N, parts], from the log-probabilities [N, options] of
    all. The parts of an action are drawn independently, so their changes add up."""
    moved = np.clip(after - before, -_LARGEST_CHANGE, _LARGEST_CHANGE)
    chosen = np.take_along_axis(moved, options, axis=1).sum(1)
    change: NDArray = chosen - (np.exp(before) * moved).sum(1)
    return change


def _log_probs(policy: Policy, rows: _Rows) -> NDArray:
    """float64 [N, options]; a policy with memory goes through each match from empty memory."""
    network, params = policy.spec.network, policy.weights.params
    memory = network.memory(NUMPY, _CHUNK)
    observed = normalise(NUMPY, policy.weights, rows.observations)
    if policy.remembers:
        ends = np.flatnonzero(np.diff(rows.matches)) + 1
        logits = np.concatenate([_unrolled(policy, one) for one in np.split(observed, ends)])
    else:
        chunks = (observed[start : start + _CHUNK] for start in range(0, len(observed), _CHUNK))
        logits = np.concatenate([network.step(NUMPY, params, one, memory)[0] for one in chunks])
    found = distributions.log_probs(NUMPY, policy.spec.actions, logits, rows.legal)
    return np.asarray(found, np.float64)


def _unrolled(policy: Policy, observed: NDArray) -> NDArray:
    """Logits [T, options] of one match [T, F]."""
    network = policy.spec.network
    first = np.zeros((len(observed), 1), np.bool_)
    first[0] = True
    logits, _, _ = network.unroll(
        NUMPY, policy.weights.params, observed[:, None], first, network.memory(NUMPY, 1)
    )
    return np.asarray(logits)[:, 0]
