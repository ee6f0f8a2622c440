"""Users' terms: five lines, loaded from a module that a person names, and tried before use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from understudy.core.errors import ConfigError
from understudy.core.ops import NUMPY
from understudy.games import rewards
from understudy.games.brawl import Brawl
from understudy.games.rewards import Moment, load_terms, rewards_of, terms_of

from .brawl_scenes import scene
from .test_rewards import Settings

AIRBORNE = """\
from understudy.games.rewards import term

@term("brawl")
def airborne(ops, moment):
    return (~moment.after.grounded).astype(ops.xp.float32)
"""


@pytest.fixture(autouse=True)
def _nothing_added(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(rewards, "_ADDED", {})
    monkeypatch.setattr(rewards, "_LOADED", {})
    yield


def written(folder: Path, text: str) -> Path:
    path = folder / "my_terms.py"
    path.write_text(text, encoding="utf-8")
    return path


def test_five_lines_make_a_term_that_a_config_can_name(tmp_path: Path) -> None:
    assert load_terms(written(tmp_path, AIRBORNE)) == ("airborne",)
    chosen = Settings("sparse", {"airborne": -0.5})
    rewards, (weights,) = rewards_of("brawl", chosen, gamma=0.99)
    after = scene(grounded=(True, False))
    moment = Moment(Brawl(), scene(), after, np.zeros((2, 1, 1), np.int32))
    part = rewards.parts(NUMPY, moment, weights)[rewards.names.index("airborne"), :, 0]
    np.testing.assert_array_equal(part, [0, -0.5])
    assert load_terms(tmp_path / "my_terms.py") == ("airborne",), "once more changes nothing"


def test_a_module_on_the_path_is_loaded_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "terms_by_name.py").write_text(AIRBORNE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert load_terms("terms_by_name") == ("airborne",)


def test_shaping_of_ones_own_is_a_term_like_any_other(tmp_path: Path) -> None:
    text = """
from understudy.games.rewards import Shaped, term
height = term("brawl", name="shaped_height")(Shaped(lambda ops, state: state.y, 0.99))
"""
    assert load_terms(written(tmp_path, text)) == ("shaped_height",)
    assert rewards_of("brawl", Settings(weights={"shaped_height": 0.1}), gamma=0.99)


def body(line: str) -> str:
    return f"{AIRBORNE[: AIRBORNE.index('    return')]}    return {line}\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (body("moment.after.x[0]"), r"airborne: expected \[players, matches\] = \(2, 3\).*\(3,\)"),
        (body("1.0"), r"airborne: expected \[players, matches\].*float"),
        (body("moment.after.grounded"), r"airborne: expected float32, got bool"),
        (body("moment.after.x / 3 * ops.xp.ones(1)"), r"airborne: expected float32, got float64"),
        (body("moment.after.x * ops.xp.float32('nan')"), r"airborne: expected finite numbers"),
        (body("moment.after.hieght"), r"airborne: failed with AttributeError: .*hieght"),
        (AIRBORNE.replace("airborne", "combo"), r"brawl has a term 'combo' already"),
        (AIRBORNE.replace('"brawl"', '"brwal"'), r"no game 'brwal'.*Did you mean 'brawl'"),
        (AIRBORNE.replace("airborne(ops, moment)", "airborne(ops)"), r"failed with TypeError"),
        ("import no_such_module_here", r"cannot be imported \(ModuleNotFoundError"),
        ("def airborne(:\n", r"cannot be imported \(SyntaxError"),
        ("x = 1\n", r'adds no term; write @term\("brawl"\)'),
        (
            'from understudy.games.rewards import term\nterm("brawl")(lambda ops, moment: 0)\n',
            r"expected a name of letters.*<lambda>.*name=",
        ),
    ],
)
def test_a_wrong_module_says_what_is_wrong_and_leaves_nothing(
    tmp_path: Path, text: str, said: str
) -> None:
    path = written(tmp_path, text)
    known = set(terms_of("brawl", gamma=1.0))
    with pytest.raises(ConfigError, match=said) as caught:
        load_terms(path)
    assert "my_terms.py" in str(caught.value)
    assert set(terms_of("brawl", gamma=1.0)) == known
    assert load_terms(written(tmp_path, AIRBORNE)) == ("airborne",), "and can be put right"


def test_a_file_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no file .*missing\.py"):
        load_terms(tmp_path / "missing.py")
    with pytest.raises(ConfigError, match="no_such_terms: cannot be imported"):
        load_terms("no_such_terms")
    (tmp_path / "notes.txt").write_text("x", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"notes\.txt: not a Python file"):
        load_terms(tmp_path / "notes.txt")
