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


def test_every_name_gives_its_network() -> None:
    assert network("mlp") == Mlp()
    assert [network(name) for name in PRESETS] == list(PRESETS.values())


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'decision-transformer'"):
        network("decision-transfomer")
