"""A game of one's own, declared in a TOML file: features, actions and what a decision is worth.

    [game]
    name = "skirmish"
    features = ["health", "enemies"]
    actions = ["attack", "retreat"]
    fallback = "retreat"

    [[rewards]]
    name = "kills"
    feature = "enemies"
    of = "drop"
    weight = 0.4

A schema is data. It can name no module, no gate and no file: nothing in it is ever executed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.config.section import Section, float32, inner
from understudy.core.config.tables import read
from understudy.core.errors import ConfigError, InputError, nearest
from understudy.core.spaces import ActionSpace, Discrete, MultiDiscrete
from understudy.live.features import FeatureReader, MaskReader, legal_action
from understudy.live.protocol import Decision, Error, Observation, ObservationData
from understudy.live.translation import Reading, Sight, Step

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._ -]{0,63}")
_MOST = 4_096


class GameTable(Section, frozen=True, kw_only=True):
    """`[game]`"""

    name: str
    """Of the game, in 1 to 64 letters, digits and `. _ -`."""
    features: tuple[str, ...]
    """The name of each number that a client sends, in order."""
    actions: tuple[str, ...] | dict[str, tuple[str, ...]]
    """Names to choose one from; or a table of parts, one name of each being chosen."""
    fallback: str | dict[str, str]
    """What is safe to do when there is no time for a policy."""


class RewardTable(Section, frozen=True, kw_only=True):
    """One of `[[rewards]]`"""

    name: str
    feature: str
    of: Literal["change", "rise", "drop", "value"] = "change"
    """What counts: how much the feature changed, rose, fell, or what it is afterwards."""
    weight: float = 1.0


class Schema(Section, frozen=True, kw_only=True):
    """The whole file."""

    game: GameTable
    rewards: tuple[RewardTable, ...] = ()
    """What a decision was worth, from one observation to the next; none: the client says it."""


class SchemaGame:
    """The translator of a declared game."""

    tick_length = 1
    territory_field, tick_field = "territory", "tick"

    def __init__(self, schema: Schema) -> None:
        game = schema.game
        self.name = game.name
        self.features = game.features
        self._parts = game.actions if isinstance(game.actions, dict) else {"action": game.actions}
        self._one = not isinstance(game.actions, dict)
        self.actions: ActionSpace = (
            Discrete(game.actions)
            if not isinstance(game.actions, dict)
            else MultiDiscrete(tuple(map(len, game.actions.values())))
        )
        self._fallback = np.array(_fallback(game), np.int32)
        self._reader = FeatureReader(game.features)
        self._masks = MaskReader(self.actions.parts)
        self._terms = schema.rewards
        self.rewards_by_observation = bool(schema.rewards)

    def read(self, requests: Sequence[Observation | ObservationData]) -> list[Reading | Error]:
        """See `Translator`."""
        mine = [one for one in requests if isinstance(one, Observation)]
        rows = iter(self._reader.read([one.features for one in mine]))
        return [
            self._reading(one, next(rows)) if isinstance(one, Observation) else _OTHER_GAME
            for one in requests
        ]

    def rewards(self, steps: Sequence[Step]) -> list[float | None]:
        """The weighted sum of the declared terms."""
        before = np.array([step.before.features for step in steps])[:, self._columns]
        after = np.array([step.after.features for step in steps])[:, self._columns]
        # Differences of huge numbers may overflow: a sum that is no number settles nothing.
        with np.errstate(over="ignore", invalid="ignore"):
            worth = sum(
                _COUNTED[term.of](before[:, index], after[:, index]) * np.float32(term.weight)
                for index, term in enumerate(self._terms)
            )
        return [float(one) for one in worth.tolist()]

    def fallback(self, sights: Sequence[Sight]) -> NDArray:
        """The declared one, or else what is legal."""
        parts = self.actions.parts
        return np.stack([legal_action(self._fallback, one.legal, parts) for one in sights])

    def label(self, action: Sequence[int]) -> Any:
        """A name, or a name by part."""
        if self._one:
            return self._parts["action"][action[0]]
        chosen = zip(self._parts.items(), action, strict=True)
        return {part: names[option] for (part, names), option in chosen}

    @property
    def choices(self) -> Any:
        """The space, and the names of its parts where it has several."""
        told = msgspec.to_builtins(self.actions)
        return told if self._one else {**told, "parts": self._parts}

    def answer(self, decision: Decision) -> msgspec.Struct:
        """As it is."""
        return decision

    @cached_property
    def _columns(self) -> list[int]:
        return [self.features.index(term.feature) for term in self._terms]

    def _reading(self, request: Observation, features: NDArray | Error) -> Reading | Error:
        if isinstance(features, Error):
            return features
        legal = self._masks.read(request.legal)
        if isinstance(legal, Error):
            return legal
        return Reading(request.territory, request.tick, Sight(features, legal))


def load(path: Path) -> SchemaGame:
    """The game that a file declares; whatever is wrong there is a `ConfigError` with its place."""
    try:
        table = read(path)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from error
    return from_table(table, source=str(path))


def from_table(table: Mapping[str, Any], *, source: str = "schema") -> SchemaGame:
    """The same from nested tables."""
    try:
        _reject_unknown(table, Schema, "")
        schema = msgspec.convert(table, Schema)
        _check(schema)
        return SchemaGame(schema)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{source}: {_place(str(error))}") from error
    except (ConfigError, InputError) as error:
        raise ConfigError(f"{source}: {error}") from error


_OTHER_GAME = Error(code="unknown_type", message="this game is sent as 'observation'", field="type")
_COUNTED = {
    "change": lambda before, after: after - before,
    "rise": lambda before, after: np.maximum(after - before, 0.0),
    "drop": lambda before, after: np.maximum(before - after, 0.0),
    "value": lambda before, after: after,
}


def _check(schema: Schema) -> None:
    game = schema.game
    if not _NAME.fullmatch(game.name):
        raise ConfigError(
            f"game.name: expected 1 to 64 letters, digits and . _ -, got {game.name[:80]!r}"
        )
    _check_names(game.features, "game.features", least=1)
    if isinstance(game.actions, dict):
        if not game.actions:
            raise ConfigError("game.actions: expected names, or a table of parts")
        for part, names in game.actions.items():
            _check_names(names, f"game.actions.{part}", least=2)
    else:
        _check_names(game.actions, "game.actions", least=2)
    _check_names(tuple(term.name for term in schema.rewards), "rewards", least=0)
    for index, term in enumerate(schema.rewards):
        float32(term, f"rewards[{index}]", "weight")
        _index(term.feature, game.features, f"rewards[{index}].feature")


def _check_names(names: tuple[str, ...], where: str, *, least: int) -> None:
    if not least <= len(names) <= _MOST:
        raise ConfigError(f"{where}: expected {least} to {_MOST} names, got {len(names)}")
    if not all(names):
        raise ConfigError(f"{where}: a name is empty")
    if len(set(names)) != len(names):
        double = next(name for name in names if names.count(name) > 1)
        raise ConfigError(f"{where}: the name {double!r} appears twice")


def _fallback(game: GameTable) -> list[int]:
    """One option a part."""
    if not isinstance(game.actions, dict):
        if not isinstance(game.fallback, str):
            raise ConfigError("game.fallback: expected the name of an action")
        return [_index(game.fallback, game.actions, "game.fallback")]
    if not isinstance(game.fallback, dict) or game.fallback.keys() != game.actions.keys():
        parts = ", ".join(game.actions)
        raise ConfigError(f"game.fallback: expected a table with one name each for {parts}")
    return [
        _index(game.fallback[part], names, f"game.fallback.{part}")
        for part, names in game.actions.items()
    ]


def _index(name: str, known: tuple[str, ...], where: str) -> int:
    if name not in known:
        raise ConfigError(f"{where}: there is no {name!r}.{nearest(name, known)}")
    return known.index(name)


def _reject_unknown(table: Mapping[str, Any], section: type[Section], prefix: str) -> None:
    known = {field.name: field.type for field in msgspec.structs.fields(section)}
    for key, value in table.items():
        if key not in known:
            raise ConfigError(f"unknown key {prefix}{key}.{nearest(key, known)}")
        within = inner(known[key])
        if within is None:
            continue
        for index, one in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(one, Mapping):
                raise ConfigError(f"{prefix}{key}: expected a table")
            place = f"{prefix}{key}[{index}]." if isinstance(value, list) else f"{prefix}{key}."
            _reject_unknown(one, within, place)


def _place(text: str) -> str:
    """msgspec's words with the key in front: `game.name: Expected ...`."""
    what, _, where = text.partition(" - at `$.")
    missing = re.search(r"missing required field `([^`]*)`", what)
    path = where.rstrip("`")
    if missing:
        return f"{path}.{missing[1]}: is missing".lstrip(".")
    return f"{path}: {what}" if path else what
