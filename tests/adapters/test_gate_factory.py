"""Gates by name: the shipped ones, one's own, and mistakes that name the flag."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from understudy.adapters.gate_factory import make_gate
from understudy.core.errors import ConfigError
from understudy.core.spaces import Discrete
from understudy.gates.decision import DecisionGate

_OWN = """
import numpy as np
from understudy.gates.decision import Verdict

class Careful:
    name = "careful"
    def __init__(self, *, threshold): self.threshold = threshold
    def evaluate(self, observation, action):
        return Verdict.of(observation[0] - 0.5, threshold=self.threshold, reasons=("low",))

class Plain:
    name = "plain"
    def evaluate(self, observation, action): return Verdict(True, 0.0)

class Batched(Plain):
    def evaluate_all(self, observations, actions): return tuple(observations)

class Nameless:
    def evaluate(self, observation, action): return Verdict(True, 0.0)

class Deaf:
    name = "deaf"

class Greedy(Plain):
    def __init__(self, wanted): pass

class Failing(Plain):
    def evaluate(self, observation, action): return observation[99]

class Says(Plain):
    def evaluate(self, observation, action): return True

class Numpy(Plain):
    def evaluate(self, observation, action): return Verdict(np.float32(1) > 0, np.float32(1))

class Endless(Plain):
    def evaluate(self, observation, action): return Verdict(True, float("inf"))

class Numbered(Plain):
    def evaluate(self, observation, action): return Verdict(True, 0.0, (1,))

not_a_class = 7
"""


@pytest.fixture(autouse=True)
def own_gates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module in the folder that one works in."""
    (tmp_path / "own_gates.py").write_text(_OWN, encoding="utf-8")
    (tmp_path / "broken_gates.py").write_text("import nowhere_at_all", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("own_gates", "broken_gates"):
        monkeypatch.delitem(sys.modules, name, raising=False)


def made(name: str, **changes: Any) -> DecisionGate:
    options = {"game": "territory", "threshold": 0.1, "budget_ms": 5.0, **changes}
    return make_gate(name, **options)


def test_the_shipped_ones() -> None:
    for name in ("open", "cost", "rollout"):
        assert made(name).name == name
    assert made("cost", game="territory 1").name == "cost"  # as a run folder has it
    assert made("open", game="anything at all").name == "open"


def test_one_of_ones_own_with_and_without_a_threshold() -> None:
    careful = made("own_gates:Careful", features=3, actions=Discrete(("a", "b")))
    verdict = careful.evaluate([0.7], [0])  # type: ignore[arg-type]
    assert (verdict.send, verdict.reasons) == (True, ("low",))
    assert verdict.expected_reward == pytest.approx(0.2)
    assert made("own_gates:Plain", game="a schema's").name == "plain"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("cots", ["'cots'", "module:Name", "'cost'"]),
        ("nowhere:Gate", ["'nowhere'", "ModuleNotFoundError"]),
        ("broken_gates:Gate", ["'broken_gates'", "nowhere_at_all"]),
        ("own_gates:Carefull", ["'Carefull' does not exist", "'Careful'"]),
        ("own_gates:not_a_class", ["expected a class", "is no class"]),
        ("own_gates:", ["expected a class"]),
        (":Gate", ["cannot be imported"]),
        ("own_gates:Nameless", ["expected `name`"]),
        ("own_gates:Deaf", ["evaluate(observation, action)"]),
        ("own_gates:Greedy", ["without arguments or with threshold", "wanted"]),
        ("own_gates:Failing", ["trial of 28 features", "IndexError"]),
        ("own_gates:Says", ["expected a Verdict, got bool", "Verdict.of"]),
        ("own_gates:Numpy", ["plain numbers", "Verdict.of"]),
        ("own_gates:Endless", ["finite"]),
        ("own_gates:Numbered", ["reasons in words"]),
        ("own_gates:Batched", ["evaluate_all", "list"]),
    ],
)
def test_a_mistake_names_the_flag_and_what_was_expected(name: str, told: list[str]) -> None:
    with pytest.raises(ConfigError) as error:
        made(name)
    message = str(error.value)
    assert message.startswith("--gate") and name in message
    assert all(words in message for words in told), message


@pytest.mark.parametrize("name", ["cost", "rollout"])
@pytest.mark.parametrize("game", ["swarm 1", "my own game"])
def test_a_gate_that_knows_other_rules_is_refused(name: str, game: str) -> None:
    with pytest.raises(ConfigError, match=f"--gate {name}: .*{game}.*module:Name"):
        made(name, game=game)
