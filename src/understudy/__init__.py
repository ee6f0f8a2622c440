"""Understudy: a bot keeps playing while a learner improves it in the background.

Importing this costs milliseconds: every name is loaded when it is first used.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from understudy.deprecated_paths import MovedModules

if TYPE_CHECKING:
    from understudy.agents.loading import load_agent as load_agent
    from understudy.bot.understudy import Understudy as Understudy
    from understudy.core.config import Config as Config
    from understudy.core.config import with_values as with_values
    from understudy.core.errors import UnderstudyError as UnderstudyError
    from understudy.core.spaces import Discrete as Discrete
    from understudy.core.spaces import MultiBinary as MultiBinary
    from understudy.core.spaces import MultiDiscrete as MultiDiscrete
    from understudy.policy.mlp import Mlp as Mlp
    from understudy.policy.transformer import Transformer as Transformer

__version__ = "0.1.0"

_HOMES = {
    "Config": "understudy.core.config",
    "Discrete": "understudy.core.spaces",
    "Mlp": "understudy.policy.mlp",
    "MultiBinary": "understudy.core.spaces",
    "MultiDiscrete": "understudy.core.spaces",
    "Transformer": "understudy.policy.transformer",
    "Understudy": "understudy.bot.understudy",
    "UnderstudyError": "understudy.core.errors",
    "load_agent": "understudy.agents.loading",
    "with_values": "understudy.core.config",
}

__all__ = [*_HOMES, "__version__"]  # noqa: PLE0604

sys.meta_path.append(MovedModules())


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'understudy' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
