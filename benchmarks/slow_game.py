"""Does the ring learn a game whose only reward comes at its end? One match a batch, as it plays.

    python benchmarks/slow_game.py [--first-seed 801] [--seeds 8] [--matches 600] [--json]

A match has 60 decisions between two actions; which is right depends linearly on eight features. The
reward is 0 until the match ends, then +10 for a victory and -5 for a defeat, and the chance to win
rises with the share of right actions: a match is about decided by whether more actions were right
than wrong. All decisions of a match so have one result in common, and a batch is one new match with
what replay adds to it, under the default settings of the learner. By chance half of the actions are
right. Over the last 50 matches 0.70 of them have to be, on average over the seeds.
"""

from __future__ import annotations

import argparse
import json
import sys

import machine
import numpy as np
from msgspec import structs

from understudy.core.arrays import NDArray
from understudy.core.config import LearnerConfig
from understudy.core.spaces import Discrete
from understudy.experience.episode import Episode, Meta, Outcome
from understudy.experience.episode_replay import EpisodeReplay
from understudy.learner.slow_games import batch_settings
from understudy.learner.trainer import Trainer
from understudy.policy.policy import Policy
from understudy.policy.presets import network
from understudy.policy.spec import PolicySpec

DECISIONS, FEATURES = 60, 8
VICTORY, DEFEAT = 10.0, -5.0
STEEPNESS = 16.0
"""Of the chance to win: 0.83 with 0.6 of the actions right, 0.96 with 0.7."""
LAST, LEAST = 50, 0.70
SPEC = PolicySpec(
    tuple(f"feature {index}" for index in range(FEATURES)),
    Discrete(("left", "right")),
    network("mlp"),
)


def match(policy: Policy, rng: np.random.Generator, rule: NDArray) -> tuple[Episode, float]:
    """One match, and the share of right actions in it; `rule` [F] tells which they are."""
    seen = rng.normal(size=(DECISIONS, FEATURES)).astype(np.float32)
    draws = rng.random((DECISIONS, 1), dtype=np.float32)
    choice = policy.act(seen, policy.begin(DECISIONS), uniforms=draws)
    share = float((choice.actions[:, 0] == (seen @ rule > 0.0)).mean())
    won = rng.random() < 1.0 / (1.0 + np.exp(STEEPNESS * (0.5 - share)))
    rewards = np.zeros(DECISIONS, np.float32)
    rewards[-1] = VICTORY if won else DEFEAT
    outcome = Outcome.VICTORY if won else Outcome.DEFEAT
    episode = Episode(
        meta=Meta(id=str(policy.version), outcome=outcome, finished_at=float(policy.version)),
        observations=seen,
        actions=choice.actions,
        log_probs=choice.log_probs,
        values=choice.values,
        rewards=rewards,
        sampled=np.ones(DECISIONS, np.bool_),
        versions=np.full(DECISIONS, policy.version, np.int64),
    )
    return episode, share


def learned(seed: int, matches: int) -> list[float]:
    """The share of right actions in each match, one after the other."""
    config = structs.replace(LearnerConfig(), seed=seed)
    trainer, rng = Trainer(SPEC, config), np.random.default_rng(seed)
    rule = rng.normal(size=FEATURES)
    replay = EpisodeReplay(
        capacity=config.replay_capacity,
        limit=config.samples_per_insert,
        priority=config.priority,
        gamma=config.gamma,
        lam=config.target_lambda,
    )
    shares = []
    for version in range(matches):
        episode, share = match(Policy(SPEC, trainer.weights(), version), rng, rule)
        shares.append(share)
        settings = batch_settings(config, [episode], by_evidence=False)
        replayed = replay.sample(rng, settings.replay_matches, times=settings.epochs)
        trainer.train([episode], replayed, version=version)
        replay.insert(episode.meta.id, episode, samples=settings.epochs)
    return shares


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first-seed", type=int, default=801)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--matches", type=int, default=600)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    print(machine.describe("numpy", "jax"), file=sys.stderr)
    found = {}
    for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
        shares = learned(seed, arguments.matches)
        found[seed] = float(np.mean(shares[-LAST:]))
        on_the_way = " ".join(
            f"{np.mean(shares[start : start + 100]):.2f}" for start in range(0, len(shares), 100)
        )
        print(f"seed {seed}: {on_the_way}, last {LAST} {found[seed]:.3f}", file=sys.stderr)
    mean = float(np.mean(list(found.values())))
    if arguments.json:
        about = machine.describe("numpy", "jax")
        print(json.dumps({"machine": about, "right": found, "mean": mean}))
    else:
        for seed, right in found.items():
            print(f"seed {seed}: {right:.3f} of the actions right in the last {LAST} matches")
        print(f"mean {mean:.3f} (chance 0.500, at least {LEAST:.2f})")
    sys.exit(0 if mean >= LEAST else 1)


if __name__ == "__main__":
    main()
