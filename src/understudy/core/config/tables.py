"""All settings together, from and to tables: TOML files, and dotted keys at the command line.

`load(path)` after `save(path, config)` is `config`; an unknown key is an error that names
it and the nearest one that exists.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import msgspec

from understudy.core import files, toml
from understudy.core.config.learning import (
    FeaturesConfig,
    LearnerConfig,
    RegistryConfig,
    ReportConfig,
    RetentionConfig,
    SpoolConfig,
)
from understudy.core.config.promotion import PromotionConfig
from understudy.core.config.relay import RelayConfig
from understudy.core.config.section import Section, inner
from understudy.core.config.serving import ContinuousConfig, LiveConfig
from understudy.core.config.stages import CurriculumConfig
from understudy.core.config.training import (
    LeagueConfig,
    MonitorConfig,
    PopulationConfig,
    RewardsConfig,
    TrainConfig,
)
from understudy.core.errors import ConfigError, nearest

RENAMED = {"train.snapshot_steps": "league.save_freq"}
"""Keys of older runs, and what they are called now."""
BY_NAME = ("features.bounds", "rewards.weights")
"""Tables whose keys are names of a game."""
MAX_BYTES = 2**20
"""Of a TOML file: many times the longest schema that is sensible"""
MAX_DEPTH = 32
"""Tables and lists within each other"""
MAX_KEY = 256
"""Characters of a key"""
_QUOTED = re.compile(r""""(?:[^"\\\n]|\\.)*+"?|'[^'\n]*+'?""")
_DEEP_KEY = re.compile(rf"(?<![\w-])[\w-]++(?:[ \t]*+\.[ \t]*+[\w-]++){{{MAX_DEPTH}}}")
"""`a.b.c` of too many parts, where quoted ones are one letter. Looked for in the text, since
tomllib takes memory by the square of the parts: 12,000 of them took 585 MB."""
_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
"""What a setting of this type is to be, in words."""


class Config(Section, frozen=True, kw_only=True):
    learner: LearnerConfig = LearnerConfig()
    features: FeaturesConfig = FeaturesConfig()
    train: TrainConfig = TrainConfig()
    league: LeagueConfig = LeagueConfig()
    rewards: RewardsConfig = RewardsConfig()
    curriculum: CurriculumConfig = CurriculumConfig()
    monitor: MonitorConfig = MonitorConfig()
    population: PopulationConfig = PopulationConfig()
    live: LiveConfig = LiveConfig()
    continuous: ContinuousConfig = ContinuousConfig()
    spool: SpoolConfig = SpoolConfig()
    registry: RegistryConfig = RegistryConfig()
    promotion: PromotionConfig = PromotionConfig()
    retention: RetentionConfig = RetentionConfig()
    relay: RelayConfig = RelayConfig()
    report: ReportConfig = ReportConfig()


def load(path: Path) -> Config:
    """Read a TOML file of settings."""
    return from_table(read(path), source=str(path))


def read(path: Path) -> dict[str, Any]:
    """The tables of a TOML file, as they stand there; a file beyond the limits is refused."""
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{path}: expected at most {MAX_BYTES} bytes, and it has more")
    too_deep = ConfigError(
        f"{path}: expected at most {MAX_DEPTH} tables and lists within each other, got more"
    )
    try:
        text = data.decode("utf-8")
        if _DEEP_KEY.search(_QUOTED.sub("q", text)):
            raise too_deep
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not valid TOML ({error})") from error
    except RecursionError as error:
        raise too_deep from error
    level: list[Any] = [table]
    for _ in range(MAX_DEPTH):
        level = _within(level, path)
    if level:
        raise too_deep
    return table


def _within(values: Sequence[Any], path: Path) -> list[Any]:
    """The tables and lists directly inside of these."""
    inside: list[Any] = []
    for value in values:
        if isinstance(value, dict):
            long = next((key for key in value if len(key) > MAX_KEY), None)
            if long is not None:
                raise ConfigError(
                    f"{path}: expected keys of at most {MAX_KEY} characters, got {long[:40]!r}..."
                )
        inner_values = value.values() if isinstance(value, dict) else value
        inside += [one for one in inner_values if isinstance(one, dict | list)]
    return inside


def save(path: Path, config: Config) -> None:
    files.write_atomic(path, toml.dumps(msgspec.to_builtins(config)).encode())


def from_table(table: Mapping[str, Any], *, source: str = "config") -> Config:
    """Settings from nested tables; whatever is not named keeps its default."""
    table = checked(table, source=source)
    try:
        return msgspec.convert(table, Config)
    except (msgspec.ValidationError, ConfigError) as error:
        raise ConfigError(f"{source}: {error}") from error


def checked(table: Mapping[str, Any], *, source: str, over_others: bool = False) -> dict[str, Any]:
    """The same tables under the names of today; unknown keys and wrong kinds are errors.

    Tables that go over others (`merged`) may change single entries of a list by their names.
    """
    table = _renamed(table)
    _check_table(table, Config, source, prefix="", over_others=over_others)
    return table


def merged(base: Mapping[str, Any], over: Mapping[str, Any], *, prefix: str = "") -> dict[str, Any]:
    """Both tables in one, table by table; where both have a value or a list, `over` is right.

    Where `over` has a table for a list of named ones, as `[curriculum.stages.league]`, it changes
    those that it names.
    """
    both = dict(base)
    for key, value in over.items():
        old = both.get(key)
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            both[key] = merged(old, value, prefix=f"{prefix}{key}.")
        elif isinstance(value, Mapping) and isinstance(old, Sequence):
            for name in value:
                _inner(old, name, f"{prefix}{key}.{name}")
            both[key] = [merged(one, value.get(one["name"], {})) for one in old]
        else:
            both[key] = value
    return both


def with_values(config: Config, values: Mapping[str, Any]) -> Config:
    """Settings changed by dotted keys: `{"learner.gamma": 0.997, "rewards.weights.combo": 0.1}`.

    A stage of the curriculum goes by its name: `curriculum.stages.based.threshold`.
    """
    table: dict[str, Any] = msgspec.to_builtins(config)
    for key, value in values.items():
        *tables, last = _split(RENAMED.get(key, key))
        if not tables:
            hint = _nearest_key(key, (), "")
            raise ConfigError(f"{key}: expected a dotted key such as learner.gamma.{hint}")
        place: Any = table
        for name in tables:
            place = _inner(place, name, key)
        if not isinstance(place, dict):
            raise ConfigError(f"{key}: {tables[-1]} holds no settings of their own")
        place[last] = value
    return from_table(table)


def _split(key: str) -> list[str]:
    """The parts of a dotted key; what a feature or a term is called may have dots of its own."""
    for table in BY_NAME:
        if key.startswith(f"{table}."):
            return [*table.split("."), key.removeprefix(f"{table}.")]
    return key.split(".")


def changes(before: Config, after: Config) -> list[str]:
    """What is set otherwise, by dotted key: `["learner.gamma 0.99 -> 0.9"]`."""
    return list(_changes(msgspec.to_builtins(before), msgspec.to_builtins(after)))


def _changes(
    before: Mapping[str, Any], after: Mapping[str, Any], prefix: str = ""
) -> Iterator[str]:
    for key in dict.fromkeys([*before, *after]):
        old, new = before.get(key), after.get(key)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            yield from _changes(old, new, f"{prefix}{key}.")
        elif old != new:
            was, now = ("unset" if value is None else repr(value) for value in (old, new))
            yield f"{prefix}{key} {was} -> {now}"


def _nearest_key(name: str, known: Iterable[str], prefix: str) -> str:
    """A hint that names the whole key: that name in any section, else a close one, here first."""
    everywhere = {key.rpartition(".")[2]: key for key in reversed(_keys(Config, ""))}
    here = {one: f"{prefix}{one}" for one in known}
    for place, close in ((everywhere, 1.0), (here, 0.6), (everywhere, 0.6)):
        if found := difflib.get_close_matches(name, place, n=1, cutoff=close):
            return f" Did you mean {place[found[0]]!r}?"
    return ""


def _keys(section: type[Section], prefix: str) -> list[str]:
    """Every dotted key: `learner.gamma`."""
    found = []
    for field in msgspec.structs.fields(section):
        within = inner(field.type)
        if within is field.type:
            found += _keys(within, f"{prefix}{field.name}.")
        else:
            found.append(f"{prefix}{field.name}")
    return found


def _inner(place: Any, name: str, key: str) -> Any:
    if isinstance(place, dict):
        return place.setdefault(name, {})
    if isinstance(place, list | tuple):
        by_name = {one.get("name"): one for one in place if isinstance(one, Mapping)}
        if name in by_name:
            return by_name[name]
        expected = f"one of {', '.join(map(str, by_name))}" if by_name else "nothing (it is empty)"
        raise ConfigError(
            f"{key}: expected {expected}; got {name!r}.{nearest(name, map(str, by_name))}"
        )
    return place


def _renamed(table: Mapping[str, Any]) -> dict[str, Any]:
    for old, new in RENAMED.items():
        (section, key), (home, name) = old.split("."), new.split(".")
        before = table.get(section)
        if isinstance(before, Mapping) and key in before:
            rest = {one: value for one, value in before.items() if one != key}
            table = merged({home: {name: before[key]}}, {**table, section: rest})
    return dict(table)


def _check_table(
    table: Mapping[str, Any],
    section: type[Section],
    source: str,
    prefix: str,
    *,
    over_others: bool = False,
) -> None:
    known = {field.name: field.type for field in msgspec.structs.fields(section)}
    for key, value in table.items():
        where = f"{prefix}{key}"
        if key not in known:
            raise ConfigError(f"{source}: unknown key {where}.{_nearest_key(key, known, prefix)}")
        within = inner(known[key])
        if within is known[key]:
            if not isinstance(value, Mapping):
                raise ConfigError(f"{source}: {where}: expected a table of settings")
            _check_table(value, within, source, f"{where}.", over_others=over_others)
        elif within is None:
            _check_kind(value, known[key], f"{source}: {where}")
        elif over_others and isinstance(value, Mapping):
            for name, one in value.items():
                if not isinstance(one, Mapping):
                    raise ConfigError(f"{source}: {where}.{name}: expected a table of settings")
                _check_table(one, within, source, prefix=f"{where}.{name}.")
        else:
            if not isinstance(value, Sequence) or not all(isinstance(e, Mapping) for e in value):
                raise ConfigError(f"{source}: {where}: expected tables [[{where}]]")
            for index, one in enumerate(value):
                place = f".{one['name']}" if one.get("name") else f"[{index}]"
                _check_table(one, within, source, prefix=f"{where}{place}.")


def _check_kind(value: Any, kind: Any, where: str) -> None:
    """A value that is not of the kind of its setting is an error that says what was expected."""
    if get_origin(kind) is dict and isinstance(value, Mapping):
        for name, one in value.items():
            _check_kind(one, get_args(kind)[1], f"{where}.{name}")
        return
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        names = get_args(kind) if get_origin(kind) is Literal else ()
        what = f"one of {', '.join(names)}" if names else _KINDS.get(kind, "a table of settings")
        if get_origin(kind) is tuple:
            what = f"a list of {len(get_args(kind))} numbers"
        hint = nearest(str(value), names)
        raise ConfigError(f"{where}: expected {what}; got {value!r}.{hint}") from error
