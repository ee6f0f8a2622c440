from __future__ import annotations

import math
import tracemalloc
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from understudy.core import config as configs
from understudy.core.config import Config, CurriculumConfig, LearnerConfig, StageConfig, with_values
from understudy.core.config.descriptions import settings
from understudy.core.config.tables import read
from understudy.core.errors import ConfigError

STAGES = (
    StageConfig(name="easy", opponents="constant", measure="win_rate:constant", threshold=0.9),
    StageConfig(name="hard", opponents="based,constant", measure="win_rate:based", threshold=0.7),
    StageConfig(name="end", opponents="self=3,all"),
)
STAGED = msgspec.structs.replace(Config(), curriculum=CurriculumConfig(stages=STAGES))


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
        ({"learner.gama": 1}, r"unknown key learner\.gama\. Did you mean 'learner.gamma'"),
        ({"gamma": 1}, r"gamma: expected a dotted key .* Did you mean 'learner\.gamma'"),
        ({"gama": 1}, r"gama: expected a dotted key .* Did you mean 'learner\.gamma'"),
        ({"train.gamma": 1}, r"unknown key train\.gamma\. Did you mean 'learner\.gamma'"),
        ({"lerner.gamma": 1}, "unknown key lerner. Did you mean 'learner'"),
        ({"gamma": 1}, "gamma: expected a dotted key"),
        ({"learner.gamma": "much"}, r"learner\.gamma: expected a number; got 'much'"),
        ({"learner.gamma": 1.5}, r"learner\.gamma: expected 0 to 1, got 1\.5"),
        ({"learner.gae_lambda": -0.1}, r"learner\.gae_lambda"),
        ({"learner.batch_matches": 0}, r"learner\.batch_matches: expected a number above 0"),
        ({"learner.batch_matches": 2.5}, r"learner\.batch_matches: .* a whole number; got 2\.5"),
        ({"learner.drain_s": -1}, r"learner\.drain_s: expected 0 or more, got -1"),
        ({"learner.epochs": 99}, r"learner\.epochs: 99 passes .*samples_per_insert = "),
        ({"learner.learning_rate": 1.0}, r"learner\.learning_rate: .*learning_rate_max"),
        ({"learner.priority": "lost"}, r"priority: expected one of uniform, won, surprise; got"),
        ({"learner.algorithm": "magic"}, r"learner\.algorithm"),
        ({"spool.archive_matches": 0}, r"spool\.archive_matches"),
        ({"registry.keep_versions": 0}, r"registry\.keep_versions"),
        ({"report.status_every_s": -1}, r"report\.status_every_s"),
        ({"learner.seed": -1}, r"learner\.seed: expected 0 to 2\*\*63 - 1, got -1"),
        ({"learner.seed": 2**63}, r"learner\.seed: expected 0 to 2\*\*63 - 1"),
        ({"learner.kl_stop": -0.1}, r"learner\.kl_stop: expected 0 or more"),
        ({"learner.opponent_weight": -1}, r"learner\.opponent_weight: expected 0 or more"),
        ({"learner.precision": "float8"}, r"learner\.precision"),
        ({"train.games": 0}, r"train\.games: expected a number above 0, got 0"),
        ({"train.segment": -1}, r"train\.segment: expected a number above 0"),
        ({"train.groups": 0}, r"train\.groups"),
        ({"train.snapshot_steps": 0}, r"league\.save_freq"),
        ({"train.checkpoint_steps": 0}, r"train\.checkpoint_steps"),
        ({"train.games": 2.5}, r"train\.games"),
        ({"train.schedule": "linar"}, r"train\.schedule: .*constant; got 'linar'\. .* 'linear'"),
        ({"train.game": 8}, r"unknown key train\.game\. Did you mean 'train.games'"),
        ({"train.steps": -1}, r"train\.steps: expected 0 or more"),
        ({"train.steps": 1000}, r"train\.steps: 1000 are less than one iteration .*= 32768"),
        ({"league.save_freq": 0}, r"league\.save_freq: expected a number above 0"),
        ({"league.max_saved": 0}, r"league\.max_saved"),
        ({"league.mode": "always"}, r"league\.mode: expected one of force, selective; got"),
        ({"league.sampler": "prioritized"}, r"league\.sampler: .* Did you mean 'prioritised'"),
        ({"league.sampler": 3}, r"league\.sampler: expected one of random, recent, .*; got 3"),
        ({"league.recent_share": 1.01}, r"league\.recent_share: expected 0 to 1, got 1\.01"),
        ({"league.power": math.inf}, r"league\.power: expected 0 or more"),
        ({"league.stint": 0}, r"league\.stint"),
        (
            {"rewards.weights.combo": math.nan},
            r"rewards\.weights\.combo: .*finite number .*got nan",
        ),
        (
            {"rewards.weights.combo": "abc"},
            r"rewards\.weights\.combo: expected a number; got 'abc'",
        ),
        ({"rewards.weights": 3}, r"rewards\.weights: expected a table of settings; got 3"),
        ({"rewards.sets": "dense"}, r"unknown key rewards\.sets\. Did you mean 'rewards.set'"),
        ({"learner.gamma.x": 1}, r"learner\.gamma\.x: gamma holds no settings of their own"),
        ({"monitor.benchmark_steps": -1}, r"monitor\.benchmark_steps: expected 0 or more"),
        ({"monitor.benchmark_matches": 0}, r"monitor\.benchmark_matches"),
        ({"monitor.csv": "yes"}, r"monitor\.csv: expected true or false; got 'yes'"),
        ({"population.agents": 0}, r"population\.agents"),
        ({"population.replaced": 0.6}, r"population\.replaced: expected 0 to 0\.5, got 0\.6"),
        ({"population.spread": 0.9}, r"population\.spread: expected 1 or more, got 0\.9"),
        ({"curriculum.stages": 3}, r"curriculum\.stages: expected tables \[\[curriculum\.stages"),
        ({"curriculum.stages": ["a"]}, r"curriculum\.stages: expected tables"),
        ({"curriculum.stages": [{}]}, r"missing required field `name`"),
        ({"curriculum.pin": "easy"}, r"curriculum\.pin: expected no name \(there are no stages\)"),
        ({"curriculum.stages.easy.window": 3}, r"stages\.easy\.window: expected nothing"),
    ],
)
def test_a_wrong_setting_is_named_with_what_was_expected(
    values: dict[str, Any], expected: str
) -> None:
    with pytest.raises(ConfigError, match=expected):
        with_values(Config(), values)


@pytest.mark.parametrize(
    ("index", "values", "expected"),
    [
        (
            1,
            {"treshold": 0.5},
            r"unknown key .*stages\.hard\.treshold\. .*'curriculum\.stages\.hard\.threshold'",
        ),
        (1, {"threshold": "high"}, r"stages\.hard\.threshold"),
        (1, {"threshold": 1.0}, r"stages\.hard\.threshold: expected 0 to below 1, got 1\.0"),
        (1, {"threshold": -0.1}, r"stages\.hard\.threshold: expected 0 to below 1"),
        (1, {"threshold": 0.0}, r"stages\.hard\.threshold: only the last stage may do without"),
        (0, {"confidence": 0.4}, r"stages\.easy\.confidence: expected 0\.5 to below 1"),
        (0, {"confidence": 1.0}, r"stages\.easy\.confidence: expected 0\.5 to below 1"),
        (0, {"hold": 1.5}, r"stages\.easy\.hold: expected 0 to 1"),
        (0, {"min_matches": 0}, r"stages\.easy\.min_matches: expected a number above 0"),
        (0, {"min_matches": 300}, r"stages\.easy\.window: 200 .* fewer than min_matches = 300"),
        (0, {"measure": ""}, r"stages\.easy\.measure: expected such as win_rate:based"),
        (0, {"measure": "winrate:constant"}, r"measure: .*Did you mean 'win_rate'"),
        (0, {"measure": "win_rate"}, r"measure: expected names of opponents"),
        (0, {"measure": "score:constant+constant"}, r"measure: expected names of opponents"),
        (0, {"measure": "win_rate:based"}, r"easy\.measure: based is not among .*\(constant\)"),
        (1, {"name": "easy"}, r"stages\[1\]\.name: expected a name of its own, got 'easy'"),
        (1, {"name": ""}, r"stages\[1\]\.name"),
        (2, {"rewards_end": "sparse"}, r"stages\.end\.anneal_steps: .*rewards_end = 'sparse'"),
        (2, {"anneal_steps": 9}, r"stages\.end\.anneal_steps"),
        (2, {"anneal_steps": -9}, r"stages\.end\.anneal_steps: expected 0 or more"),
    ],
)
def test_a_wrong_stage_is_named_and_its_key_with_it(
    index: int, values: dict[str, Any], expected: str
) -> None:
    table = msgspec.to_builtins(STAGED)
    table["curriculum"]["stages"][index].update(values)
    with pytest.raises(ConfigError, match=expected):
        configs.from_table(table)


def test_a_pin_names_a_stage() -> None:
    assert with_values(STAGED, {"curriculum.pin": "hard"}).curriculum.pin == "hard"
    with pytest.raises(ConfigError, match=r"curriculum\.pin: .*easy, hard, end; .*mean 'hard'"):
        with_values(STAGED, {"curriculum.pin": "hrd"})


def test_dotted_keys_reach_as_deep_as_settings_do() -> None:
    config = with_values(STAGED, {"rewards.weights.combo": 1, "rewards.weights.equip": 0.5})
    assert config.rewards.weights == {"combo": 1.0, "equip": 0.5}
    assert with_values(config, {"rewards.weights.combo": 2}).rewards.weights["equip"] == 0.5
    config = with_values(config, {"curriculum.stages.hard.threshold": 0.6})
    assert [stage.threshold for stage in config.curriculum.stages] == [0.9, 0.6, 0.0]
    with pytest.raises(ConfigError, match=r"stages\.hrd\.window: .* got 'hrd'\. .*mean 'hard'"):
        with_values(config, {"curriculum.stages.hrd.window": 300})


def test_settings_of_a_run_from_before_a_key_was_renamed_still_load(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("[train]\ngames = 8\nsnapshot_steps = 512\n", encoding="utf-8")
    config = configs.load(path)
    assert (config.train.games, config.league.save_freq) == (8, 512)
    assert with_values(Config(), {"train.snapshot_steps": 7}).league.save_freq == 7
    path.write_text("[train]\nsnapshot_steps = 512\n[league]\nsave_freq = 9\n", encoding="utf-8")
    assert configs.load(path).league.save_freq == 9  # the name of today is right


texts = st.text(max_size=8)
numbers = st.floats(allow_nan=False, allow_infinity=False)
weights = st.floats(-3.4e38, 3.4e38)


@st.composite
def whole_configs(draw: st.DrawFn) -> Config:
    names = draw(st.lists(st.text(min_size=1, max_size=8), max_size=4, unique=True))
    stages = [
        StageConfig(
            name=name,
            opponents=draw(st.sampled_from(["", "all", "based,random=2"])),
            measure=draw(st.sampled_from(["win_rate:based", "score:based+random"])),
            threshold=draw(st.floats(0.01, 0.9)),
            window=draw(st.integers(100, 10**6)),
            hold=draw(st.floats(0, 1)),
            rewards=draw(texts),
        )
        for name in names
    ]
    values = {
        "learner.max_age_s": draw(st.floats(min_value=0, exclude_min=True)),  # may be inf
        "learner.gamma": draw(st.floats(0, 1)),
        "train.opponents": draw(texts),
        "monitor.tensorboard": draw(st.booleans()),
        "rewards.weights": draw(st.dictionaries(texts, weights, max_size=4)),
        "curriculum.stages": msgspec.to_builtins(stages),
        "curriculum.pin": draw(st.sampled_from(["", *names])),
    }
    return with_values(Config(), values)


@given(whole_configs())
@hypothesis_settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_set_survives_the_way_through_a_file(tmp_path: Path, config: Config) -> None:
    configs.save(tmp_path / "config.toml", config)
    assert configs.load(tmp_path / "config.toml") == config


def test_every_setting_has_words() -> None:
    for section in (StageConfig, *(one.section for one in settings(Config))):
        assert section is not None
        assert [one.name for one in settings(section) if not one.words] == []


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


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("x = [" + "1," * 2**19 + "]", "1048576 bytes"),
        ("x = " + "[" * 2_000, "32 tables and lists"),
        ("x = " + "{a = " * 2_000, "32 tables and lists"),
        ("x = " + "[" * 33 + "]" * 33, "32 tables and lists"),
        ("a" + ".a" * 5_000 + " = 1", "32 tables and lists"),  # a square of memory in tomllib
        ("[game" + r' . "\""' * 5_000 + "]", "32 tables and lists"),
        ("a" * 100_000 + " = 1", "256 characters"),
    ],
    ids=["long", "lists", "tables", "deep", "dots", "header", "key"],
)
def test_a_file_beyond_the_limits_is_refused_before_it_takes_the_memory(
    text: str, limit: str, tmp_path: Path
) -> None:
    path = tmp_path / "game.toml"
    path.write_text(text, encoding="utf-8")
    tracemalloc.start()
    try:
        with pytest.raises(ConfigError) as error:
            read(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert str(path) in str(error.value) and limit in str(error.value)
    assert len(str(error.value)) < 300 + len(str(path))
    assert peak < 50 * 2**20


def test_a_file_within_the_limits_is_read(tmp_path: Path) -> None:
    path = tmp_path / "game.toml"
    deep = "a" + ".a" * 29 + ' = [["x.y.z", 1.5, 2.5]]\r\n'
    path.write_bytes(deep.encode() + b"[b.c]\nd = 1\n")
    assert read(path)["b"] == {"c": {"d": 1}}


@pytest.mark.parametrize("weight", [1e39, -1e39, math.inf, math.nan])
def test_a_weight_beyond_32_bits_is_refused(weight: float) -> None:
    with pytest.raises(ConfigError, match=r"rewards\.weights\.combo.*3\.4e38"):
        with_values(Config(), {"rewards.weights.combo": weight})
