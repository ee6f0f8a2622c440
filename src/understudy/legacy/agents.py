"""What agents with the old API share: one `Understudy` for each run folder, and its counters.

The old bot made a new agent for every game, and its trainer made another: a second learner would be
refused. An agent has a match under way and the one before it (`LegacyMatches`). Counters are kept
in a small file of the run folder.
"""

from __future__ import annotations

import atexit
import contextlib
import math
import threading
from collections.abc import Mapping, Sequence
from operator import index
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from understudy.bot.match import Match, PlayerRole
from understudy.bot.understudy import RESULT_REWARDS, Mode, Understudy
from understudy.core import files
from understudy.core.arrays import NDArray, read_npz
from understudy.core.clock import SystemClock
from understudy.core.config import Config, with_values
from understudy.core.errors import Fenced, FileFormatError, InputError, RunFolderError
from understudy.core.ops import NUMPY
from understudy.experience.episode import Episode, Outcome, returns_of
from understudy.experience.spool import Spool
from understudy.legacy import experience as old_files
from understudy.legacy import models as old_models
from understudy.legacy.models import begin_with
from understudy.policy import distributions
from understudy.policy.policy import Policy
from understudy.policy.spec import PolicySpec
from understudy.policy.weights import normalise
from understudy.registry.run_folder import RunFolder
from understudy.telemetry import events
from understudy.telemetry.journal import Journal
from understudy.telemetry.text import complain

_COUNTERS = "rl_agent.json"
_BASELINE_DECAY = 0.95
_RECENT = 10


class LegacyMatch:
    """One match of an agent with the old API; it begins with the first decision."""

    def __init__(self, mind: Understudy) -> None:
        self._mind = mind
        self._match: Match | None = None
        self._states: list[NDArray] = []
        self._actions: list[int] = []
        self.rewards: list[float] = []

    @property
    def role(self) -> PlayerRole | None:
        """Who was given this match; None: it has not begun."""
        return None if self._match is None else self._match.role

    def decide(
        self, state: Sequence[float] | NDArray, fallback: int | str | None
    ) -> tuple[int, float]:
        """Decides by the rules or the policy: the number of the action and its probability, 1 where
        the rules decide. It is learned from, but in mode `play`."""
        action = None if fallback is None else self._label(fallback)
        if self._match is None:
            self._match = self._mind.match(api="rl_agent")
        number = self._number(self._match.decide(state, fallback=action))
        self._states.append(np.array(state, np.float32))
        self._actions.append(number)
        self.rewards.append(0.0)
        probability = self._match.last.probability
        return number, 1.0 if probability is None else probability

    def exploit(self, state: Sequence[float] | NDArray) -> tuple[int, float]:
        """The likeliest action and its probability. It is not learned from."""
        mode = self._mind.mode
        if mode in ("shadow", "auto"):
            raise InputError(
                f"get_action: training=False: in mode {mode!r} the policy plays only matches that "
                "it is given; open the agent with mode='play' to play without learning"
            )
        seen = np.asarray(state, np.float32)
        expected = (len(self._mind.spec.features),)
        if seen.shape != expected or not np.isfinite(seen).all():
            raise InputError(f"state: expected {expected[0]} finite numbers, got {state!r}")
        policy = self._mind.policy
        choice = policy.act(seen[None], policy.begin())
        return int(choice.actions[0, 0]), math.exp(choice.log_probs[0])

    def reward(self, amount: float) -> None:
        """Adds to the reward of the last decision of `explore`, if there is one."""
        if self._match is not None:
            self._match.reward(amount)
            self.rewards[-1] += float(amount)

    def finish(self, outcome: Outcome) -> None:
        """Ends the match, which is kept when this returns."""
        if self._match is not None:
            self._match.finish(outcome)

    def leave(self) -> None:
        """Keeps a match that was not finished as aborted."""
        if self._match is not None:
            self._match.leave()

    def arrays(self) -> dict[str, NDArray]:
        """states [T, F], actions [T], rewards [T], as in old experience files."""
        return {
            "states": np.array(self._states, np.float32),
            "actions": np.array(self._actions, np.int64),
            "rewards": np.array(self.rewards, np.float32),
        }

    def exploration(self) -> float:
        """The mean probability of all but the likeliest action in these states."""
        return 1.0 - float(_likeliest(self._mind.policy, np.array(self._states)).mean())

    def _number(self, label: str) -> int:
        return self._mind.spec.actions.names.index(label)  # type: ignore[union-attr]

    def _label(self, action: int | str) -> str:
        """The label of an action that is given by its number or its label."""
        if isinstance(action, str):
            return action  # an unknown one is an error of `decide`
        names: tuple[str, ...] = self._mind.spec.actions.names  # type: ignore[union-attr]
        if isinstance(action, bool) or not 0 <= (number := index(action)) < len(names):
            raise InputError(
                f"get_action: fallback: expected a label or 0 to {len(names) - 1}, got {action!r}"
            )
        return names[number]


class LegacyMatches:
    """The match under way of one agent, and the one before it."""

    def __init__(self, mind: Understudy) -> None:
        self.current = LegacyMatch(mind)
        self.finished = self.current

    def next(self, mind: Understudy) -> None:
        """Begins another match."""
        self.finished, self.current = self.current, LegacyMatch(mind)


def _likeliest(policy: Policy, states: NDArray) -> NDArray:
    """The probability [T] of the likeliest action in states [T, F]."""
    weights, network = policy.weights, policy.spec.network
    obs = normalise(NUMPY, weights, states)
    logits, _, _ = network.step(NUMPY, weights.params, obs, policy.begin(len(states)))
    log_probs = distributions.log_probs(NUMPY, policy.spec.actions, logits, None)
    likeliest: NDArray = np.exp(log_probs.max(-1))
    return likeliest


class LegacyCounters(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The counters of a run, across restarts."""

    episodes: int = 0
    steps: int = 0
    total_reward: float = 0.0
    baseline: float = 0.0
    """The moving average of discounted returns"""
    epsilon: float = 0.0
    recent: list[float] = []
    """The mean reward of a decision in each of the last ten matches"""


class SharedUnderstudy:
    """A run folder with a learner beside it, and the agents that play in it."""

    def __init__(self, mind: Understudy, counters: LegacyCounters) -> None:
        self.mind = mind
        self.counters = counters
        limits = mind.folder.config.retention
        self.imports = old_files.Imports(mind.folder.root, most=limits.imported_files)
        self._told_full = False
        self._spool = Spool(mind.folder.root, mind.spec, mind.folder.clock)
        self._journal = Journal(mind.folder.journal, "agent", mind.folder.clock)
        self._agents: list[LegacyMatches] = []
        self._metrics: tuple[int, dict[str, float]] = (0, {})

    def add_agent(self) -> LegacyMatches:
        matches = LegacyMatches(self.mind)
        self._agents.append(matches)
        return matches

    def remove_agent(self, matches: LegacyMatches) -> None:
        """Keeps a match that the agent did not finish as aborted."""
        with contextlib.suppress(ValueError):
            self._agents.remove(matches)
        matches.current.leave()

    def close(self, *, with_agents: bool) -> None:
        """Stops the learner, unless it has agents; `with_agents`: removes them first."""
        if self._agents and not with_agents:
            return
        for matches in tuple(self._agents):
            self.remove_agent(matches)
        with _lock:  # the same run is opened again only after its learner has ended
            if _open.get(self.mind.folder.root) is self:
                del _open[self.mind.folder.root]
            self.mind.close()

    def decode(self, arrays: Mapping[str, NDArray], name: str) -> Episode:
        """An old match as an episode of this run."""
        now = self.mind.folder.clock.time()
        return old_files.decode(arrays, self.mind.spec, name=name, now=now)

    def put(self, episode: Episode, name: str) -> None:
        """Puts an old match into the spool; the learner looks every second. `RunFolderError` where
        the run takes no more imports."""
        if refusal := self.imports.refusal:
            raise RunFolderError(refusal)
        self._spool.put(episode)
        self.imports.add(episode.meta.id, name)
        self._journal.write(events.EpisodesImported(count=1))

    def remember_copy(self, arrays: Mapping[str, NDArray], path: Path) -> None:
        """Never imports this copy of a match, which the run has with its log-probabilities; tells
        once where it cannot remember it."""
        if self.imports.add(old_files.identify(arrays), path.name) or self._told_full:
            return
        self._told_full = True
        complain(
            f"{path}: this run does not remember that it has this match: {self.imports.refusal}; "
            "do not import copies that are saved from now on into this run"
        )

    def metrics(self) -> dict[str, float]:
        """Of the batch that made the version that plays; empty for an untrained one."""
        version = self.mind.version
        if version and version != self._metrics[0]:
            with contextlib.suppress(FileFormatError, OSError):
                self._metrics = (version, self.mind.folder.versions.manifest(version).metrics)
        return self._metrics[1]

    def count(self, match: LegacyMatch, gamma: float) -> None:
        """Adds a finished match; a full disk is reported, and the game goes on."""
        counters, rewards = self.counters, match.rewards
        counters.steps += len(rewards)
        counters.episodes += 1
        counters.total_reward += sum(rewards)
        counters.recent = [*counters.recent, sum(rewards) / len(rewards)][-_RECENT:]
        counters.baseline += (1.0 - _BASELINE_DECAY) * (
            float(returns_of(rewards, gamma).mean()) - counters.baseline
        )
        counters.epsilon = match.exploration()
        try:
            files.write_atomic(self.mind.folder.root / _COUNTERS, msgspec.json.encode(counters))
        except OSError as error:
            complain(f"the counters could not be saved: {error}")


_open: dict[Path, SharedUnderstudy] = {}
_lock = threading.Lock()


def shared(
    root: Path,
    *,
    model_path: Path,
    spec: PolicySpec,
    values: Mapping[str, float],
    config: Config | None,
    learner: Literal["process", "thread", "off"],
    seed: int | None,
    mode: Mode = "learn",
    rules: str | None = None,
) -> SharedUnderstudy:
    """The shared understudy of this run folder in this process; opens one if there is none."""
    root = root.absolute()
    with _lock:
        if root not in _open:
            clock = SystemClock()
            folder = RunFolder.open(
                root, spec=spec, config=_settings(root, config, values), clock=clock
            )
            counters = _read_counters(folder, _begin(folder, model_path))
            mind = Understudy.open(
                root,
                features=spec.features,
                actions=spec.actions,
                network=spec.network,
                mode=mode,
                learner=learner,
                rules=rules,
                # The old bot rewards results itself.
                result_rewards=dict.fromkeys(RESULT_REWARDS, 0.0),
                seed=seed,
                clock=clock,
            )
            _open[root] = SharedUnderstudy(mind, counters)
        if _open[root].mind.spec != spec:
            raise RunFolderError(f"{root}: is open with other actions or another size of state")
        if (opened := _open[root].mind.mode) != mode:
            raise RunFolderError(f"{root}: is open in mode {opened!r}, not in mode {mode!r}")
        return _open[root]


@atexit.register
def _close_all() -> None:
    for one in tuple(_open.values()):
        one.close(with_agents=True)


def _settings(root: Path, config: Config | None, values: Mapping[str, float]) -> Config:
    """The given settings, else those of the run folder, with the agent's arguments."""
    kept = RunFolder.kept(root) if config is None else None
    config = config or (kept.config if kept else Config())
    rate = values["learner.learning_rate"]
    bounds = {
        "learner.learning_rate_min": min(config.learner.learning_rate_min, rate),
        "learner.learning_rate_max": max(config.learner.learning_rate_max, rate),
    }
    return with_values(config, {**bounds, **values})


def _begin(folder: RunFolder, model_path: Path) -> old_models.OldModel | None:
    """Commits an old model as the first version of a run without versions."""
    if folder.versions.numbers() or not model_path.is_file():
        return None
    try:
        arrays = read_npz(model_path)
        model = old_models.decode(arrays, folder.spec, what=str(model_path))
    except FileFormatError as error:
        raise FileFormatError(f"{error}; move it away to begin without it") from error
    with contextlib.suppress(Fenced):  # a learner committed first: its version plays
        begin_with(folder, model, Journal(folder.journal, "import", folder.clock))
        imports = old_files.Imports(folder.root, most=folder.config.retention.imported_files)
        imports.add(old_models.identify(model), model_path.name)
    return model


def _read_counters(folder: RunFolder, model: old_models.OldModel | None) -> LegacyCounters:
    path = folder.root / _COUNTERS
    try:
        return msgspec.json.decode(path.read_bytes(), type=LegacyCounters)
    except FileNotFoundError:
        counters = LegacyCounters(epsilon=1.0 - 1.0 / folder.spec.actions.options)
        if model is not None:
            counters.episodes, counters.baseline = model.episodes, model.baseline
        return counters
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RunFolderError(f"{path}: {error}; remove it to count from 0 again") from error
