from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from understudy.core.config import Config, load
from understudy.training.named_configs import config, names

from .calling import understudy


def test_configs_are_listed_with_what_they_are_for() -> None:
    lines = understudy("config", "list").out.splitlines()
    assert [line.split()[0] for line in lines] == list(names())
    assert all(len(line) > 40 for line in lines)
    assert list(understudy("config", "list", "--json").json) == list(names())


@pytest.mark.parametrize("name", ["curriculum", "competition_10m"])
def test_what_is_shown_is_a_file_that_makes_the_same_config(name: str, tmp_path: Path) -> None:
    path = tmp_path / "shown.toml"
    for flags in ((), ("--changed",)):
        path.write_text(understudy("config", "show", name, *flags).out, encoding="utf-8")
        assert load(path) == config(name) == config(str(path))


def test_each_setting_is_shown_with_what_it_does_once() -> None:
    shown = understudy("config", "show", "curriculum").out
    assert "# Discount a decision.\ngamma = 0.998\n" in shown
    assert shown.count("\nthreshold = ") == 4  # of each stage, and of the decision gate
    assert shown.count("# What that must surely exceed") == 1
    assert max(map(len, shown.splitlines())) <= 100


def test_only_what_was_changed() -> None:
    shown = understudy("config", "show", "small", "--changed").out
    assert "gamma = 0.998" in shown and "gae_lambda" not in shown and "[spool]" not in shown


def test_settings_on_top() -> None:
    flags = ("--set", "rewards.weights.combo=0.1", "--set", "curriculum.stages.based.threshold=0.8")
    shown = understudy("config", "show", "curriculum", *flags, "--json").json
    assert shown["rewards"]["weights"] == {"combo": 0.1}
    assert shown["curriculum"]["stages"][1]["threshold"] == 0.8
    assert set(shown) == set(Config.__struct_fields__)
    assert msgspec.convert(shown, Config).learner == config("curriculum").learner


@pytest.mark.parametrize(
    ("args", "named", "nearest"),
    [
        (("curiculum",), "config show", "'curriculum'"),
        (("gone.toml",), "gone.toml", "no file"),
        (("small", "--set", "rewards.wights.x=1"), "--set", "'rewards.weights'"),
        (("curriculum", "--set", "curriculum.stages.basd.hold=0"), "--set", "'based'"),
    ],
)
def test_a_mistake_is_one_line_with_the_nearest(
    args: tuple[str, ...], named: str, nearest: str
) -> None:
    called = understudy("config", "show", *args)
    assert (called.code, called.out, called.err.count("\n")) == (2, "", 1)
    assert named in called.err and nearest in called.err
