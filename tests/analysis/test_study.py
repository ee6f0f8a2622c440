"""The agent's own answer beside the probes."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from understudy.analysis.study import SECONDS, Encoded, answers
from understudy.policy.policy import Policy, untrained

from .makers import NETWORK, SPEC

BOTS = ("rest", "moody", "heave")


def naming(kinds: int) -> Policy:
    """An agent that takes the largest of its latent's first numbers for the opponent's kind."""
    network = msgspec.structs.replace(NETWORK, kinds=kinds)
    policy = untrained(msgspec.structs.replace(SPEC, network=network), 1)
    if kinds:
        policy.weights.params["kind.w"] = np.eye(network.latent, kinds, dtype=np.float32)
        policy.weights.params["kind.b"] = np.zeros(kinds, np.float32)
    return policy


def encoded(*latents: list[float]) -> Encoded:
    """The same latents at every time, of the trained encoder and one that is not."""
    wide = np.zeros((len(latents), NETWORK.latent), np.float32)
    wide[:, :4] = latents
    at = np.stack([np.stack([one] * len(SECONDS)) for one in (wide, -wide)])
    return Encoded(at, np.zeros_like(at))


def test_an_agent_names_the_likeliest_of_those_it_is_asked_about() -> None:
    seen = encoded([1.0, 0, 0, 0], [0, 0, 1.0, 0], [0, 2.0, 1.0, 0], [0, 0, 1.0, 5.0])
    said = answers(naming(4), seen, BOTS, BOTS)
    assert said is not None
    assert said.tolist() == [[0, 2, 1, 2]] * len(SECONDS)  # never the fourth, which is itself
    some = answers(naming(4), seen, ("heave", "rest"), BOTS)
    assert some is not None and some[0].tolist() == [1, 0, 0, 0]  # by their place among the asked


@pytest.mark.parametrize(("kinds", "opponents"), [(0, BOTS), (2, BOTS), (4, ("rest", "runs/x"))])
def test_one_that_has_no_name_for_somebody_is_not_asked(
    kinds: int, opponents: tuple[str, ...]
) -> None:
    assert answers(naming(kinds), encoded([1.0, 0, 0, 0]), opponents, BOTS) is None
