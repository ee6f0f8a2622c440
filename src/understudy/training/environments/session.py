"""A session in a Gymnasium or PettingZoo environment: what is asked, how far it is, its summary."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from understudy.core.config import Config, LearnerConfig, TrainConfig
from understudy.core.config.section import Section
from understudy.core.errors import ConfigError
from understudy.match.tally import Tally
from understudy.policy.spec import AnyNetwork
from understudy.supervise.budget import Budget
from understudy.training.session import TrainingProgress, TrainingSummary

_RECENT = 100
_ROUNDING = 1e-6
_ARENA_SECTIONS = ("curriculum", "rewards", "league", "population")
"""Sections of the config that only the arena reads."""


class Finished(NamedTuple):
    """One match of one environment."""

    reward: float
    """The sum of rewards, as the mean over the agents."""
    steps: int
    sides: tuple[float, ...] = ()
    """The sum of rewards of each agent, in the order of the environment's agents."""
    alike: bool = False
    """Whether a time limit ended it, with the same rewards as the first match of the session."""


def mean_sides(agents: Sequence[str], matches: Collection[Finished]) -> dict[str, float]:
    """The mean reward of each agent, by its name; nothing where there is one agent alone."""
    if len(agents) == 1 or not matches:
        return {}
    means = np.mean([one.sides for one in matches], 0)
    return {agent: float(mean) for agent, mean in zip(agents, means, strict=True)}


def zero_sum(matches: Collection[Finished]) -> bool:
    """Whether several agents played, and their rewards added up to 0 in every match."""
    return bool(matches) and all(
        len(one.sides) > 1 and abs(sum(one.sides)) <= _ROUNDING * (1.0 + sum(map(abs, one.sides)))
        for one in matches
    )


def environment_config() -> Config:
    """Settings that suit small environments on one core."""
    return Config(
        learner=LearnerConfig(
            learning_rate=1e-3,
            learning_rate_max=2.5e-3,
            kl_target=0.015,
            gamma=0.99,
            entropy_weight=0.005,
            epochs=8,
            minibatches=4,
            precision="float32",
        ),
        train=TrainConfig(games=8, segment=128, checkpoint_steps=50_000),
    )


def _changed(section: Section, default: Section) -> list[str]:
    """The settings that differ, by name."""
    names = section.__struct_fields__
    return [name for name in names if getattr(section, name) != getattr(default, name)]


@dataclass(frozen=True, kw_only=True)
class EnvironmentSession:
    """What to train in, for how long, and where."""

    environment: str
    run: Path
    budget: Budget
    evaluate: int = 0
    resume: bool = False
    network: AnyNetwork
    config: Config
    options: Mapping[str, Any] = field(default_factory=dict)
    """Handed to the environment when it is made."""

    def __post_init__(self) -> None:
        if self.evaluate < 0:
            raise ConfigError(f"--eval: expected 0 or more, got {self.evaluate}")
        for section in _ARENA_SECTIONS:
            changed = _changed(getattr(self.config, section), getattr(Config(), section))
            if changed:
                raise ConfigError(
                    f"[{section}]: {self.environment} brings its own rewards and opponents, so "
                    f"nothing reads {', '.join(f'{section}.{name}' for name in changed)}; leave "
                    "it at its default"
                )
        if self.config.promotion.evidence != "matches":
            raise ConfigError(
                f"promotion.evidence: {self.environment} has no simulator beside it, only built-in "
                f"games have; leave it at its default, got {self.config.promotion.evidence!r}"
            )
        if self.config.train.record:
            raise ConfigError(
                f"train.record: {self.environment} cannot be replayed, only matches of built-in "
                f"games are recorded; leave it at 0, got {self.config.train.record}"
            )


@dataclass
class EnvironmentProgress(TrainingProgress[EnvironmentSession]):
    """How far a session is; matches and updates are those of the whole run."""

    agents: tuple[str, ...] = ("agent",)
    recent: deque[Finished] = field(default_factory=lambda: deque(maxlen=_RECENT))
    problem: str = ""
    """What keeps the run from learning; empty: nothing known."""

    @property
    def reward(self) -> float:
        """Mean reward of the recent matches."""
        return float(np.mean([one.reward for one in self.recent])) if self.recent else 0.0

    @property
    def sides(self) -> dict[str, float]:
        """The same of each agent, where there are several."""
        return mean_sides(self.agents, self.recent)


@dataclass(frozen=True)
class EvaluationProgress:
    """How far the frozen matches against one opponent are."""

    version: int
    opponent: str
    """Empty where the version plays every side."""
    matches: int
    share: float
    """How much of them is over, 0 to 1."""


@dataclass(frozen=True)
class Evaluation:
    """Frozen matches of one version."""

    version: int
    agents: tuple[str, ...]
    matches: tuple[Finished, ...]
    """Those in which the version plays every side."""
    opponents: Mapping[str, Tally]
    """Results against `random` and `version N`, of zero-sum environments."""
    seconds: float

    @property
    def reward(self) -> float:
        """Mean reward of a match."""
        return float(np.mean([one.reward for one in self.matches]))

    @property
    def sides(self) -> dict[str, float]:
        """The same of each agent, where there are several."""
        return mean_sides(self.agents, self.matches)

    def as_dict(self) -> dict[str, object]:
        """For `--json`."""
        rewards = [one.reward for one in self.matches]
        result: dict[str, object] = {
            "matches": len(rewards),
            "reward": self.reward,
            "reward_min": min(rewards),
            "reward_max": max(rewards),
            "mean_steps": float(np.mean([one.steps for one in self.matches])),
            "seconds": round(self.seconds, 3),
        }
        if self.sides:
            result["sides"] = self.sides
        if self.opponents:
            result["opponents"] = {name: one.as_dict() for name, one in self.opponents.items()}
        return result


@dataclass(frozen=True, kw_only=True)
class EnvironmentSummary(TrainingSummary):
    """The result of a session; `steps_s` does not count the evaluation."""

    updates: int
    evaluation: Evaluation | None = None
    problem: str = ""
    """What kept it from learning; empty: nothing known."""

    @property
    def reward(self) -> float | None:
        """Mean reward of the frozen matches."""
        return self.evaluation.reward if self.evaluation else None

    def as_dict(self) -> dict[str, object]:
        """For `--json`."""
        result: dict[str, object] = {
            "run": self.run,
            "version": self.version,
            "steps": self.steps,
            "matches": self.matches,
            "updates": self.updates,
            "steps_s": round(self.steps_s, 1),
            "interrupted": self.interrupted,
        }
        if self.problem:
            result["problem"] = self.problem
        if self.evaluation:
            result["eval"] = self.evaluation.as_dict()
        return result
