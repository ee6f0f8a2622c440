from __future__ import annotations

import numpy as np
import pytest

from understudy.core.errors import ConfigError
from understudy.policy.mlp import Mlp
from understudy.policy.presets import PRESETS, network


def test_the_decision_transformer_has_the_size_of_the_old_bots_model() -> None:
    params = network("decision-transformer").init(np.random.default_rng(0), 8, 5)
    layer = (
        2 * 128 + (64 * 192 + 192) + 4 * 10 + (64 * 64 + 64) + (64 * 256 + 256) + (256 * 64 + 64)
    )
    ends = (8 * 64 + 64) + 128 + (64 * 5 + 5) + (64 + 1)
    assert sum(value.size for value in params.values()) == 2 * layer + ends == 101_142


@pytest.mark.parametrize(
    ("name", "most"), [("small", 250_000), ("medium", 1_500_000), ("seed", 7_000_000)]
)
def test_the_strategists_have_their_sizes(name: str, most: int) -> None:
    params = network(name).init(None, 64, 10)
    assert most / 2 < sum(value.size for value in params.values()) < most


def test_the_seed_has_the_size_of_the_peer() -> None:
    """6.74 million parameters, within 5%."""
    params = network("seed").init(None, 64, 10)
    count = sum(value.size for value in params.values())
    layer = 4 * 256 + (256 * 768 + 768) + 8 * 65 + (256 * 256 + 256) + 2 * 256 * 1024 + 1024 + 256
    encoder = (32 * 256 + 256) + 512 + 6 * layer + 512 + 256 + 65
    latent = 2 * (256 * 256 + 256) + (256 * 10 + 10) + (256 * 8 + 8)
    lstm = (64 + 256 + 512) * 2048 + 2048
    heads = 2 * (512 * 96 + 96 + 96 * 96 + 96) + (96 * 10 + 10) + (96 + 1)
    assert count == encoder + latent + lstm + heads
    assert abs(count / 6.74e6 - 1.0) < 0.05


def test_every_name_gives_its_network() -> None:
    assert network("mlp") == Mlp()
    assert [network(name) for name in PRESETS] == list(PRESETS.values())


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'decision-transformer'"):
        network("decision-transfomer")
    with pytest.raises(ConfigError, match="--preset: expected one of mlp, mlp-large, "):
        network("none", flag="--preset")
