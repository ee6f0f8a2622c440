from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from understudy.core import config as configs
from understudy.core.config import Config, LearnerConfig, with_values
from understudy.core.errors import ConfigError


def test_settings_survive_the_way_through_a_file(tmp_path: Path) -> None:
    config = with_values(
        Config(),
        {
            "learner.gamma": 0.5,
            "learner.priority": "won",
            "report.status_every_s": 0,
            "spool.archive_bytes": 10**12,
            "train.opponents": "based=1.5,self",
            "train.schedule": "linear",
        },
    )
    configs.save(tmp_path / "config.toml", config)
    assert configs.load(tmp_path / "config.toml") == config != Config()


def test_a_file_names_only_what_differs(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("[learner]\ngamma = 1\n", encoding="utf-8")
    assert configs.load(path) == with_values(Config(), {"learner.gamma": 1.0})
    path.write_text("", encoding="utf-8")
    assert configs.load(path) == Config()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"learner.gama": 1}, r"unknown key learner\.gama\. Did you mean 'gamma'"),
        ({"lerner.gamma": 1}, "unknown key lerner. Did you mean 'learner'"),
        ({"gamma": 1}, "gamma: expected a dotted key"),
        ({"learner.gamma": "much"}, r"learner\.gamma"),
        ({"learner.gamma": 1.5}, r"learner\.gamma: expected 0 to 1, got 1\.5"),
        ({"learner.gae_lambda": -0.1}, r"learner\.gae_lambda"),
        ({"learner.batch_matches": 0}, r"learner\.batch_matches: expected a number above 0"),
        ({"learner.batch_matches": 2.5}, r"learner\.batch_matches"),
        ({"learner.drain_s": -1}, r"learner\.drain_s: expected 0 or more, got -1"),
        ({"learner.epochs": 99}, r"learner\.epochs: 99 passes .*samples_per_insert = "),
        ({"learner.learning_rate": 1.0}, r"learner\.learning_rate: .*learning_rate_max"),
        ({"learner.priority": "lost"}, r"learner\.priority"),
        ({"learner.algorithm": "magic"}, r"learner\.algorithm"),
        ({"spool.archive_matches": 0}, r"spool\.archive_matches"),
        ({"registry.keep_versions": 0}, r"registry\.keep_versions"),
        ({"report.status_every_s": -1}, r"report\.status_every_s"),
        ({"learner.seed": -1}, r"learner\.seed"),
        ({"learner.kl_stop": -0.1}, r"learner\.kl_stop: expected 0 or more"),
        ({"learner.opponent_weight": -1}, r"learner\.opponent_weight: expected 0 or more"),
        ({"learner.precision": "float8"}, r"learner\.precision"),
        ({"train.games": 0}, r"train\.games: expected a number above 0, got 0"),
        ({"train.segment": -1}, r"train\.segment: expected a number above 0"),
        ({"train.groups": 0}, r"train\.groups"),
        ({"train.snapshot_steps": 0}, r"train\.snapshot_steps"),
        ({"train.checkpoint_steps": 0}, r"train\.checkpoint_steps"),
        ({"train.games": 2.5}, r"train\.games"),
        ({"train.schedule": "sometimes"}, r"train\.schedule"),
        ({"train.game": 8}, r"unknown key train\.game\. Did you mean 'games'"),
    ],
)
def test_a_wrong_setting_is_named_with_what_was_expected(
    values: dict[str, Any], expected: str
) -> None:
    with pytest.raises(ConfigError, match=expected):
        with_values(Config(), values)


def test_not_a_number_is_no_setting() -> None:
    for name in ("gamma", "learning_rate", "clip", "drain_s"):
        with pytest.raises(ConfigError, match=name):
            with_values(Config(), {f"learner.{name}": float("nan")})


@pytest.mark.parametrize("text", ["[learner\n", "learner = 3\n", "[learner]\nx = 1\n", "\xff"])
def test_a_damaged_file_is_an_error_that_names_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigError, match=r"config\.toml: "):
        configs.load(path)


def test_settings_are_frozen() -> None:
    with pytest.raises(AttributeError):
        Config().learner.gamma = 0.5  # type: ignore[misc]


def test_every_setting_can_be_set_to_what_it_is() -> None:
    table = msgspec.to_builtins(Config())
    dotted = {f"{s}.{key}": value for s, keys in table.items() for key, value in keys.items()}
    assert len(dotted) > len(LearnerConfig.__struct_fields__)
    assert with_values(Config(), dotted) == Config()
