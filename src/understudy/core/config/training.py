"""Settings of `understudy train`: `[train]` `[league]` `[rewards]` `[monitor]` `[population]`."""

from __future__ import annotations

import math
from typing import Literal

import msgspec

from understudy.core.config.section import (
    FLOAT32,
    Section,
    at_least_zero,
    check,
    is_float32,
    positive,
    share,
)
from understudy.core.errors import ConfigError


class TrainConfig(Section, frozen=True, kw_only=True):
    """How `understudy train` plays and keeps what it learned (`[train]`)."""

    preset: str = ""
    """The network in the arena where --network names none; empty: seed on a GPU, else small."""
    games: int = 256
    """Matches side by side."""
    segment: int = 128
    """Frames that each of them plays between two updates."""
    steps: int = 0
    """The budget where neither --steps nor --minutes is given; 0: the command's own."""
    opponents: str = "all"
    """Who is met how often, by weight: based=1.5,random=1,self=2; all: every scripted bot alike."""
    groups: int = 4
    """Snapshots that can be met at one time (`self`)."""
    checkpoint_steps: int = 2_000_000
    """Steps between two versions that are kept (rounded up to whole iterations)."""
    record: int = 0
    """Matches between two versions that are recorded, for `watch --match`; 0: none."""
    schedule: Literal["adaptive", "linear", "constant"] = "adaptive"
    """The learning rate: follows learner.kl_target, falls to its minimum by the end, or stays."""
    entropy_schedule: Literal["linear", "constant"] = "linear"
    """The bonus for keeping options open: falls to nothing by the end, or stays."""
    noise_steps: int = 1
    """Environments: steps that one random draw is kept for, on average. More explores further."""

    asynchronous: bool = False
    """Environments with workers: play while the learner learns, with weights that are at most one
    update old (`--async`)."""
    zero_sum: Literal["detect", "declared"] = "detect"
    """Environments with a league: rewards must add up to 0 in every match; or, `declared`, the side
    with more reward wins, whatever they add up to."""

    def __post_init__(self) -> None:
        positive(self, "train", "games", "segment", "groups", "checkpoint_steps", "noise_steps")
        at_least_zero(self, "train", "steps", "record")
        if 0 < self.steps < self.games * self.segment:
            raise ConfigError(
                f"train.steps: {self.steps} are less than one iteration of train.games x "
                f"train.segment = {self.games} x {self.segment} = {self.games * self.segment}"
            )


class LeagueConfig(Section, frozen=True, kw_only=True):
    """Snapshots: when they are kept, and which of them is met (`[league]`)."""

    save_freq: int = 2_000_000
    """Steps between two snapshots (rounded up to whole iterations)."""
    max_saved: int = 50
    """At most this many snapshots, thinned evenly: the first and the newest stay."""
    mode: Literal["force", "selective"] = "force"
    """`force`: every one is kept. `selective`: only one surely rated above all that are kept."""
    sampler: Literal["random", "recent", "latest", "prioritised"] = "prioritised"
    """Who is met: any snapshot, mostly new ones, the newest, or rather those that we lose to."""
    recent: int = 10
    """For `recent`: how many snapshots are new."""
    recent_share: float = 0.99
    """For `recent`: the share of draws among those; the rest goes to the older ones."""
    power: float = 2.0
    """For `prioritised`: a snapshot weighs (1 - our win rate) to this power; 0: all alike."""
    stint: int = 4
    """Matches that a column plays against a snapshot before its group draws another."""
    exploits: str = ""
    """The role of an exploiter: RUN@VERSION is its only opponent; empty: no exploiter."""

    def __post_init__(self) -> None:
        positive(self, "league", "save_freq", "max_saved", "recent", "stint")
        share(self, "league", "recent_share")
        check(self, "league", ["power"], "0 or more", lambda value: 0 <= value < math.inf)


class RewardsConfig(Section, frozen=True, kw_only=True):
    """What the learner is rewarded for (`[rewards]`)."""

    set: str = "default"
    """The terms and their weights, by name: default (the game's own), sparse, dense ..."""
    weights: dict[str, float] = msgspec.field(default_factory=dict)
    """Weights that differ from those of the set, or terms beside it: rewards.weights.combo=0.1."""

    def __post_init__(self) -> None:
        for term, weight in self.weights.items():
            if not is_float32(weight):
                raise ConfigError(f"rewards.weights.{term}: expected {FLOAT32}, got {weight}")


class MonitorConfig(Section, frozen=True, kw_only=True):
    """What training writes down about itself (`[monitor]`)."""

    csv: bool = True
    """Tables in the run folder: monitor.csv, reward_breakdown.csv and the others."""
    tensorboard: bool = False
    """Also for TensorBoard (needs tensorboardX)."""
    benchmark_steps: int = 5_000_000
    """Steps between two frozen benchmarks, beside the one at the end; 0: none at all."""
    benchmark_matches: int = 20
    """Matches of a benchmark against each opponent."""

    def __post_init__(self) -> None:
        at_least_zero(self, "monitor", "benchmark_steps")
        positive(self, "monitor", "benchmark_matches")


class PopulationConfig(Section, frozen=True, kw_only=True):
    """Agents that are trained side by side, with settings of their own (`[population]`)."""

    agents: int = 1
    """How many; 1: no population."""
    interval_steps: int = 1_000_000
    """Steps of each agent between two rounds in which the worst are replaced."""
    replaced: float = 0.25
    """The share that a round replaces by changed copies of as many of the best, 0 to 0.5."""
    spread: float = 1.2
    """A copy's settings are multiplied or divided by up to this."""

    def __post_init__(self) -> None:
        positive(self, "population", "agents", "interval_steps")
        check(self, "population", ["replaced"], "0 to 0.5", lambda value: 0 <= value <= 0.5)
        check(self, "population", ["spread"], "1 or more", lambda value: 1 <= value < math.inf)
