"""Candidates: which version is tried next, and whether it is fit to play at all.

A version is tried if it has learned from enough more matches than the last one that was tried, or
decides differently enough from it. Before its first match it must be fit: finite, neither certain
nor aimless on recent observations, and fast. What is unfit is refused once and not looked at again.
Nothing here runs inside `decide` or `match`.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from time import perf_counter_ns
from typing import NamedTuple

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.config import PromotionConfig
from understudy.core.errors import FileFormatError, RunFolderError
from understudy.core.ops import NUMPY
from understudy.gates.promotion import roles
from understudy.gates.promotion.records import Ordered
from understudy.gates.promotion.roles import PromotionState
from understudy.policy import distributions
from understudy.policy.policy import Policy
from understudy.policy.weights import normalise
from understudy.promotion.promotion import Promotion
from understudy.registry.checkpoints import learned_matches
from understudy.registry.pointers import PointerRecord
from understudy.registry.run_folder import RunFolder

ENTROPY_SHARES = (0.05, 0.95)
"""The mean entropy of a fit version, as a share of the largest one: below, it has settled and a
clone of deterministic rules is no candidate; above, it has learned next to nothing."""
_RECENT_DECISIONS = 512
_FEWEST_DECISIONS = 20
_MOST_OF_A_MATCH = 128
_TIMED_DECISIONS = 20
_MORE_AFTER_REFUSAL = 1.05
"""After a refusal a version must have learned from so many times the matches: a learner publishes
twice a second, and what is wrong with one version is mostly wrong with the next."""


class RecentMatch(NamedTuple):
    """The first decisions of a match that was played not long ago."""

    observations: NDArray
    """float32 [T, F], raw"""
    legal: NDArray
    """bool [T, options]"""


def reason_to_try(
    *, experience: int, last: int | None, divergence: float, config: PromotionConfig
) -> str:
    """Why a version that has learned from `experience` matches is due; empty: it is not.

    `last` are the matches of the version that was tried last; None: none was. `divergence` is the
    KL divergence from that one to this one, in nats a decision.
    """
    if last is None:
        enough = experience >= config.first_matches
        return f"it has learned from {experience} matches" if enough else ""
    if experience >= config.growth * last:
        return f"it has learned from {experience} matches, the last one tried from {last}"
    if divergence >= config.least_kl:
        return f"it decides otherwise than the last one tried: KL {divergence:.2f} a decision"
    return ""


def may_test(state: PromotionState, champion: PointerRecord | None) -> bool:
    """Whether versions are tested at all: neither a pinned champion nor policy `latest` decides who
    plays. While promotion is paused a running test goes on, since harm must still end it."""
    pinned = champion is not None and champion.pinned
    return not pinned and state.policy != "latest"


def stop_other_test(
    promotion: Promotion, *, simulator: bool, problem: Callable[[str], None]
) -> None:
    """End a running test that is judged by the other kind of evidence: none of it comes any more.

    `simulator`: from now on pairs of simulated matches are the evidence, else assigned matches.
    """
    try:
        test = promotion.follow().test
        if test is None or test.simulator == simulator:
            return
        kind = "simulated matches" if simulator else "the matches that are played"
        words = f"from now on versions are tested by {kind}"
        promotion.order(Ordered(order="stop", version=test.version, words=words))
    except (OSError, FileFormatError) as error:
        problem(f"a test by other evidence cannot be ended: {error}")


def unfit(policy: Policy, recent: Sequence[RecentMatch], *, slow_ms: float) -> str:
    """Why a policy must not play; empty: it may."""
    if not all(np.isfinite(value).all() for value in _numbers(policy)):
        return "its weights are not finite"
    with np.errstate(all="ignore"):  # what overflows is found below
        answers = [_answer(policy, match) for match in recent]
    logits, values, legal = (np.concatenate(column) for column in zip(*answers, strict=True))
    if not (np.isfinite(logits).all() and np.isfinite(values).all()):
        return "its answers to recent observations are not finite"
    space = policy.spec.actions
    largest = float(distributions.largest_entropy(NUMPY, space, legal).sum())
    entropy = float(distributions.entropy(NUMPY, space, logits, legal).sum())
    low, high = ENTROPY_SHARES
    # Where one option was legal at every decision there is nothing to judge.
    share = entropy / largest if largest else low
    if not low <= share <= high:
        what = "it is certain nearly everywhere" if share < low else "it chooses nearly evenly"
        return f"{what}: entropy {share:.3f} of the largest, expected {low:g} to {high:g}"
    took_ms = _decision_ms(policy, recent[-1])
    if took_ms > slow_ms:
        return f"a decision takes {took_ms:.0f} ms, above promotion.slow_ms = {slow_ms:g}"
    return ""


def divergence(old: Policy, new: Policy, recent: Sequence[RecentMatch]) -> float:
    """KL(old || new) in nats, the mean over recent decisions."""
    space, total, count = old.spec.actions, 0.0, 0
    for match in recent:
        of_old, of_new = (
            distributions.log_probs(NUMPY, space, _answer(one, match)[0], match.legal)
            for one in (old, new)
        )
        total += float(distributions.divergence(NUMPY, space, of_old, of_new).sum())
        count += len(match.observations)
    return total / max(count, 1)


def _numbers(policy: Policy) -> Iterable[NDArray]:
    weights = policy.weights
    return (*weights.params.values(), weights.obs_mean, weights.obs_scale, weights.value_scale)


def _answer(policy: Policy, match: RecentMatch) -> tuple[NDArray, NDArray, NDArray]:
    """logits [T, options], values [T] and legal [T, options] of one match, with memory."""
    weights = policy.weights
    seen = normalise(NUMPY, weights, match.observations)
    first = np.zeros((len(seen), 1), np.bool_)
    first[0] = True
    logits, values, _ = policy.spec.network.unroll(
        NUMPY, weights.params, seen[:, None], first, policy.begin()
    )
    return logits[:, 0], values[:, 0], match.legal


def _decision_ms(policy: Policy, match: RecentMatch) -> float:
    """The median time of a decision."""
    memory, took = policy.begin(), []
    for row in range(min(len(match.observations), _TIMED_DECISIONS)):
        started = perf_counter_ns()
        choice = policy.act(
            match.observations[row : row + 1], memory, legal=match.legal[row : row + 1]
        )
        memory = choice.memory
        took.append(perf_counter_ns() - started)
    return float(np.median(took)) / 1e6


class CandidateSearch:
    """Looks at each newest version once, and nominates those that are due and fit."""

    def __init__(
        self,
        folder: RunFolder,
        promotion: Promotion,
        *,
        refused: Callable[[int, str], None],
    ) -> None:
        self._folder = folder
        self._config: PromotionConfig = folder.config.promotion
        self._promotion = promotion
        self._refused = refused
        self._recent: deque[RecentMatch] = deque()
        self._looked = 0
        self._not_below = 0.0
        """Matches that a version must have learned from, after a refusal."""
        self._lock = threading.Lock()

    def remember(self, observations: NDArray, legal: NDArray | None) -> None:
        """Keeps the observations [T, F] and masks [T, options] of a match that is over."""
        options = self._folder.spec.actions.options
        if legal is None:
            legal = np.ones((len(observations), options), np.bool_)
        with self._lock:
            self._recent.append(
                RecentMatch(observations[:_MOST_OF_A_MATCH], legal[:_MOST_OF_A_MATCH])
            )
            while self._decisions() - len(self._recent[0].observations) >= _RECENT_DECISIONS:
                self._recent.popleft()

    def look(self, newest: Policy) -> bool:
        """Nominates the newest version if it is due and fit; True: a test begins."""
        version, state = newest.version, self._promotion.state
        if version in (0, self._looked) or roles.nomination_refused(state, version):
            return False
        if self._config.evidence == "simulator":  # it nominates, and plays the matches
            return False
        if not may_test(state, self._folder.pointers.read("champion")):
            return False
        with self._lock:
            if self._decisions() < _FEWEST_DECISIONS:
                return False
            recent = list(self._recent)
            self._looked = version
        try:
            experience = learned_matches(self._folder.versions.manifest(version))
        except (FileFormatError, OSError) as error:
            self._refused(version, f"it cannot be read: {error}")
            return False
        if experience < self._not_below:
            return False
        reason = self._reason(newest, experience, recent)
        if not reason:
            return False
        words = unfit(newest, recent, slow_ms=self._config.slow_ms)
        if words:
            self._not_below = experience * _MORE_AFTER_REFUSAL
            self._refused(version, words)
            return False
        return self._promotion.nominate(version, experience=experience, reason=reason)

    def _reason(self, newest: Policy, experience: int, recent: Sequence[RecentMatch]) -> str:
        tried = [one.version for one in self._promotion.verdicts if one.kind == "nominated"]
        last = self._promotion.state.experience if tried else None
        due = reason_to_try(experience=experience, last=last, divergence=0.0, config=self._config)
        if due or not tried:
            return due
        try:
            old = self._folder.versions.policy(tried[-1])
        except (FileFormatError, RunFolderError, OSError):  # gone: only experience counts
            return ""
        apart = divergence(old, newest, recent)
        return reason_to_try(
            experience=experience, last=last, divergence=apart, config=self._config
        )

    def _decisions(self) -> int:
        return sum(len(match.observations) for match in self._recent)
