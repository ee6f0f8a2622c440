"""Import paths that earlier documentation printed; each still works, with a DeprecationWarning.

The finder stands behind all others, so it is asked only for modules that do not exist. An old path
gives the names of the module that replaced it, and `python -m` of an old path runs that module.
"""

from __future__ import annotations

import importlib
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType, ModuleType

MOVED = {
    "understudy.games.gymnasium_env": "understudy.adapters.gymnasium.env",
    "understudy.games.pettingzoo_env": "understudy.adapters.pettingzoo.env",
    "understudy.gates.rollout": "understudy.gates.lookahead",
    "understudy.live.bot": "understudy.bot.understudy",
    "understudy.live.client": "understudy.adapters.example_client",
    "understudy.live.match": "understudy.bot.match",
    "understudy.live.rl_agent": "understudy.legacy.rl_agent",
    "understudy.run.budget": "understudy.supervise.budget",
    "understudy.run.host.session": "understudy.training.environments.session",
    "understudy.run.host.spaces": "understudy.adapters.gymnasium.spaces",
    "understudy.run.host.training": "understudy.training.train",
}
"""old path -> new path"""
RENAMED = {
    "understudy.gates.rollout": {"RolloutGate": "LookaheadGate"},
    "understudy.run.host.session": {
        "HostProgress": "EnvironmentProgress",
        "HostSession": "EnvironmentSession",
        "HostSummary": "EnvironmentSummary",
        "host_config": "environment_config",
    },
    "understudy.live.match": {"Decision": "MatchDecision"},
    "understudy.run.host.spaces": {"Seam": "SpaceTranslator"},
    "understudy.run.host.training": {"train_host": "train_environment"},
}
"""old path -> {old name: new name}"""
_GONE = {"understudy.live", "understudy.run.host"}
"""Packages of which nothing is left but what stands in `MOVED`."""


class MovedModules:
    """Finds the modules of `MOVED`, and the packages that they were in."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """See `importlib.abc.MetaPathFinder`."""
        if fullname in _GONE:
            return ModuleSpec(fullname, None, is_package=True)
        if fullname not in MOVED:
            return None
        import importlib.util

        new = importlib.util.find_spec(MOVED[fullname])
        assert new is not None
        return ModuleSpec(fullname, _Redirect(new), origin=new.origin)  # type: ignore[arg-type]


class _Redirect:
    """A loader that hands out the names of another module."""

    def __init__(self, new: ModuleSpec) -> None:
        self._new = new

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        self._warn(module.__name__)
        found = vars(importlib.import_module(self._new.name))
        module.__doc__ = found["__doc__"]
        vars(module).update({name: one for name, one in found.items() if name[:2] != "__"})
        for old, new in RENAMED.get(module.__name__, {}).items():
            setattr(module, old, found[new])

    def get_code(self, fullname: str) -> CodeType | None:
        """For `python -m`."""
        self._warn(fullname)
        code: CodeType | None = self._new.loader.get_code(self._new.name)  # type: ignore[union-attr]
        return code

    def _warn(self, old: str) -> None:
        import warnings

        message = f"{old} is now {self._new.name}"
        warnings.warn(message, DeprecationWarning, stacklevel=3)
