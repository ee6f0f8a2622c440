"""`--set key=value` at the command line."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from understudy.core.config import Config, with_values
from understudy.core.errors import ConfigError


def config_from(
    pairs: Sequence[str], *, base: Config | None = None, defaults: Mapping[str, Any]
) -> Config:
    """The settings of a run (`base`), changed by `defaults` and then by what the person set."""
    values = {**defaults, **dict(parsed(pair) for pair in pairs)}
    try:
        return with_values(base or Config(), values)
    except ConfigError as error:
        raise ConfigError(f"--set: {str(error).removeprefix('config: ')}") from error


def parsed(
    pair: str, *, flag: str = "--set", example: str = "learner.gamma=0.99"
) -> tuple[str, Any]:
    """`key=value` with the value as TOML has it, or as text."""
    key, equals, text = pair.partition("=")
    if not equals:
        raise ConfigError(f"{flag} {pair}: expected key=value, such as {example}")
    return key.strip(), value_of(text)


def value_of(text: str) -> Any:
    """A number, a truth or a list as TOML has it; else the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text.strip()
