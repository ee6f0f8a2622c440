"""A session in a Gymnasium or PettingZoo environment: what is asked, how far it is, its summary."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from understudy.adapters.environments.parallel import Finished
from understudy.core.config import Config
from understudy.core.config.section import Section
from understudy.core.errors import ConfigError
from understudy.league.ratings import Rating
from understudy.match.tally import Tally
from understudy.policy.spec import AnyNetwork
from understudy.supervise.budget import Budget
from understudy.training import named_configs
from understudy.training.session import LeagueProgress, TrainingSummary
from understudy.workers.players import WorkersReport

ALL = "all"
"""`train.opponents` where no opponents are named: the policy plays every agent."""
_RECENT = 100
_ROUNDING = 1e-6
_ARENA_SECTIONS = ("rewards", "population")
"""Sections of the config that only the arena reads."""
_LEAGUE_SECTIONS = ("curriculum", "league")
"""Those that only a league reads."""


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
    return named_configs.config("environment")


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
    bots: tuple[str, ...] = ()
    """Files and modules with scripted opponents."""
    workers: int = 0
    """Workers that play the environments; 0: this process does."""
    ray: str = ""
    """Where workers are Ray actors: `local` or `auto`; empty: they are processes."""

    @property
    def league(self) -> bool:
        """Whether the policy plays one side, and the opponents that were named play the other."""
        return bool(
            self.bots or self.config.curriculum.stages or self.config.train.opponents != ALL
        )

    def __post_init__(self) -> None:
        if self.evaluate < 0:
            raise ConfigError(f"--eval: expected 0 or more, got {self.evaluate}")
        if self.workers < 0:
            raise ConfigError(f"--workers: expected 0 or more, got {self.workers}")
        if self.ray and not self.workers:
            raise ConfigError(f"--ray {self.ray}: say how many workers there are: --workers N")
        if self.config.train.asynchronous and not self.workers:
            raise ConfigError(
                "train.asynchronous: needs workers, which play while this process learns: "
                "--workers N, or --no-async"
            )
        for section in (*_ARENA_SECTIONS, *(() if self.league else _LEAGUE_SECTIONS)):
            changed = _changed(getattr(self.config, section), getattr(Config(), section))
            if changed:
                brings = "rewards" if section in _ARENA_SECTIONS else "opponents"
                advice = "" if section in _ARENA_SECTIONS else ", or name opponents (--opponents)"
                raise ConfigError(
                    f"[{section}]: {self.environment} brings its own {brings}, so "
                    f"nothing reads {', '.join(f'{section}.{name}' for name in changed)}; leave "
                    f"it at its default{advice}"
                )
        if self.config.league.exploits:
            raise ConfigError(
                "league.exploits: exploiters train in the arena; leave it empty, got "
                f"{self.config.league.exploits!r}"
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
class EnvironmentProgress(LeagueProgress[EnvironmentSession]):
    """How far a session is; matches and updates are those of the whole run."""

    agents: tuple[str, ...] = ("agent",)
    recent: deque[Finished] = field(default_factory=lambda: deque(maxlen=_RECENT))
    problem: str = ""
    """What keeps the run from learning; empty: nothing known."""
    workers: WorkersReport | None = None
    """None: there are none, or nothing is known of them yet."""

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
    """Results against `random`, bots, and `version N` or `step-N`, of zero-sum environments."""
    seconds: float

    @property
    def reward(self) -> float:
        """Mean reward of a match."""
        return float(np.mean([one.reward for one in self.matches])) if self.matches else 0.0

    @property
    def sides(self) -> dict[str, float]:
        """The same of each agent, where there are several."""
        return mean_sides(self.agents, self.matches)

    def as_dict(self) -> dict[str, object]:
        """For `--json`."""
        rewards = [one.reward for one in self.matches]
        result: dict[str, object] = {"seconds": round(self.seconds, 3)}
        if rewards:
            result |= {
                "matches": len(rewards),
                "reward": self.reward,
                "reward_min": min(rewards),
                "reward_max": max(rewards),
                "mean_steps": float(np.mean([one.steps for one in self.matches])),
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
    win_rates: Mapping[str, Tally] = field(default_factory=dict)
    """Of the last matches against each opponent of a league."""
    stage: str = ""
    rating: Rating | None = None
    anchor: str = ""
    """The opponent whose rating never moves."""
    snapshots: int = 0
    workers: WorkersReport | None = None

    @property
    def reward(self) -> float | None:
        """Mean reward of the frozen matches."""
        return self.evaluation.reward if self.evaluation and self.evaluation.matches else None

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
        if self.workers is not None:
            result["workers"] = self.workers.as_dict()
        if self.rating is not None:
            result |= {
                "opponents": {name: tally.as_dict() for name, tally in self.win_rates.items()},
                "stage": self.stage,
                "rating": self.rating.as_dict(),
                "snapshots": self.snapshots,
            }
        if self.evaluation:
            result["eval"] = self.evaluation.as_dict()
        return result
