"""Validation of what a bot declares, and of the features that it sends.

Arguments of `Understudy.open` and `match` are checked before anything is played. Features that
never change are nearly always a bug of the bot, and are reported (`ConstantFeatureCheck`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from understudy.bot.actions import space_of
from understudy.core.arrays import NDArray
from understudy.core.config import Config, with_values
from understudy.core.errors import ConfigError, InputError, nearest
from understudy.core.spaces import ActionSpace
from understudy.experience.episode import Outcome
from understudy.policy.mlp import Mlp
from understudy.policy.pointer import Pointer
from understudy.policy.policy import untrained
from understudy.policy.presets import PRESETS
from understudy.policy.presets import network as network_named
from understudy.policy.spec import AnyNetwork, PolicySpec
from understudy.policy.strategist import Strategist
from understudy.policy.transformer import Transformer
from understudy.registry.run_folder import RunFolder

_MAX_TAG = 200
_MIN_DECISIONS = 200
"""Before constant features are reported: matches may begin alike."""

_RESULTS = {Outcome.VICTORY: 1.0, Outcome.TIE: 0.5, Outcome.DEFEAT: 0.0, Outcome.ABORTED: 0.0}
"""What a match without a score counts."""


def settings_of(
    config: Config | None, settings: Mapping[str, Any] | None, kept: RunFolder | None
) -> Config | None:
    """`config`, else that of the run, with single `settings` changed; None: nothing was given."""
    if settings is None:
        return config
    base = config or (Config() if kept is None else kept.config)
    try:
        return with_values(base, settings)
    except ConfigError as error:
        raise ConfigError(f"settings: {str(error).removeprefix('config: ')}") from error


def network_of(given: object, kept: RunFolder | None) -> AnyNetwork:
    """The network given, or named; else that of the run folder, else the default."""
    if isinstance(given, str):
        return network_named(given)
    if given is None:
        return Mlp() if kept is None else kept.spec.network
    if not isinstance(given, Mlp | Transformer | Strategist | Pointer):
        hint = " (an instance, not the class itself)" if isinstance(given, type) else ""
        raise ConfigError(
            f"network: expected a name ({', '.join(PRESETS)}), Mlp(...) or Transformer(...)"
            f"{hint}; got {given!r}"
        )
    return given


def spec_of(
    features: Sequence[str],
    actions: ActionSpace | Sequence[str] | Mapping[str, object],
    network: AnyNetwork,
) -> PolicySpec:
    """The spec as a run folder will read it again: lists become tuples."""
    given = PolicySpec(tuple(features), space_of(actions), network)
    try:
        spec = msgspec.convert(msgspec.to_builtins(given), PolicySpec)
    except msgspec.ValidationError as error:
        raise InputError(f"features, actions or network: {error}") from error
    untrained(spec, 0)  # a network that does not fit is an error before the run folder is made
    return spec


def checked_rewards(given: Mapping[str, float], default: Mapping[str, float]) -> dict[str, float]:
    """The reward of every outcome: as given, else the default."""
    for outcome, reward in given.items():
        if outcome not in default:
            known = list(default)
            raise InputError(
                f"result_rewards: {outcome!r} is not an outcome, expected some of {known}."
                f"{nearest(str(outcome), known)}"
            )
        if not math.isfinite(reward):
            raise InputError(f"result_rewards: {outcome!r} is {reward}, not a finite number")
        if outcome == Outcome.ABORTED and reward != 0.0:
            raise InputError(
                f"result_rewards: 'aborted' is {reward}, expected 0 (or nothing): an aborted match "
                "has no result, and its last decision is not learned from. Finish a match that "
                "was given up as a defeat or a tie"
            )
    return {**default, **given}


def checked_score(scale: object) -> tuple[float, float] | None:
    """The scale of scores, (low, high), as `Understudy.open` got it; None: there are no scores."""
    if scale is None:
        return None
    try:
        low, high = (float(bound) for bound in scale)  # type: ignore[attr-defined]
    except (TypeError, ValueError) as error:
        raise InputError(
            f"score: expected (low, high), the lowest and the highest score, got {scale!r}"
        ) from error
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InputError(f"score: expected two finite numbers, low < high, got {scale!r}")
    return low, high


def checked_rules(rules: object) -> str:
    """The name of the rules, as `Understudy.open` got it."""
    if not isinstance(rules, str) or len(rules) > _MAX_TAG:
        raise InputError(
            f"rules: expected a name of at most {_MAX_TAG} characters, such as 'v2', got "
            f"{str(rules)[:40]!r}"
        )
    return rules.encode("utf-8", "backslashreplace").decode()


def result_of(outcome: Outcome, score: object, scale: tuple[float, float] | None) -> float:
    """What a match counts, in [0, 1]: by its score where a scale was declared, else by outcome."""
    if scale is None:
        if score is not None:
            raise InputError(
                f"finish: score={score!r} has no scale; declare the lowest and the highest score "
                "once: Understudy.open(..., score=(low, high))"
            )
        return _RESULTS[outcome]
    if outcome is Outcome.ABORTED:
        return 0.0
    low, high = scale
    if score is None:
        raise InputError(
            f"finish: expected score=, a number between {low:g} and {high:g}, as declared in open"
        )
    if isinstance(score, str | bytes | bool):
        raise InputError(f"finish: score: expected a number, got {score!r}")
    try:
        number = float(score)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise InputError(f"finish: score: expected a number, got {score!r}") from error
    if not low <= number <= high:  # also where it is not a number
        raise InputError(
            f"finish: score: {score!r} is not between {low:g} and {high:g}, as declared in open"
        )
    return (number - low) / (high - low)


def checked_tags(tags: Mapping[str, object]) -> dict[str, str]:
    """Tags as text that can be encoded as UTF-8: a lone surrogate would cost the whole match."""
    checked: dict[str, str] = {}
    for name, value in tags.items():
        text = str(value).encode("utf-8", "backslashreplace").decode()
        if max(len(name), len(text)) > _MAX_TAG:
            raise InputError(f"match: tag {name[:40]!r} is longer than {_MAX_TAG} characters")
        checked[name] = text
    return checked


class ConstantFeatureCheck:
    """Keeps the lowest and highest value of every feature."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names
        self._low = np.full(len(names), np.inf, np.float32)
        self._high = np.full(len(names), -np.inf, np.float32)
        self._reported: tuple[str, ...] = ()
        self.seen = 0

    def add(self, observations: NDArray) -> tuple[str, ...] | None:
        """Adds observations [T, F]; returns the constant features if they changed since the last
        report, else None."""
        np.minimum(self._low, observations.min(0), out=self._low)
        np.maximum(self._high, observations.max(0), out=self._high)
        self.seen += len(observations)
        constant = self._low == self._high
        names = tuple(name for name, same in zip(self._names, constant, strict=True) if same)
        if self.seen < _MIN_DECISIONS or names == self._reported:
            return None
        self._reported = names
        return names
