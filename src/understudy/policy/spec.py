"""What a policy is made for and made of: features, actions and the network between them."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from understudy.core.errors import InputError
from understudy.core.ops import NUMPY
from understudy.core.spaces import ActionSpace
from understudy.policy.mlp import Mlp
from understudy.policy.pointer import Pointer
from understudy.policy.strategist import Strategist
from understudy.policy.transformer import Transformer

AnyNetwork: TypeAlias = Mlp | Transformer | Strategist | Pointer


class PolicySpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Kept in the run folder and in every version: weights fit one spec and no other."""

    features: tuple[str, ...]
    actions: ActionSpace
    network: AnyNetwork

    @property
    def remembers(self) -> bool:
        """Whether the network carries anything from step to step."""
        return bool(self.network.memory(NUMPY, 1))

    def __post_init__(self) -> None:
        if not self.features:
            raise InputError("features: expected at least one name")
        if len(set(self.features)) != len(self.features):
            double = next(name for name in self.features if self.features.count(name) > 1)
            raise InputError(f"features: the name {double!r} appears twice")
