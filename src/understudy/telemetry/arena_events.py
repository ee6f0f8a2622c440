"""What training in the arena tells: iterations, stages, snapshots, ratings, judged checkpoints.

They are events like all others: import them from `telemetry.events`. Each carries `steps`, the
decisions that the run has trained on, so that a session which goes on can drop what it repeats.
"""

from __future__ import annotations

import msgspec

ENVIRONMENT = "environment"
"""The name of a Gymnasium or PettingZoo environment among `returns`."""


class _Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag=True):
    pass


class MatchesTrained(_Event, frozen=True, kw_only=True):
    """An iteration of the arena: what its matches came to, by opponent."""

    steps: int
    """Decisions trained on in this run so far."""
    results: dict[str, tuple[int, int, int, int]]
    """started, wins, draws and losses of the iteration"""
    returns: dict[str, float] = {}
    """mean return of the matches that ended"""
    matches: int = 0
    """How many ended without a winner or loser, as environments of others have them."""
    total_matches: int = 0
    """Matches of such an environment in the whole run so far; 0: not said."""
    sides: dict[str, float] = {}
    """The mean return of each agent of such an environment, where it has several."""
    alike: int = 0
    """How many of those a time limit ended with the rewards of the session's first match."""
    terms: dict[str, dict[str, float]] = {}
    """opponent -> reward term -> its weighted sum over the matches that ended"""
    measures: dict[str, dict[str, float]] = {}
    """opponent -> measure of the game (damage_dealt, knockouts…) -> its sum over those matches"""
    ended: list[tuple[str, int, int, float]] = []
    """opponent, score (+1, 0, -1), frames and return of each match that ended"""
    stage: str = ""
    """Of the curriculum, if there is one."""
    residual: float = 0.0
    """Returns less the sums of their terms: 0, unless weights are too large for exact sums."""


class StrategyMeasured(_Event, frozen=True, kw_only=True):
    """What the strategy encoder made of the opponents of one iteration."""

    steps: int
    latent_mean: float
    """Mean over all numbers of all latents."""
    latent_spread: float
    """How far latents lie from their mean (root of the mean square, a number of them)."""
    attention_entropy: float
    """Of the shares that frames have in a latent, in nats: 0: one frame; ln N: N frames alike."""
    drift: float
    """How far the mean latent against an opponent moved since the last time, on average."""
    by_opponent: dict[str, tuple[float, ...]] = {}
    """The mean latent against each opponent, or the first few numbers of it."""


class StageChanged(_Event, frozen=True, kw_only=True):
    """The curriculum went on to a stage, or back to one."""

    steps: int
    before: str
    """"" at the start of a run."""
    after: str
    reason: str


class SnapshotTaken(_Event, frozen=True, kw_only=True):
    """The learner's weights were offered to the pool of snapshots."""

    steps: int
    name: str
    """step-N, as a person names it."""
    kept: bool
    reason: str
    """Why it was kept or not, and what it displaced."""
    pool: int
    """How many snapshots the pool holds now."""


class Tally(msgspec.Struct, frozen=True, array_like=True):
    """What judged matches against one opponent came to; sums, but for the mean return."""

    wins: int
    draws: int
    losses: int
    mean_return: float = 0.0
    damage_dealt: float = 0.0
    damage_taken: float = 0.0
    knockouts: float = 0.0
    falls: float = 0.0


class CheckpointJudged(_Event, frozen=True, kw_only=True):
    """A version under training met opponents in frozen matches."""

    steps: int
    version: int
    seconds: float
    opponents: dict[str, Tally]
    matches: int = 0
    """Of an environment: matches in which the version played every side."""
    reward: float = 0.0
    """The mean reward of those."""
    sides: dict[str, float] = {}
    """The same of each agent, where there are several."""


class LearnerRated(_Event, frozen=True, kw_only=True):
    """The learner's rating after an iteration."""

    steps: int
    mu: float
    sigma: float
    """Standard deviation of the belief: mu - 3 sigma is a number to boast of."""


class AgentReplaced(_Event, frozen=True, kw_only=True):
    """An agent of a population gave way to a mutated copy of another."""

    steps: int
    agent: int
    parent: int
    fitness: float
    parent_fitness: float
    settings: dict[str, float] = {}
    """The copy's hyper-parameters."""
