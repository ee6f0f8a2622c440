"""Candidates: which version is tried next, and whether it is fit to play at all.

A version is tried if it has learned from enough more matches than the last one that was tried, or
decides differently enough from it, and does not look worse than the incumbent in practice. Before
its first match it must be fit: finite, neither certain nor aimless on recent observations, and
fast. What is unfit is refused, and not looked at again by this bot: one that opens the run later
looks at its own recent matches, and may refuse it again. Nothing here runs inside `decide` or
`match`.
"""

from __future__ import annotations

import math
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
from understudy.experience.episode import Episode
from understudy.gates.promotion import roles
from understudy.gates.promotion.practice import PracticeArm
from understudy.gates.promotion.records import RULES, Ordered
from understudy.gates.promotion.roles import PromotionState
from understudy.policy import distributions
from understudy.policy.policy import Policy
from understudy.policy.weights import normalise
from understudy.promotion.cameos import CameoResult, results_of, weigh
from understudy.promotion.promotion import Promotion
from understudy.registry.checkpoints import learned_matches
from understudy.registry.pointers import PointerRecord
from understudy.registry.run_folder import RunFolder

ENTROPY_SHARES = (0.05, 0.95)
"""The mean entropy of a fit version, as a share of the largest one: below, it has settled and a
clone of deterministic rules is no candidate; above, it has learned next to nothing. Where versions
practise (`promotion.practice_share`) the lower bound is 0: one is tried only while practice looks
better than the incumbent, and then it is more than a clone."""
_RECENT_DECISIONS = 512
_RECENT_WITH_MEMORY = 128
"""A network with memory takes several times as long over a decision."""
_FEWEST_DECISIONS = 20
_MOST_OF_A_MATCH = 0.25
"""Of the recent decisions."""
COMPARE_EVERY_S = 10.0
"""How often the newest version is compared with the one that was tried last: a learner publishes
twice a second, and the bot needs the processor."""
_TIMED_DECISIONS = 20
_CAMEO_WINDOWS = 200
"""Recent windows, of both players, that are weighed: older ones tell of other versions."""
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


def practice_objection(
    practice: PracticeArm,
    config: PromotionConfig,
    *,
    incumbent: int = RULES,
    least_lead: float = 0.0,
) -> str:
    """Why no version is tried as long as practice looks like this; empty: nothing speaks against.

    Practice is no evidence for a promotion. It spares matches of a test that would fail.
    `incumbent`: what a version would be tested against. Right after a promotion practice was
    compared with another player. `least_lead`: standard errors by which it must be above.
    """
    if config.practice_share == 0.0:
        return ""
    if practice.promising and practice.against != incumbent:
        return f"practice is not yet compared with {roles.name_of(incumbent)}"
    if practice.promising:
        lead = practice.lead
        if lead >= least_lead:
            return ""
        return f"practice is better by {lead:.1f} standard errors, {least_lead:g} are needed"
    if not practice.begun:
        return "no version has practised yet"
    if practice.suspended:
        return f"practice is suspended for {practice.suspended} more matches"
    recent, other = practice.recent, practice.incumbent
    against = roles.name_of(practice.against)
    if recent.mean > other.mean or not (recent.matches and other.matches):
        return f"practice has {recent.matches} matches, {against} {other.matches}: too few"
    return f"practice does not look better: {recent.mean:.0%} recently, {against} {other.mean:.0%}"


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


def unfit(
    policy: Policy, recent: Sequence[RecentMatch], *, slow_ms: float, certain: bool = False
) -> str:
    """Why a policy must not play; empty: it may. `certain`: it may be certain everywhere."""
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
    low, high = (0.0 if certain else ENTROPY_SHARES[0]), ENTROPY_SHARES[1]
    # Where one option was legal at every decision there is nothing to judge.
    share = entropy / largest if largest else low
    if not low <= share <= high:
        what = "it is certain nearly everywhere" if share < low else "it chooses nearly evenly"
        return f"{what}: entropy {share:.3f} of the largest, expected {low:g} to {high:g}"
    took_ms = _decision_ms(policy, recent[-1])
    if took_ms > slow_ms:
        return f"a decision takes {took_ms:.0f} ms, above promotion.slow_ms = {slow_ms:g}"
    return ""


def divergence(old: Sequence[NDArray], new: Policy, recent: Sequence[RecentMatch]) -> float:
    """KL(old || new) in nats, the mean over recent decisions.

    `old` are the log-probabilities [T, options] of the old policy in each match.
    """
    space, total, count = new.spec.actions, 0.0, 0
    for of_old, match in zip(old, recent, strict=True):
        of_new = log_probs(new, match)
        total += float(distributions.divergence(NUMPY, space, of_old, of_new).sum())
        count += len(match.observations)
    return total / max(count, 1)


def log_probs(policy: Policy, match: RecentMatch) -> NDArray:
    """Of a policy in one match, [T, options]."""
    logits = _answer(policy, match)[0]
    found: NDArray = distributions.log_probs(NUMPY, policy.spec.actions, logits, match.legal)
    return found


def likeliest(policy: Policy, match: RecentMatch) -> NDArray:
    """The likeliest action of a policy at each decision of one match, [T, parts]."""
    logits = _answer(policy, match)[0]
    actions: NDArray = distributions.mode(NUMPY, policy.spec.actions, logits, match.legal)[0]
    return actions


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


class _TriedPolicy:
    """The policy that was tried last, with what it does in recent matches: computed once each."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._known: list[tuple[RecentMatch, NDArray]] = []

    def log_probs(self, recent: Sequence[RecentMatch]) -> list[NDArray]:
        """[T, options] in each match."""
        known = {id(match): found for match, found in self._known}
        found = [
            known[id(match)] if id(match) in known else log_probs(self.policy, match)
            for match in recent
        ]
        self._known = list(zip(recent, found, strict=True))  # holds the matches, so ids are theirs
        return found


class CandidateSearch:
    """Looks at each newest version once, and nominates those that are due and fit.

    A version that is due only if it decides otherwise is compared with the last one that was tried
    every `COMPARE_EVERY_S` at most; versions in between are passed over. `least_lead`: standard
    errors by which practice must be above the incumbent. Threads may share it.
    """

    def __init__(
        self,
        folder: RunFolder,
        promotion: Promotion,
        *,
        refused: Callable[[int, str], None],
        least_lead: float = 0.0,
    ) -> None:
        self._folder = folder
        self._config: PromotionConfig = folder.config.promotion
        self._promotion = promotion
        self._refused = refused
        self._least_lead = least_lead
        self._most = _RECENT_WITH_MEMORY if folder.spec.remembers else _RECENT_DECISIONS
        self._recent: deque[RecentMatch] = deque()
        self._looked = 0
        self._experience: tuple[int, int | None] = (0, 0)
        """A version, and the matches that it has learned from; None: it cannot be read."""
        self._tried: _TriedPolicy | None = None
        self._compared_at = -math.inf
        self._cameos: deque[CameoResult] = deque(maxlen=_CAMEO_WINDOWS)
        self.waits = ""
        """Why no version is tried, in a few words; empty: nothing speaks against it, or there was
        nothing to look at yet."""
        self._not_below = 0.0
        """Matches that a version must have learned from, after a refusal."""
        self._lock = threading.Lock()
        self._looking = threading.Lock()

    def remember(self, episode: Episode) -> None:
        """Keeps the windows of a match, and some observations [T, F] and masks [T, options]; they
        are copied, so that a long match is not kept as a whole."""
        observations, legal = episode.observations, episode.legal
        gamma = self._folder.config.learner.gamma
        windows = results_of(episode, gamma=gamma)
        rows = min(len(observations), int(_MOST_OF_A_MATCH * self._most))
        if legal is None:
            legal = np.ones((rows, self._folder.spec.actions.options), np.bool_)
        with self._lock:
            self._cameos.extend(windows)
            self._recent.append(RecentMatch(observations[:rows].copy(), legal[:rows].copy()))
            while self._decisions() - len(self._recent[0].observations) >= self._most:
                self._recent.popleft()

    def look(self, newest: Policy) -> bool:
        """Nominates the newest version if it is due and fit; True: a test begins."""
        version = newest.version
        if version in (0, self._looked):
            return False
        if self._config.evidence == "simulator":  # it nominates, and plays the matches
            return False
        if not self._promotion.judges:  # the learner's machine nominates
            return False
        with self._looking:
            state = self._promotion.state
            if version == self._looked or roles.nomination_refused(state, version):
                return False
            if not may_test(state, self._folder.pointers.read("champion")):
                return False
            with self._lock:
                recent = list(self._recent)
                if self._decisions() < _FEWEST_DECISIONS:
                    return False
            return self._look(newest, recent)

    def _look(self, newest: Policy, recent: Sequence[RecentMatch]) -> bool:
        version = newest.version
        experience = self.learned(version)
        if experience is None or experience < self._not_below:
            self._looked = version
            return False
        reason = self._reason(newest, experience, recent)
        if reason is None:
            return False
        if not reason:
            self._looked = version
            self.waits = self._until_due(experience)
            return False
        scale = float(newest.weights.value_scale)
        self.waits = self._objection(scale)
        if self.waits:  # looked at again: practice goes on, with this version or a later one
            return False
        self._looked = version
        config = self._config
        # Where versions practise nothing was objected, so practice looks better: no mere clone.
        certain = config.practice_share > 0.0
        words = unfit(newest, recent, slow_ms=config.slow_ms, certain=certain)
        if words:
            self._not_below = experience * _MORE_AFTER_REFUSAL
            self.waits = f"version {version} was unfit"
            self._refused(version, words)
            return False
        return self._promotion.nominate(
            version, experience=experience, reason=reason + self._looks(scale)
        )

    def _objection(self, scale: float) -> str:
        """Why no version is tried now, though one is due; empty: nothing speaks against it. `scale`
        is that of its returns.

        Whole matches tell more than windows, whose values are what a network believes: cameos
        object only where no version practises. Beside a champion there are none.
        """
        state = self._promotion.state
        if self._config.practice_share:
            lead = self._least_lead
            return practice_objection(
                state.practice, self._config, incumbent=state.incumbent, least_lead=lead
            )
        if state.incumbent != RULES:
            return ""
        with self._lock:
            shown = weigh(self._cameos, scale=scale)
        return shown.words if shown.worse >= self._config.harm else ""

    def _until_due(self, experience: int) -> str:
        """How long until a version is due by experience; one that decides otherwise is earlier.
        Where versions practise, it is then tested once practice looks better."""
        last = self._last_tried()[1]
        needed = self._config.first_matches if last is None else self._config.growth * last
        return f"a version is due within {math.ceil(needed) - experience:,} matches"

    def _last_tried(self) -> tuple[int, int | None]:
        """The version that was tried last, and its matches; (0, None): none was."""
        nominated = (one for one in reversed(self._promotion.verdicts) if one.kind == "nominated")
        tried = next(nominated, None)
        return (0, None) if tried is None else (tried.version, self._promotion.state.experience)

    def _looks(self, scale: float) -> str:
        """What practice and cameos add to the reason of a nomination."""
        state = self._promotion.state
        words, practice = "", state.practice
        if self._config.practice_share and practice.recent.matches:
            words += (
                f"; practice {practice.recent.mean:.0%} recently, "
                f"{roles.name_of(practice.against)} {practice.incumbent.mean:.0%}"
            )
        with self._lock:
            if state.incumbent == RULES and len(self._cameos) == _CAMEO_WINDOWS:
                words += f"; {weigh(self._cameos, scale=scale).words}"
        return words

    def learned(self, version: int) -> int | None:
        """Matches that a version has learned from; None: it cannot be read, and is refused once."""
        known, matches = self._experience  # a copy: other threads ask for other versions
        if known == version:
            return matches
        try:
            matches = learned_matches(self._folder.versions.manifest(version))
        except (FileFormatError, OSError) as error:
            self._experience = version, None
            self._refused(version, f"it cannot be read: {error}")
            return None
        self._experience = version, matches
        return matches

    def _reason(self, newest: Policy, experience: int, recent: Sequence[RecentMatch]) -> str | None:
        """Why the newest version is due; empty: it is not; None: not known yet."""
        tried, last = self._last_tried()
        due = reason_to_try(experience=experience, last=last, divergence=0.0, config=self._config)
        if due or not tried:
            return due
        now = self._folder.clock.monotonic()
        if now - self._compared_at < COMPARE_EVERY_S:
            return None
        self._compared_at = now
        old = self._tried_policy(tried)
        if old is None:  # gone: only experience counts
            return ""
        return reason_to_try(
            experience=experience,
            last=last,
            divergence=divergence(old.log_probs(recent), newest, recent),
            config=self._config,
        )

    def _tried_policy(self, version: int) -> _TriedPolicy | None:
        if self._tried is None or self._tried.policy.version != version:
            try:
                self._tried = _TriedPolicy(self._folder.versions.policy(version))
            except (FileFormatError, RunFolderError, OSError):
                return None
        return self._tried

    def _decisions(self) -> int:
        return sum(len(match.observations) for match in self._recent)
