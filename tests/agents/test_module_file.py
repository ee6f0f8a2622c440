from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from understudy.agents.agent import PolicyAgent
from understudy.agents.exported import load_exported
from understudy.agents.module_file import AgentSource, module_text, plain_agent
from understudy.core.ops import NUMPY
from understudy.core.spaces import Discrete
from understudy.policy import distributions
from understudy.policy.mlp import Mlp
from understudy.policy.policy import Policy, untrained
from understudy.policy.presets import PRESETS
from understudy.policy.spec import PolicySpec
from understudy.policy.weights import Weights

from .exports import KINDS, exported, match, policy_of

MATCHES = 6


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_plays_what_its_policy_plays(kind: str, tmp_path: Path) -> None:
    """The likeliest actions and drawn ones, with and without masks, over whole matches."""
    policy = policy_of(kind)
    file = exported(policy, tmp_path / "agent.py")
    agents = {greedy: file.agent(greedy=greedy) for greedy in (True, False)}
    memories = {greedy: policy.begin() for greedy in agents}
    for number in range(MATCHES):
        observations, legal, uniforms = match(number, policy)
        for greedy, agent in agents.items():
            agent.reset()
            memories[greedy] = policy.begin()
            for obs, allowed, drawn in zip(observations, legal, uniforms, strict=True):
                mask = allowed if number % 2 else None
                choice = policy.act(
                    obs[None],
                    memories[greedy],
                    legal=None if mask is None else mask[None],
                    uniforms=None if greedy else drawn[None],
                )
                memories[greedy] = choice.memory
                action = agent.act(obs, legal=mask, uniforms=None if greedy else drawn)
                expected = distributions.executed(NUMPY, policy.spec.actions, choice.actions[0])
                assert np.array_equal(np.atleast_1d(action), expected), (number, greedy)


def test_a_seed_gives_the_same_draws_and_a_reset_an_empty_memory(tmp_path: Path) -> None:
    policy = policy_of("strategist")
    file = exported(policy, tmp_path / "agent.py")
    observations, _, _ = match(0, policy)

    def drawn(seed: int) -> list[list[int]]:
        agent = file.agent(seed=seed)
        return [agent.act(obs).tolist() for obs in observations]

    assert drawn(1) == drawn(1) != drawn(2)
    ours = PolicyAgent(policy, seed=1)
    assert [ours.act(obs).tolist() for obs in observations] == drawn(1)
    agent = file.agent(greedy=True)
    first = [agent.act(obs).tolist() for obs in observations]
    agent.reset()
    assert [agent.act(obs).tolist() for obs in observations] == first


def test_two_agents_of_one_file_do_not_share_memory(tmp_path: Path) -> None:
    policy = policy_of("transformer")
    file = exported(policy, tmp_path / "agent.py")
    one, other, alone = (file.agent(greedy=True) for _ in range(3))
    observations, _, _ = match(0, policy)
    expected = [alone.act(obs).tolist() for obs in observations]
    actions = []
    for obs in observations:
        other.act(-obs)
        actions.append(one.act(obs).tolist())
    assert actions == expected


@pytest.mark.parametrize("kind", KINDS)
def test_the_text_is_python_3_10_and_leaves_out_what_does_not_play(kind: str) -> None:
    text = module_text(policy_of(kind), AgentSource("zerg"), plain_agent(greedy=True))
    tree = ast.parse(text, feature_version=(3, 10))
    defined = {
        node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else
                     [alias.name for alias in node.names])
    }  # fmt: skip
    assert {"Agent", "PolicyAgent", type(policy_of(kind).spec.network).__name__} <= defined
    assert not {"unroll", "init", "init_linear", "entropy", "__post_init__"} & defined
    assert imported <= {
        "__future__", "base64", "dataclasses", "functools", "io", "math", "numpy", "re", "struct",
        "typing", "zipfile", "zlib",
    }  # fmt: skip
    assert ("Continuous" in defined) == ("numbers" in kind)
    assert "msgspec" not in text and "Apache-2.0" in text


_ALONE = """
import sys
sys.path[:] = [*sys.path, {packages!r}, {folder!r}]
for name in ("understudy", "msgspec"):
    try:
        __import__(name)
    except ImportError:
        pass
    else:
        raise SystemExit(name + " is importable")
from agent import Agent
agent = Agent(greedy=True)
rows = {rows!r}
print([agent.act(row).tolist() for row in rows])
"""


def test_it_runs_where_numpy_is_all_there_is(tmp_path: Path) -> None:
    policy = policy_of("strategist")
    exported(policy, tmp_path / "agent.py")
    packages = tmp_path / "packages"
    packages.mkdir()
    (packages / "numpy").symlink_to(Path(np.__file__).parent, target_is_directory=True)
    observations, _, _ = match(0, policy, frames=5)
    code = _ALONE.format(
        packages=str(packages), folder=str(tmp_path), rows=observations.astype(float).tolist()
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-B", "-W", "error", "-c", code],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    ours = PolicyAgent(policy, greedy=True)
    expected = [ours.act(obs).tolist() for obs in observations]
    assert done.stdout == f"{expected}\n", done.stderr


def test_float16_halves_the_file_and_rounds_the_weights(tmp_path: Path) -> None:
    spec = PolicySpec(("x", "y"), Discrete(("a", "b")), Mlp((128, 128)))
    policy = untrained(spec, seed=1)
    whole = exported(policy, tmp_path / "whole.py").path.stat().st_size
    half = exported(policy, tmp_path / "half.py", float16=True)
    assert half.path.stat().st_size < 0.6 * whole and half.about.float16
    rounded = {
        name: np.asarray(value, np.float16).astype(np.float32)
        for name, value in policy.weights.params.items()
    }
    held = policy.weights
    weights = Weights(rounded, held.obs_mean, held.obs_scale, held.value_scale)
    ours, agent = PolicyAgent(Policy(spec, weights, 0), greedy=True), half.agent(greedy=True)
    rng = np.random.default_rng(0)
    for obs in rng.standard_normal((50, 2)):
        assert agent.act(obs) == ours.act(obs)


def test_names_that_would_break_a_docstring_do_not(tmp_path: Path) -> None:
    features = ('"""', "\\", "line\nbreak", "π")
    spec = PolicySpec(features, Discrete(('a"""', "b\n")), Mlp(()))
    agent = exported(untrained(spec, seed=0), tmp_path / "agent.py").agent()
    assert agent.features == features and agent.actions.names == ('a"""', "b\n")


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_can_be_exported(name: str) -> None:
    """Weights of zeros, since drawing those of preset seed takes a second."""
    places = name == "pointer"
    features = tuple(f"f{index}" for index in range(28 if places else 64))
    actions = Discrete(tuple(str(index) for index in range(513 if places else 10)))
    spec = PolicySpec(features, actions, PRESETS[name])
    params = spec.network.init(None, len(features), actions.options)
    ones = np.ones(len(features), np.float32)
    policy = Policy(spec, Weights(params, ones, ones, np.float32(1)), 0)
    text = module_text(policy, AgentSource("run"), plain_agent(greedy=False))
    compile(text, "agent.py", "exec")


def test_wrong_arguments_are_clear_errors(tmp_path: Path) -> None:
    policy = policy_of("mlp")
    agent = exported(policy, tmp_path / "agent.py").agent()
    good = np.zeros(8)
    for given, words in (
        ({"features": np.zeros(7)}, "features: expected 8 numbers, got shape (7,)"),
        ({"features": ["x"] * 8}, "features: expected plain numbers"),
        ({"features": [*good[:5], np.nan, 0, 0]}, "features: 'f5' is nan, expected a finite"),
        ({"features": [*good[:7], np.inf]}, "features: 'f7' is inf, expected a finite number"),
        ({"features": good, "uniforms": [0.5, 0.5]}, "uniforms: expected 1 numbers, got shape"),
        ({"features": good, "uniforms": [np.nan]}, "uniforms: expected numbers from 0 to 1"),
        ({"features": good, "uniforms": [1.5]}, "uniforms: expected numbers from 0 to 1"),
        ({"features": good, "legal": [True]}, "legal: expected 3 flags, got shape (1,)"),
        ({"features": good, "legal": [False] * 3}, "legal: part 0 of 1 has no legal option"),
    ):
        with pytest.raises(ValueError, match=r"features|legal|uniforms") as caught:
            agent.act(**given)
        assert type(caught.value).__name__ == "InputError" and words in str(caught.value)


def test_a_feature_that_is_not_finite_leaves_the_memory_alone(tmp_path: Path) -> None:
    policy = policy_of("strategist")
    file = exported(policy, tmp_path / "agent.py")
    observations, _, _ = match(0, policy)
    alone, hurt = file.agent(greedy=True), file.agent(greedy=True)
    for obs in observations:
        with pytest.raises(ValueError, match=r"f2.* is nan"):
            hurt.act([*obs[:2], np.nan, *obs[3:]])
        assert np.array_equal(hurt.act(obs), alone.act(obs))


def test_a_file_says_what_it_is(tmp_path: Path) -> None:
    file = exported(policy_of("strategist"), tmp_path / "agent.py")
    again = load_exported(tmp_path / "agent.py")
    assert again.policy is file.policy, "one file is loaded once"
    assert file.about.run == "zerg" and file.about.version == 3
    assert file.about.game_name == "brawl" and file.about.game_options == {"delay": "6"}
    head = (tmp_path / "agent.py").read_text(encoding="utf-8").split('"""')[1]
    assert "An agent for brawl 4" in head and "Run       zerg, version 3" in head
    assert "Features  8: f0, f1" in head and "Actions   4 switches: w, a, s, d" in head
