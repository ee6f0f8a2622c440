"""Networks with a name, so that a person can ask for one."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from understudy.core.errors import ConfigError, nearest
from understudy.policy.mlp import Mlp
from understudy.policy.spec import AnyNetwork
from understudy.policy.transformer import Transformer

PRESETS: Mapping[str, AnyNetwork] = MappingProxyType(
    {
        "mlp": Mlp(),
        "mlp-large": Mlp(widths=(256, 256)),
        "decision-transformer": Transformer(),
        "decision-transformer-long": Transformer(window=64),
    }
)
"""`decision-transformer`: width 64, 4 heads, 2 layers, the last 10 decisions."""


def network(name: str) -> AnyNetwork:
    """The network of that name."""
    if name not in PRESETS:
        raise ConfigError(
            f"network: expected one of {list(PRESETS)}, got {name!r}.{nearest(name, PRESETS)}"
        )
    return PRESETS[name]
