"""A tiny strategist that plays tug, and records of its matches."""

from __future__ import annotations

from match.tug import Moody, Steady, Tug
from policy.makers import lively_params

from understudy.match.players import BotPlayer, Player, PolicyPlayer
from understudy.policy.policy import Policy, untrained
from understudy.policy.spec import PolicySpec
from understudy.policy.strategist import Strategist

GAME = Tug()
NETWORK = Strategist(
    width=8, heads=2, layers=2, feed=8, window=5, latent=6, lstm=7, head_widths=(8,), opponent=2
)
SPEC = PolicySpec(GAME.features, GAME.actions, NETWORK)
OPPONENTS: dict[str, Player] = {
    "rest": BotPlayer(Steady(0)),
    "moody": BotPlayer(Moody()),
    "heave": BotPlayer(Steady(2)),
}


def lively(seed: int = 1) -> Policy:
    """A policy with opinions, on which its latent has a say."""
    policy = untrained(SPEC, seed)
    params = lively_params(NETWORK, seed, inputs=2, outputs=3)
    for name in ("lstm.latent.w", "policy.w"):
        params[name] *= 8
    policy.weights.params.update(params)
    return policy


def player(seed: int = 1) -> PolicyPlayer:
    return PolicyPlayer(lively(seed), sampled=True)
