"""Network presets: networks by name, as `--network` and `Understudy.open` take them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from understudy.core.errors import ConfigError, nearest
from understudy.policy.mlp import Mlp
from understudy.policy.pointer import Pointer
from understudy.policy.spec import AnyNetwork
from understudy.policy.strategist import Strategist
from understudy.policy.transformer import Transformer

KINDS = 8
"""Opponents that the strategists' recognition head tells apart: scripted bots, and all snapshots as
one. A part of the preset that run folders keep: every built-in game has fewer bots."""
PRESETS: Mapping[str, AnyNetwork] = MappingProxyType(
    {
        "mlp": Mlp(),
        "mlp-large": Mlp(widths=(256, 256)),
        "decision-transformer": Transformer(),
        "decision-transformer-long": Transformer(window=64),
        "pointer": Pointer(),
        "small": Strategist(
            width=64,
            heads=4,
            layers=2,
            feed=128,
            window=33,
            latent=64,
            lstm=128,
            head_widths=(64, 64),
            kinds=KINDS,
        ),
        "medium": Strategist(
            width=128,
            heads=4,
            layers=4,
            feed=512,
            window=65,
            latent=128,
            lstm=256,
            head_widths=(96, 96),
            kinds=KINDS,
        ),
        "seed": Strategist(
            width=256,
            heads=8,
            layers=6,
            feed=1024,
            window=65,
            latent=256,
            lstm=512,
            head_widths=(96, 96),
            kinds=KINDS,
        ),
    }
)
"""`decision-transformer`: width 64, 4 heads, 2 layers, the last 10 decisions.

`pointer`: for territory, whose observations name the five places that matter.

`small`, `medium` and `seed` recognise an opponent: 0.24, 1.4 and 6.7 million parameters on a game
of 64 features and ten actions.
"""


def network(name: str, *, flag: str = "network") -> AnyNetwork:
    """The network of that name; `flag` is where a person gave it, for the error."""
    if name not in PRESETS:
        raise ConfigError(
            f"{flag}: expected one of {', '.join(PRESETS)}; got {name!r}.{nearest(name, PRESETS)}"
        )
    return PRESETS[name]


def fitted(network: AnyNetwork, *, opponent_features: int, opponents: int) -> AnyNetwork:
    """The network for a game: a strategist looks at the features of the opponent that the game
    has, and can name all `opponents` (scripted bots, and all snapshots as one)."""
    if not isinstance(network, Strategist):
        return network
    kinds = max(network.kinds, opponents) if network.kinds else 0
    return msgspec.structs.replace(network, opponent=opponent_features, kinds=kinds)
