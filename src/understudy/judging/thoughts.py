"""What the policy thought at each decision of a replayed match: computed again from its version.

Probabilities, value, belief about the opponent and attention come from the version that decided,
fed with what it observed. Where something cannot be known, `Mind.missing` says which part and why,
and the rest is there. An episode has the value and the probability of the executed action on
record, so both are known even where its version is gone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.errors import FileFormatError, RunFolderError
from understudy.core.ops import NUMPY, Tree
from understudy.core.spaces import Continuous
from understudy.games import catalog
from understudy.games.base import Game
from understudy.judging.replays import ReplayedMatch
from understudy.policy import distributions
from understudy.policy.policy import Policy, untrained
from understudy.policy.strategist import Strategist
from understudy.policy.weights import normalise
from understudy.registry.run_folder import RunFolder

SNAPSHOTS = "a snapshot of this run"
"""How the belief calls the last kind of opponent: all snapshots are one."""


class MissingPart(msgspec.Struct, frozen=True):
    """A part of a replay that cannot be shown."""

    part: str
    """policy, value, belief or attention"""
    why: str


class Thought(NamedTuple):
    """One decision; None is not known."""

    version: int
    rules: bool = False
    """The rules decided; what is here is what the policy would have done."""
    odds: NDArray | None = None
    """float32 [options]: the probability of every option, each part of which sums to 1"""
    chosen: float | None = None
    """The probability of the executed action."""
    value: float | None = None
    """The return that the policy expected, in units of reward."""
    belief: NDArray | None = None
    """float32 [kinds]: who the opponent is"""
    attention: NDArray | None = None
    """float32 [window]: the share of each frame, the oldest first"""


@dataclass(frozen=True)
class _Facts:
    """Arrays over the T decisions of one match."""

    versions: NDArray
    sampled: NDArray
    observations: NDArray
    legal: NDArray | None
    cuts: NDArray


class Mind:
    """The policies that decided in one match."""

    def __init__(self, folder: RunFolder, match: ReplayedMatch) -> None:
        self._match = match
        self._game = catalog.make(match.game, **match.options)
        self._facts = _facts(match, self._game)
        self.policies: dict[int, Policy] = {}
        """By version; those that are gone are not in it."""
        self.missing: list[MissingPart] = []
        for version in self.versions:
            self._load(folder, version)
        self.network = folder.spec.network
        self.opponents = self._opponents(folder)
        """Whom the belief is about, in the order of `Thought.belief`; empty: it has none."""
        self.window = self._window()
        """Frames that attention is over; 0: it has none."""
        self.note = ""
        """What to know of all that is shown; empty: nothing."""
        if match.meta is not None and self.policies:
            self.note = _BETWEEN_VERSIONS.format(match.meta.version)
        self.deviation: float | None = None
        """After `thoughts`: the largest difference between a recorded log-probability and the one
        that was computed now. None: none was recorded."""

    @property
    def versions(self) -> list[int]:
        """All that decided."""
        numbers: list[int] = np.unique(self._facts.versions).tolist()
        return numbers

    def thoughts(self) -> Iterator[Thought]:
        """One for each decision, in their order."""
        memory: Tree = ()
        before: int | None = None
        for frame in range(self._match.frames):
            version = int(self._facts.versions[frame])
            policy = self.policies.get(version)
            if policy is None:
                before = None
                yield self._recorded(frame)
                continue
            # A memory made under other weights is wrong, and so is one with a gap.
            if version != before or self._facts.cuts[frame]:
                memory = policy.begin()
            before = version
            thought, memory = self._computed(frame, policy, memory)
            yield thought

    def _computed(self, frame: int, policy: Policy, memory: Tree) -> tuple[Thought, Tree]:
        facts, network = self._facts, policy.spec.network
        weights, space = policy.weights, policy.spec.actions
        obs = normalise(NUMPY, weights, facts.observations[frame][None])
        belief = attention = None
        if isinstance(network, Strategist):
            insight = network.step_insight(NUMPY, weights.params, obs, memory)
            logits, values, memory = insight[:3]
            if self.window and insight.attention is not None:
                attention = insight.attention[0]
            if self.opponents and insight.kind_logits is not None:
                belief = _softmax(insight.kind_logits[0])[: len(self.opponents)]
        else:
            logits, values, memory = network.step(NUMPY, weights.params, obs, memory)
        legal = None if facts.legal is None else facts.legal[frame][None]
        odds = chosen = None
        if not isinstance(space, Continuous):
            log_odds = distributions.log_probs(NUMPY, space, logits, legal)
            odds = np.exp(log_odds[0])
            executed = self._match.actions[frame, self._match.side][None]
            log_prob = float(distributions.log_prob(NUMPY, space, logits, executed, legal)[0])
            chosen = math.exp(log_prob)
            self._compare(frame, log_prob)
        thought = Thought(
            version=policy.version,
            rules=not facts.sampled[frame],
            odds=odds,
            chosen=chosen,
            value=float(values[0] * weights.value_scale),
            belief=belief,
            attention=attention,
        )
        return thought, memory

    def _compare(self, frame: int, log_prob: float) -> None:
        """An episode has the log-probability of what the policy drew on record."""
        if self._match.episode is not None and self._facts.sampled[frame]:
            apart = abs(log_prob - float(self._match.episode.log_probs[frame]))
            self.deviation = max(apart, self.deviation or 0.0)

    def _recorded(self, frame: int) -> Thought:
        """What an episode has on record."""
        facts, episode = self._facts, self._match.episode
        thought = Thought(int(facts.versions[frame]), rules=not facts.sampled[frame])
        if episode is None:
            return thought
        chosen = math.exp(float(episode.log_probs[frame])) if facts.sampled[frame] else None
        return thought._replace(chosen=chosen, value=float(episode.values[frame]))

    def _load(self, folder: RunFolder, version: int) -> None:
        """The policy of one version, or why there is none."""
        if version == 0:
            if self._match.episode is not None:
                self.policies[0] = untrained(folder.spec, folder.config.learner.seed)
            else:
                self._miss_policy(
                    "The match ended before the run kept its first version, so the policy that "
                    "played it is not stored."
                )
            return
        try:
            self.policies[version] = folder.versions.policy(version)
        except RunFolderError:
            self._miss_policy(
                f"Version {version} is no longer kept: a run removes versions beyond "
                "registry.keep_versions."
            )
        except (FileFormatError, OSError) as error:
            self._miss_policy(f"Version {version} cannot be read: {error}")

    def _miss_policy(self, why: str) -> None:
        known = "" if self._match.episode is None else (
            " The value and the probability of what it did were recorded with the match."
        )  # fmt: skip
        self.missing.append(MissingPart("policy", why + known))

    def _opponents(self, folder: RunFolder) -> tuple[str, ...]:
        if not self.policies:
            return ()
        if not isinstance(self.network, Strategist) or not self.network.kinds:
            self._miss("belief", f"Its network ({self._kind}) does not recognise opponents.")
        elif self._game.players == 1:
            self._miss("belief", f"{self._match.game} has one player: no opponent is learned.")
        elif folder.config.learner.recognition_weight == 0.0:
            self._miss("belief", "The run does not train it: learner.recognition_weight is 0.")
        else:
            bots = tuple(catalog.bots(self._match.game, **self._match.options))
            return (*bots, SNAPSHOTS)[: self.network.kinds]
        return ()

    def _window(self) -> int:
        if not self.policies:
            return 0
        if isinstance(self.network, Strategist):
            return self.network.window
        self._miss(
            "attention",
            f"Its network ({self._kind}) does not weigh a window of frames; small, medium and "
            "seed do.",
        )
        return 0

    @property
    def _kind(self) -> str:
        return type(self.network).__name__.lower()

    def _miss(self, part: str, why: str) -> None:
        self.missing.append(MissingPart(part, why))


_BETWEEN_VERSIONS = (
    "Shown is version {}, the newest before the match ended. Training goes on between versions, so "
    "the policy that played may have differed a little."
)


def _facts(match: ReplayedMatch, game: Game) -> _Facts:
    episode = match.episode
    if episode is not None:
        cuts = np.zeros(len(episode), np.bool_) if episode.cuts is None else episode.cuts
        return _Facts(episode.versions, episode.sampled, episode.observations, episode.legal, cuts)
    assert match.meta is not None
    seen = [
        (game.observe(NUMPY, state)[match.side, :, 0], game.legal(NUMPY, state)[match.side, :, 0])
        for state in match.states[:-1]
    ]
    return _Facts(
        versions=np.full(match.frames, match.meta.version, np.int64),
        sampled=np.ones(match.frames, np.bool_),
        observations=np.stack([obs for obs, _ in seen]),
        legal=np.stack([legal for _, legal in seen]),
        cuts=np.zeros(match.frames, np.bool_),
    )


def _softmax(logits: NDArray) -> NDArray:
    odds = np.exp(logits - logits.max())
    shares: NDArray = odds / odds.sum()
    return shares
