"""Configs that ship, files of one's own, and what builds on what."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from understudy.arena import mix
from understudy.core.config import Config
from understudy.core.errors import ConfigError
from understudy.games import catalog
from understudy.training import named_configs

BOTS = tuple(catalog.bots("brawl"))


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


# --- what ships ------------------------------------------------------------------------------


def test_what_ships() -> None:
    assert set(named_configs.names()) == {
        "classic", "competition_10m", "curriculum", "environment", "environment_curriculum",
        "fast", "live", "medium", "plain", "seed", "small", "stable", "tournament",
    }  # fmt: skip


@pytest.mark.parametrize("name", named_configs.names())
def test_each_says_in_one_line_what_it_is_for(name: str) -> None:
    line = named_configs.summary(name)
    assert 20 < len(line) < 100 and line.endswith(".")


@pytest.mark.parametrize("name", named_configs.names())
def test_each_meets_opponents_of_the_brawl_in_a_batch_that_can_be_shared_out(name: str) -> None:
    config = named_configs.config(name)
    assert config.train.games % config.learner.minibatches == 0
    for text in (config.train.opponents, *(s.opponents for s in config.curriculum.stages)):
        assert mix.parse(text or config.train.opponents, BOTS).scripted
    sets = [config.rewards.set]
    for stage in config.curriculum.stages:
        sets += [name for name in (stage.rewards, stage.rewards_end) if name]
    assert set(sets) <= set(catalog.reward_sets("brawl"))


def test_the_curriculum_is_two_thresholds_and_then_its_own_past() -> None:
    config = named_configs.config("curriculum")
    stages = config.curriculum.stages
    assert [(stage.measure, stage.threshold) for stage in stages] == [
        ("win_rate:constant", 0.9),
        ("win_rate:based", 0.7),
        ("", 0.0),
    ]
    kept = [mix.parse(stage.opponents, BOTS) for stage in stages]
    assert kept[2].meets_itself and not kept[0].meets_itself
    for index, stage in enumerate(stages[:-1]):  # what was taught goes on being measured
        (whom,) = stage.measured[1]
        assert all(whom in later.names for later in kept[index:])
    # Short matches end first: nothing is judged on those alone.
    assert all(stage.min_matches >= 2 * config.train.games for stage in stages[:-1])
    assert [stage.rewards for stage in stages] == ["approach", "dense", "sparse"]
    assert stages[1].rewards_end == "sparse"
    small = named_configs.config("small")
    assert config.learner.entropy_weight > small.learner.entropy_weight
    assert config.train.games == small.train.games


def test_the_competition_is_the_published_mix() -> None:
    config = named_configs.config("competition_10m")
    *first, last = config.curriculum.stages
    assert tuple(first) == named_configs.config("curriculum").curriculum.stages[:-1]
    met = mix.parse(last.opponents, BOTS)
    shares = {
        name: weight / sum(met.weights) for name, weight in zip(met.names, met.weights, strict=True)
    }
    assert shares == pytest.approx({"self": 0.7, "based": 0.15, "random": 0.1, "constant": 0.05})
    assert (config.league.save_freq, config.league.max_saved) == (50_000, 200)
    assert config.train.steps == 10_000_000


# --- what builds on what ---------------------------------------------------------------------


def test_a_file_builds_on_one_that_ships_and_names_what_differs(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.toml", 'extends = "curriculum"\n[train]\ngames = 32\n')
    mine, theirs = named_configs.config(str(path)), named_configs.config("curriculum")
    train = msgspec.structs.replace(theirs.train, games=32)
    assert mine == msgspec.structs.replace(theirs, train=train)


def test_a_file_changes_one_stage_of_another_by_its_name(tmp_path: Path) -> None:
    text = 'extends = "curriculum"\n[curriculum.stages.based]\nthreshold = 0.5\n'
    first, second, third = named_configs.config("curriculum").curriculum.stages
    mine = named_configs.config(str(write(tmp_path / "mine.toml", text))).curriculum.stages
    assert mine == (first, msgspec.structs.replace(second, threshold=0.5), third)
    deeper = 'extends = "mine.toml"\n[curriculum.stages.league]\nopponents = "random,self"\n'
    mine = named_configs.config(str(write(tmp_path / "deeper.toml", deeper))).curriculum.stages
    assert [stage.threshold for stage in mine] == [0.9, 0.5, 0.0]
    assert mine[2].opponents == "random,self"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            'extends = "curriculum"\n[curriculum.stages.leage]\nhold = 0.2\n',
            r"mine.toml: curriculum\.stages\.leage: expected one of constant, .* mean 'league'",
        ),
        (
            'extends = "curriculum"\n[curriculum.stages.league]\nholt = 0.2\n',
            r"mine.toml: unknown key curriculum\.stages\.league\.holt.* mean '.*hold'",
        ),
        (
            'extends = "curriculum"\n[curriculum.stages]\nleague = 0.2\n',
            r"mine.toml: curriculum\.stages\.league: expected a table of settings",
        ),
        (
            'extends = "small"\n[curriculum.stages.league]\nhold = 0.2\n',
            r"mine.toml: curriculum\.stages: expected tables \[\[curriculum\.stages\]\]",
        ),
        (
            "[curriculum.stages.league]\nhold = 0.2\n",
            r"mine.toml: curriculum\.stages: expected tables \[\[curriculum\.stages\]\]",
        ),
    ],
)
def test_a_stage_that_there_is_not_is_named(text: str, expected: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=expected):
        named_configs.config(str(write(tmp_path / "mine.toml", text)))


def test_a_file_builds_on_another_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path)
    write(
        Path("base.toml"),
        'extends = "small"\n[rewards.weights]\ncombo = 1\nequip = 2\n[train]\nsnapshot_steps = 9\n',
    )
    write(
        Path("inner", "top.toml"),
        'extends = "../base.toml"\n[rewards.weights]\nequip = 3\n',
    )
    config = named_configs.config("inner/top.toml")
    assert config.rewards.weights == {"combo": 1.0, "equip": 3.0}
    assert config.league.save_freq == 9  # by its old name
    assert config.learner == named_configs.config("small").learner


def test_lists_are_replaced_whole(tmp_path: Path) -> None:
    path = write(
        tmp_path / "one.toml", 'extends = "curriculum"\n[[curriculum.stages]]\nname = "only"\n'
    )
    assert [s.name for s in named_configs.config(str(path)).curriculum.stages] == ["only"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('extends = "smal"', r"a\.toml: extends: expected one of .*mean 'small'"),
        ('extends = "gone.toml"', r"a\.toml: extends: there is no file .*gone\.toml"),
        ("extends = 3", r"a\.toml: extends: expected a name or a \.toml file, got 3"),
        ('extends = "a.toml"', r"a\.toml: extends: goes round in a circle: .*a\.toml -> .*a\.toml"),
        ('extends = "./b.toml"', r"b\.toml: extends: goes round in a circle: .* -> .* -> "),
        ('extends = "bad.toml"', r"bad\.toml: learner\.gamma: expected 0 to 1, got 7"),
        ('extends = "typo.toml"', r"typo\.toml: unknown key learner\.gama\. .*'learner.gamma'"),
        ('extends = "torn.toml"', r"torn\.toml: not valid TOML"),
        ("[learner]\ngamma = 7", r"a\.toml: learner\.gamma: expected 0 to 1"),
        ('[learner]\nextends = "small"', r"a\.toml: unknown key learner\.extends"),
    ],
)
def test_a_mistake_is_told_under_the_name_of_its_file(
    tmp_path: Path, text: str, expected: str
) -> None:
    write(tmp_path / "b.toml", 'extends = "a.toml"\n')
    write(tmp_path / "bad.toml", "[learner]\ngamma = 7\n")
    write(tmp_path / "typo.toml", "[learner]\ngama = 1\n")
    write(tmp_path / "torn.toml", "[learner\n")
    with pytest.raises(ConfigError, match=expected):
        named_configs.config(str(write(tmp_path / "a.toml", text + "\n")))


def test_two_that_build_on_the_same_one_are_no_circle(tmp_path: Path) -> None:
    for name, below in (("a", "small"), ("b", "a.toml"), ("c", "b.toml")):
        path = write(tmp_path / f"{name}.toml", f'extends = "{below}"\n')
    assert named_configs.config(str(path)) == named_configs.config("small") != Config()


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"--config: .*curriculum.*; got .*mean 'curriculum'"):
        named_configs.config("curiculum")
    with pytest.raises(ConfigError, match=r"--config: there is no file nowhere\.toml"):
        named_configs.config("nowhere.toml")
