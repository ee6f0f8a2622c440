"""Makes decision gates from their names: those that ship, and `module:Name` for custom gates.

A custom gate is code. Its name comes from the command line alone: never from a schema file, a
config or a run folder, which people pass on to others.
"""

from __future__ import annotations

import importlib
import inspect
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from understudy.adapters.territory.cost_gate import CostGate
from understudy.core.errors import ConfigError, nearest
from understudy.core.spaces import ActionSpace
from understudy.games import catalog
from understudy.games.territory import Territory
from understudy.games.territory.imagine import imagine as imagine_territory
from understudy.gates.decision import DecisionGate, OpenGate, Verdict
from understudy.gates.lookahead import Imagine, LookaheadGate

OPEN, COST, ROLLOUT = "open", "cost", "rollout"
SHIPPED = (OPEN, COST, ROLLOUT)
_IMAGINED: Mapping[str, Imagine] = {Territory.name: imagine_territory}
_FLAG = "--gate"
_WRONG = (
    ArithmeticError, AttributeError, ImportError, LookupError, NameError, SyntaxError, TypeError,
    ValueError,
)  # fmt: skip
"""What a mistake in a user's module may raise."""


def make_gate(
    name: str,
    *,
    game: str,
    threshold: float,
    budget_ms: float,
    features: int | None = None,
    actions: ActionSpace | None = None,
) -> DecisionGate:
    """The gate of this name for a game (`territory`, or the name in a schema).

    A custom gate is tried once, on an observation of zeros; for a game that is not built in,
    `features` (how many) and `actions` give the shapes. Raises `ConfigError` for a name without a
    gate, a gate that does not fit the game, and a custom gate that fails.
    """
    if name == OPEN:
        return OpenGate()
    if name == COST:
        return _cost(game, threshold)
    if name == ROLLOUT:
        return _rollout(game, threshold, budget_ms)
    if ":" not in name:
        raise ConfigError(
            f"{_FLAG}: expected {', '.join(SHIPPED)} or module:Name, got {name!r}."
            + nearest(name, SHIPPED)
        )
    custom = _made(_found(name), name, threshold)
    if features is None or actions is None:
        if _base(game) not in catalog.names():
            return custom
        built_in = catalog.make(_base(game))
        features, actions = len(built_in.features), built_in.actions
    _try(custom, name, features=features, parts=len(actions.parts))
    return custom


def _base(game: str) -> str:
    """`territory` from `territory 1`, the name in a run folder."""
    return game.partition(" ")[0]


def _cost(game: str, threshold: float) -> DecisionGate:
    if _base(game) != Territory.name:
        raise ConfigError(
            f"{_FLAG} {COST}: it knows the rules of {Territory.name} alone, and this game is "
            f"{game!r}; expected {OPEN} or a gate of your own, module:Name"
        )
    return CostGate(threshold=threshold)


def _rollout(game: str, threshold: float, budget_ms: float) -> DecisionGate:
    imagine = _IMAGINED.get(_base(game))
    if imagine is None:
        raise ConfigError(
            f"{_FLAG} {ROLLOUT}: it plays ahead where a state can be imagined from what is seen "
            f"({', '.join(_IMAGINED)}), and this game is {game!r}; expected {OPEN} or a gate of "
            "your own, module:Name"
        )
    rules = catalog.make(_base(game))
    nothing = (0,) * len(rules.actions.parts)
    return LookaheadGate(rules, imagine, threshold=threshold, budget_ms=budget_ms, nothing=nothing)


def _found(name: str) -> type:
    """The class of `module:Name`."""
    module_name, _, class_name = name.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:  # custom gates are usually in the working folder
        sys.path.append(here)
    try:
        module: ModuleType = importlib.import_module(module_name)
    except _WRONG as error:
        raise ConfigError(
            f"{_FLAG} {name}: the module {module_name!r} cannot be imported "
            f"({type(error).__name__}: {error})"
        ) from error
    found = getattr(module, class_name, None)
    if not isinstance(found, type):
        classes = [key for key, value in vars(module).items() if isinstance(value, type)]
        what = "is no class" if hasattr(module, class_name) else "does not exist"
        raise ConfigError(
            f"{_FLAG} {name}: expected a class in {module_name!r}; {class_name!r} {what}."
            + nearest(class_name, classes)
        )
    return found


def _made(kind: type, name: str, threshold: float) -> DecisionGate:
    """An instance of the class, with the threshold if it takes one."""
    try:
        takes = inspect.signature(kind).parameters
        made: Any = kind(threshold=threshold) if "threshold" in takes else kind()
    except _WRONG as error:
        raise ConfigError(
            f"{_FLAG} {name}: expected a class that is made without arguments or with "
            f"threshold=...; {type(error).__name__}: {error}"
        ) from error
    if not isinstance(getattr(made, "name", None), str):
        raise ConfigError(f"{_FLAG} {name}: expected `name`, a text that the status calls it by")
    if not callable(getattr(made, "evaluate", None)):
        raise ConfigError(f"{_FLAG} {name}: expected a method evaluate(observation, action)")
    gate: DecisionGate = made
    return gate


def _try(gate: DecisionGate, name: str, *, features: int, parts: int) -> None:
    """Call it with zeros, and as a batch if it can, so that mistakes show before the start."""
    observation, action = np.zeros(features, np.float32), np.zeros(parts, np.int32)
    many = getattr(gate, "evaluate_all", None)
    try:
        verdict: Any = gate.evaluate(observation, action)
        batch: Any = [verdict] if many is None else many(observation[None], action[None])
    except _WRONG as error:
        raise ConfigError(
            f"{_FLAG} {name}: failed on a trial of {features} features, all 0 "
            f"({type(error).__name__}: {error})"
        ) from error
    _check(verdict, f"{_FLAG} {name}: evaluate")
    if not isinstance(batch, list) or len(batch) != 1:
        raise ConfigError(f"{_FLAG} {name}: evaluate_all: expected a list of one Verdict each")
    _check(batch[0], f"{_FLAG} {name}: evaluate_all")


def _check(verdict: Any, where: str) -> None:
    if not isinstance(verdict, Verdict):
        raise ConfigError(
            f"{where}: expected a Verdict, got {type(verdict).__name__}; "
            "end with `return Verdict.of(expected, threshold=...)`"
        )
    if type(verdict.send) is not bool or type(verdict.expected_reward) not in (float, int):
        raise ConfigError(
            f"{where}: expected a Verdict of plain numbers, got "
            f"{type(verdict.send).__name__} and {type(verdict.expected_reward).__name__}; "
            "Verdict.of makes them plain"
        )
    if not math.isfinite(verdict.expected_reward):
        raise ConfigError(f"{where}: expected a finite reward, got {verdict.expected_reward}")
    if not all(isinstance(reason, str) for reason in verdict.reasons):
        raise ConfigError(f"{where}: expected reasons in words, got {verdict.reasons!r}")
