"""The old StarCraft II bot's `RLAgent`, on top of `Understudy`: change one import, and it learns.

    from understudy.legacy.rl_agent import RLAgent

    agent = RLAgent(model_path="local_training/models/rl_agent_model.npz")
    index, label, probability = agent.get_action(state)
    agent.update_reward(0.1)                         # belongs to the decision before it
    agent.end_episode(final_reward=10.0)             # above 0: victory, below: defeat, 0: tie

All that it learns lives in a run folder beside the model file (`rl_agent_model.run/`); a model file
that is there before the run folder becomes its first version. A learner works in another process.

The agent learns by playing, in mode `learn`, unless `mode` says otherwise. In mode `auto` the rules
of the bot play until a version is better by evidence:

    agent = RLAgent(mode="auto")
    index, label, probability = agent.get_action(state, fallback=rules(state))

docs/coming-over.md says what became of what, and which mode fits.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import numpy as np

from understudy.bot.match import PlayerRole
from understudy.bot.understudy import Mode
from understudy.core import files
from understudy.core.arrays import NDArray
from understudy.core.config import Config
from understudy.core.errors import UnderstudyError
from understudy.experience.episode import Outcome
from understudy.legacy import experience as old_files
from understudy.legacy import models as old_models
from understudy.legacy.agents import shared
from understudy.legacy.models import OldModel
from understudy.telemetry.text import complain

DEFAULT_MODEL = "local_training/models/rl_agent_model.npz"


def run_folder(model_path: Path) -> Path:
    """Beside the model: `models/rl_agent_model.npz` has `models/rl_agent_model.run`."""
    stem = model_path.stem if model_path.suffix == ".npz" else model_path.name
    return model_path.with_name(f"{stem}.run")


class RLAgent:
    """Decides, records rewards, and hands each match to the learner."""

    def __init__(
        self,
        learning_rate: float = 1e-3,
        gamma: float = 0.99,
        model_path: str | Path | None = None,
        *,
        state_dim: int = len(old_models.FEATURES),
        action_labels: Sequence[str] = old_models.ACTIONS,
        learner: Literal["process", "thread", "off"] = "process",
        config: Config | None = None,
        seed: int | None = None,
        mode: Mode = "learn",
        rules: str | None = None,
    ) -> None:
        """Open the run folder beside `model_path`, or make it, and start the learner.

        Agents of one process with one model path share one run and one learner: the first one's
        arguments count, and another `mode` is an error. `mode` and `rules` (a name for the rules,
        to be changed with them) are those of `Understudy.open`.
        """
        self.model_path = Path(DEFAULT_MODEL if model_path is None else model_path)
        self.learning_rate = learning_rate
        self.gamma = gamma
        self.action_labels = list(action_labels)
        self._shared = shared(
            run_folder(self.model_path),
            model_path=self.model_path,
            spec=old_models.spec(state_dim=state_dim, labels=action_labels),
            values={"learner.learning_rate": learning_rate, "learner.gamma": gamma},
            config=config,
            learner=learner,
            seed=seed,
            mode=mode,
            rules=rules,
        )
        self._matches = self._shared.add_agent()
        # A bot that drops its agent in the middle of a match keeps that match.
        self._leave = weakref.finalize(self, self._shared.remove_agent, self._matches)

    # --- playing -------------------------------------------------------------------------------

    def get_action(
        self,
        state: Sequence[float] | NDArray,
        training: bool = True,
        *,
        fallback: int | str | None = None,
    ) -> tuple[int, str, float]:
        """Decide: the action's number, its label and the probability that the policy gave it.

        `fallback` is the action of the rules, by number or label. The modes `shadow` and `auto`
        need it at every decision, mode `play` while there is no champion. Where the rules decide,
        their action is returned, with probability 1.

        With `training=False` it is the likeliest action of the policy, and nothing is learned from
        it: in mode `learn` alone. In mode `play` nothing ever is.
        """
        match = self._matches.current
        if training or self._shared.mind.mode == "play":
            index, probability = match.decide(state, fallback)
        else:
            index, probability = match.exploit(state)
        return index, self.action_labels[index], probability

    @property
    def role(self) -> PlayerRole | None:
        """Who was given the match under way (`Match.role`); None before its first decision."""
        return self._matches.current.role

    def update_reward(self, reward: float) -> None:
        """Add to the reward of the last decision; before the first one there is none to add to."""
        self._matches.current.reward(reward)

    def end_episode(
        self, final_reward: float = 0.0, save_experience: bool = True
    ) -> dict[str, float]:
        """Ends the match, keeps it and hands it to the learner.

        `loss` and `learning_rate` are those of the batch that made the version now playing; `loss`
        is 0 before the first. `epsilon` is the mean probability of all but the likeliest
        action. Like the old agent, this one learns from a match whatever `save_experience` says.
        """
        match, counters = self._matches.current, self._shared.counters
        match.reward(final_reward)
        outcome = Outcome.TIE
        if final_reward != 0.0:
            outcome = Outcome.VICTORY if final_reward > 0.0 else Outcome.DEFEAT
        match.finish(outcome)
        rewards, episode = match.rewards, counters.episodes
        if rewards:
            self._shared.count(match, self.gamma)
            self._matches.next(self._shared.mind)
        return {
            "episode": episode,
            "avg_reward": float(np.mean(rewards)) if rewards else 0.0,
            "episode_return": float(np.sum(rewards)),
            "loss": self._metric("loss", 0.0),
            "steps": len(rewards),
            "epsilon": counters.epsilon,
            "learning_rate": self._metric("learning_rate", self.learning_rate),
        }

    # --- files ---------------------------------------------------------------------------------

    def save_experience_data(self, path: str | Path) -> bool:
        """Write the present match, or else the last one, as an old experience file."""
        match = self._matches.current
        if not match.rewards:
            match = self._matches.finished
        if not match.rewards:
            complain(f"{path}: there is no decision to save yet")
            return False
        arrays = match.arrays()
        if not _written(Path(path), old_files.encode(arrays)):
            return False
        self._shared.remember_copy(arrays, Path(path))
        return True

    def train_from_batch(self, experiences: Sequence[Mapping[str, Any]]) -> dict[str, float]:
        """Hand old experience to the learner, which learns from it in its own process, once.

        Returned are the decisions (`steps`) and matches (`games`) that were handed over, how many
        were known already (`skipped`) or unusable (`rejected`), and as `loss` that of the learner's
        last batch: nothing was trained when this returns.
        """
        known = self._shared.imports.ids()
        steps = games = skipped = rejected = 0
        for index, experience in enumerate(experiences):
            name = f"train_from_batch[{index}]"
            try:
                arrays = {key: np.asarray(experience[key]) for key in old_files.ARRAYS}
                episode = self._shared.decode(arrays, name)
                if episode.meta.id in known:
                    skipped += 1
                    continue
                self._shared.put(episode, name)
            except (UnderstudyError, OSError, KeyError, ValueError) as error:
                complain(f"{name} cannot be learned from: {error}")
                rejected += 1
                continue
            known.add(episode.meta.id)
            steps, games = steps + len(episode), games + 1
        return {
            "loss": self._metric("loss", 0.0),
            "steps": steps,
            "games": games,
            "skipped": skipped,
            "rejected": rejected,
        }

    def save_model(self, path: str | Path | None = None) -> bool:
        """Write the newest policy (in mode `play` the champion) as an old model file. True: the
        file is there."""
        counters = self._shared.counters
        weights = self._shared.mind.policy.weights
        target = self.model_path if path is None else Path(path)
        model = OldModel(weights, counters.baseline, counters.episodes)
        return _written(target, old_models.encode(model))

    def get_stats(self) -> dict[str, Any]:
        """The statistics of the old agent, across restarts, and the version that plays."""
        counters = self._shared.counters
        recent = counters.recent
        return {
            "episode_count": counters.episodes,
            "total_reward": counters.total_reward,
            "baseline": counters.baseline,
            "avg_reward_last_10": sum(recent) / len(recent) if recent else 0.0,
            "buffer_size": len(self._matches.current.rewards),
            "total_steps": counters.steps,
            "epsilon": counters.epsilon,
            "version": self._shared.mind.version,
        }

    @property
    def episode_count(self) -> int:
        """Matches over all restarts."""
        return self._shared.counters.episodes

    @property
    def epsilon(self) -> float:
        """The mean probability of all but the likeliest action, in the last match."""
        return self._shared.counters.epsilon

    # --- ending --------------------------------------------------------------------------------

    def close(self) -> None:
        """Keep an unfinished match as aborted; the last agent stops the learner, once it is done.

        The end of the program does the same.
        """
        self._leave()
        self._shared.close(with_agents=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _metric(self, name: str, default: float) -> float:
        return self._shared.metrics().get(name, default)


def _written(path: Path, data: bytes) -> bool:
    try:
        files.make_folders(path.parent)
        files.write_atomic(path, data)
    except OSError as error:
        complain(f"{path} could not be written: {error}")
        return False
    return path.is_file()
