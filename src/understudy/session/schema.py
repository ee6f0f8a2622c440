"""Games declared in a TOML file: features, actions and rewards.

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

    [promotion]
    score = [-0.5, 1.0]

A schema is data. It can name no module, no gate and no file: nothing in it is ever executed.
`SchemaGame` is its translator: it reads features and masks as clients send them, and checks that
features are finite after the cast to float32, since a number that is finite in JSON may not be.
"""

from __future__ import annotations

import itertools
import math
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
from understudy.session.protocol import Decision, Error, Observation, ObservationRequest
from understudy.session.translation import Sight, Step, TranslatedObservation

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._ -]{0,63}")
_MOST = 4_096
_SHOWN = 3
_SHOWN_ACTIONS = 8
_LONGEST_LIST = 160
_LONGEST_NAME = 64
_SHORTEST_PART = 3
_OTHER_GAME = Error(code="unknown_type", message="this game is sent as 'observation'", field="type")
_COUNTED = {
    "change": lambda before, after: after - before,
    "rise": lambda before, after: np.maximum(after - before, 0.0),
    "drop": lambda before, after: np.maximum(before - after, 0.0),
    "value": lambda before, after: after,
}
Features = list[float] | dict[str, float]


class GameTable(Section, frozen=True, kw_only=True):
    """`[game]`"""

    name: str
    """Of the game, in 1 to 64 letters, digits and `. _ -`."""
    features: tuple[str, ...]
    """The name of each number that a client sends, in order."""
    actions: tuple[str, ...] | dict[str, tuple[str, ...]]
    """Names to choose one from; or a table of parts, one name of each being chosen."""
    fallback: str | dict[str, str]
    """The safe action, for when there is no time for a policy, and what the rules do in an
    observation without a `proposed` action."""


class RewardTable(Section, frozen=True, kw_only=True):
    """One of `[[rewards]]`"""

    name: str
    feature: str
    of: Literal["change", "rise", "drop", "value"] = "change"
    """What counts: how much the feature changes, rises or drops, or its value afterwards."""
    weight: float = 1.0


class PromotionTable(Section, frozen=True, kw_only=True):
    """`[promotion]`"""

    score: tuple[float, float] | None = None
    """The lowest and the highest mean reward of a segment (`live.score`), for `serve --promotion
    auto`; none: plus and minus `live.reward_clip`."""


class Schema(Section, frozen=True, kw_only=True):
    """The whole file"""

    game: GameTable
    promotion: PromotionTable = PromotionTable()
    rewards: tuple[RewardTable, ...] = ()
    """The reward of a decision, from one observation to the next; none: the client sends it."""


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
        self._proposals = ProposalReader(self._parts, one=self._one)
        self._terms = schema.rewards
        self.score = schema.promotion.score
        """The scale of mean rewards, where it is declared."""
        self.rewards_by_observation = bool(schema.rewards)

    def read(self, requests: Sequence[ObservationRequest]) -> list[TranslatedObservation | Error]:
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
        # Differences of huge numbers may overflow; a sum that is nan settles nothing.
        with np.errstate(over="ignore", invalid="ignore"):
            worth = sum(
                _COUNTED[term.of](before[:, index], after[:, index]) * np.float32(term.weight)
                for index, term in enumerate(self._terms)
            )
        return [float(one) for one in worth.tolist()]

    def fallback(self, sights: Sequence[Sight]) -> NDArray:
        """What the client proposed; else the declared action, with a legal option where a part of
        it is not."""
        parts = self.actions.parts
        return np.stack(
            [
                legal_action(self._fallback, one.legal, parts)
                if one.proposed is None
                else np.array(one.proposed, np.int32)
                for one in sights
            ]
        )

    def label(self, action: Sequence[int]) -> Any:
        """The name of the action, or a name for each part."""
        if self._one:
            return self._parts["action"][action[0]]
        chosen = zip(self._parts.items(), action, strict=True)
        return {part: names[option] for (part, names), option in chosen}

    @property
    def choices(self) -> Any:
        """The action space, and the names of its parts where it has several."""
        told = msgspec.to_builtins(self.actions)
        return told if self._one else {**told, "parts": self._parts}

    def answer(self, decision: Decision) -> msgspec.Struct:
        return decision

    @cached_property
    def _columns(self) -> list[int]:
        return [self.features.index(term.feature) for term in self._terms]

    def _reading(
        self, request: Observation, features: NDArray | Error
    ) -> TranslatedObservation | Error:
        if isinstance(features, Error):
            return features
        legal = self._masks.read(request.legal)
        if isinstance(legal, Error):
            return legal
        proposed = self._proposals.read(request.proposed, legal)
        if isinstance(proposed, Error):
            return proposed
        sight = Sight(features, legal, proposed=proposed)
        return TranslatedObservation(request.territory, request.tick, sight)


class FeatureReader:
    """Checks and casts the features of one game."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names
        self._known = frozenset(names)
        self._folded = {name.casefold(): name for name in names}

    def read(self, given: Sequence[Features]) -> list[NDArray | Error]:
        """float32 [F] for each, raw and finite, or what is wrong."""
        rows = [self._in_order(one) for one in given]
        good = [row for row in rows if not isinstance(row, Error)]
        if not good:
            return list(rows)  # type: ignore[arg-type]  # nothing but errors
        with np.errstate(over="ignore"):  # 1e39 becomes inf, and is refused for it
            table = np.array(good, np.float64).astype(np.float32)
        finite: list[bool] = np.isfinite(table).all(axis=1).tolist()  # type: ignore[assignment]
        checked = iter(zip(table, finite, strict=True))
        read: list[NDArray | Error] = []
        for row, asked in zip(rows, given, strict=True):
            if isinstance(row, Error):
                read.append(row)
                continue
            values, is_finite = next(checked)
            # A copy: one row must not keep the whole table alive.
            read.append(values.copy() if is_finite else self._not_finite(values, asked))
        return read

    def _in_order(self, features: Features) -> list[float] | Error:
        if isinstance(features, list):
            if len(features) == len(self._names):
                return features
            return _wrong(f"expected {len(self._names)} numbers, got {len(features)}")
        if features.keys() == self._known:
            return [features[name] for name in self._names]
        unknown = [name for name in features if name not in self._known]
        if unknown:
            name = unknown[0][:_LONGEST_NAME]
            return _wrong(f"there is no {name!r}.{self._hint(name)}", name)
        missing = [name for name in self._names if name not in features]
        shown = ", ".join(missing[:_SHOWN]) + (", ..." if len(missing) > _SHOWN else "")
        return _wrong(f"missing {len(missing)}: {shown}", missing[0])

    def _hint(self, name: str) -> str:
        """A feature that differs in case alone, or else contains this name.

        No search for similar names: it takes milliseconds, and any client could cause it.
        """
        folded = name.casefold()
        meant = self._folded.get(folded)
        if meant is None and len(folded) >= _SHORTEST_PART:
            meant = next((its for known, its in self._folded.items() if folded in known), None)
        return "" if meant is None else f" Did you mean {meant!r}?"

    def _not_finite(self, values: NDArray, given: Features) -> Error:
        index = int(np.flatnonzero(~np.isfinite(values))[0])
        field = (
            f"features[{index}]" if isinstance(given, list) else f"features.{self._names[index]}"
        )
        return Error(code="bad_number", message="too large for a 32-bit float", field=field)


class MaskReader:
    """Checks the masks of one action space."""

    def __init__(self, parts: tuple[int, ...]) -> None:
        self._options = sum(parts)
        self._edges = list(itertools.accumulate(parts, initial=0))

    def read(self, legal: list[bool] | None) -> NDArray | Error | None:
        """bool [options] with something legal in every part; None: everything is."""
        if legal is None:
            return None
        if len(legal) != self._options:
            message = f"expected {self._options} booleans, one an option, got {len(legal)}"
            return Error(code="bad_message", message=message, field="legal")
        for start, end in itertools.pairwise(self._edges):
            if True not in legal[start:end]:
                message = f"at least one of options {start} to {end - 1} has to be legal"
                return Error(code="illegal", message=message, field="legal")
        return np.array(legal, np.bool_)


class ProposalReader:
    """Checks the actions that clients propose, against the names of one action space."""

    def __init__(self, parts: Mapping[str, tuple[str, ...]], *, one: bool) -> None:
        self._one = one
        """The action is a single choice, proposed as a name; else a table of parts."""
        self._options = {
            part: {name: index for index, name in enumerate(names)} for part, names in parts.items()
        }
        sizes = [len(names) for names in parts.values()]
        self._starts = list(itertools.accumulate(sizes[:-1], initial=0))

    def read(
        self, proposed: str | dict[str, str] | None, legal: NDArray | None
    ) -> tuple[int, ...] | Error | None:
        """One option a part, each legal; None: none was proposed."""
        if proposed is None:
            return None
        if isinstance(proposed, str):
            if not self._one:
                return _unfit(f"expected an object with a name each for {self._part_names}")
            proposed = {"action": proposed}
        elif self._one:
            return _unfit("expected the name of an action, got an object")
        elif proposed.keys() != self._options.keys():
            return _unfit(f"expected a name each for {self._part_names}")
        action = []
        for start, (part, options) in zip(self._starts, self._options.items(), strict=True):
            name = proposed[part]
            field = "proposed" if self._one else f"proposed.{part}"
            option = options.get(name)
            if option is None:
                names = ", ".join(itertools.islice(options, _SHOWN_ACTIONS))
                more = ", ..." if len(options) > _SHOWN_ACTIONS else ""
                message = f"there is no {name[:_LONGEST_NAME]!r}, expected one of {names}{more}"
                return _unfit(message, field)
            if legal is not None and not legal[start + option]:
                message = f"{name[:_LONGEST_NAME]!r} is not legal here, as 'legal' says"
                return Error(code="illegal", message=message, field=field)
            action.append(option)
        return tuple(action)

    @property
    def _part_names(self) -> str:
        return ", ".join(self._options)[:_LONGEST_LIST]


def _unfit(message: str, field: str = "proposed") -> Error:
    return Error(code="bad_message", message=message, field=field)


def legal_action(action: NDArray, legal: NDArray | None, parts: tuple[int, ...]) -> NDArray:
    """The action int32 [parts], with the first legal option where a part of it is not legal."""
    if legal is None:
        return action
    chosen, start = action.copy(), 0
    for index, size in enumerate(parts):
        options = legal[start : start + size]
        if not options[chosen[index]]:
            chosen[index] = options.argmax()
        start += size
    return chosen


def _wrong(message: str, name: str | None = None) -> Error:
    field = "features" if name is None else f"features.{name}"
    return Error(code="wrong_features", message=message, field=field)


def load(path: Path) -> SchemaGame:
    """The game that a file declares. Raises `ConfigError` with the key that is wrong."""
    try:
        table = read(path)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from error
    return from_table(table, source=str(path))


def from_table(table: Mapping[str, Any], *, source: str = "schema") -> SchemaGame:
    """The game that nested tables declare. Raises `ConfigError` with the key that is wrong."""
    try:
        _reject_unknown(table, Schema, "")
        schema = msgspec.convert(table, Schema)
        _check(schema)
        return SchemaGame(schema)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{source}: {_place(str(error))}") from error
    except (ConfigError, InputError) as error:
        raise ConfigError(f"{source}: {error}") from error


# --- checks of a schema --------------------------------------------------------------------------


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
    score = schema.promotion.score
    if score is not None and not -math.inf < score[0] < score[1] < math.inf:
        raise ConfigError(
            "promotion.score: expected two finite numbers, the lower one first, got "
            f"[{score[0]:g}, {score[1]:g}]"
        )
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
    """msgspec's message with the key in front: `game.name: Expected ...`."""
    what, _, where = text.partition(" - at `$.")
    missing = re.search(r"missing required field `([^`]*)`", what)
    path = where.rstrip("`")
    if missing:
        return f"{path}.{missing[1]}: is missing".lstrip(".")
    return f"{path}: {what}" if path else what
