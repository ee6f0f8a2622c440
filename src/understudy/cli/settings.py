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
    values = {**defaults, **dict(_parsed(pair) for pair in pairs)}
    try:
        return with_values(base or Config(), values)
    except ConfigError as error:
        raise ConfigError(f"--set: {str(error).removeprefix('config: ')}") from error


def _parsed(pair: str) -> tuple[str, Any]:
    key, equals, text = pair.partition("=")
    if not equals:
        raise ConfigError(f"--set {pair}: expected key=value, such as learner.gamma=0.99")
    try:
        return key.strip(), tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return key.strip(), text.strip()
