"""The old StarCraft II bot's `RLAgent`, on top of `Understudy`: change one import, and it learns.

    from understudy.legacy.rl_agent import RLAgent

    agent = RLAgent(model_path="local_training/models/rl_agent_model.npz")
    index, label, probability = agent.get_action(state)
    agent.update_reward(0.1)                         # belongs to the decision before it
    agent.end_episode(final_reward=10.0)             # above 0: victory, below: defeat, 0: tie

All that it learns lives in a run folder beside the model file (`rl_agent_model.run/`); a model file
that is there before the run folder becomes its first version. The agent learns by playing, in mode
`learn`, while a learner works in another process. docs/coming-over.md says what became of what.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import numpy as np

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
    """Decides, remembers what came of it, and hands each match to the learner."""

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
    ) -> None:
        """Open the run folder beside `model_path`, or make it, and start the learner.

        Agents of one process with one model path share one run and one learner: the first one's
        arguments count.
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
        )
        self._seat = self._shared.sit_down()
        # A bot that drops its agent in the middle of a match keeps that match.
        self._stand_up = weakref.finalize(self, self._shared.stand_up, self._seat)

    # --- playing -------------------------------------------------------------------------------

    def get_action(
        self, state: Sequence[float] | NDArray, training: bool = True
    ) -> tuple[int, str, float]:
        """Decide: the action's number, its label and the probability that the policy gave it.

        With `training=False` it is the likeliest action, and nothing is learned from it.
        """
        play = self._seat.play
        index, probability = play.explore(state) if training else play.exploit(state)
        return index, self.action_labels[index], probability

    def update_reward(self, reward: float) -> None:
        """Add to the reward of the last decision; before the first one there is none to add to."""
        self._seat.play.reward(reward)

    def end_episode(
        self, final_reward: float = 0.0, save_experience: bool = True
    ) -> dict[str, float]:
        """The match is over: keep it, and hand it to the learner.

        `loss` and `learning_rate` are those of the batch that made the version now playing; `loss`
        is 0 before the first. `epsilon` is how often the policy does something else than its
        favourite. The agent of old learned from a match whatever `save_experience` said, and so
        does this one.
        """
        play, counted = self._seat.play, self._shared.counted
        play.reward(final_reward)
        outcome = Outcome.TIE
        if final_reward != 0.0:
            outcome = Outcome.VICTORY if final_reward > 0.0 else Outcome.DEFEAT
        play.finish(outcome)
        rewards, episode = play.rewards, counted.episodes
        if rewards:
            self._shared.count(play, self.gamma)
            self._seat.next(self._shared.mind)
        return {
            "episode": episode,
            "avg_reward": float(np.mean(rewards)) if rewards else 0.0,
            "episode_return": float(np.sum(rewards)),
            "loss": self._metric("loss", 0.0),
            "steps": len(rewards),
            "epsilon": counted.epsilon,
            "learning_rate": self._metric("learning_rate", self.learning_rate),
        }

    # --- files ---------------------------------------------------------------------------------

    def save_experience_data(self, path: str | Path) -> bool:
        """Write the present match, or else the last one, as an old experience file."""
        seat = self._seat
        play = seat.play if seat.play.rewards else seat.finished
        if not play.rewards:
            complain(f"{path}: there is no decision to save yet")
            return False
        arrays = play.arrays()
        if not _written(Path(path), old_files.encode(arrays)):
            return False
        # This run has the match itself, with its log-probabilities: nobody shall import the copy.
        self._shared.imports.add(old_files.identify(arrays), Path(path).name)
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
        """Write the policy that plays now as an old model file. True: the file is there."""
        counted = self._shared.counted
        weights = self._shared.mind.policy.weights
        target = self.model_path if path is None else Path(path)
        model = OldModel(weights, counted.baseline, counted.episodes)
        return _written(target, old_models.encode(model))

    def get_stats(self) -> dict[str, Any]:
        """What the agent of old told of itself, over all restarts, and the version that plays."""
        counted = self._shared.counted
        recent = counted.recent
        return {
            "episode_count": counted.episodes,
            "total_reward": counted.total_reward,
            "baseline": counted.baseline,
            "avg_reward_last_10": sum(recent) / len(recent) if recent else 0.0,
            "buffer_size": len(self._seat.play.rewards),
            "total_steps": counted.steps,
            "epsilon": counted.epsilon,
            "version": self._shared.mind.version,
        }

    @property
    def episode_count(self) -> int:
        """Matches over all restarts."""
        return self._shared.counted.episodes

    @property
    def epsilon(self) -> float:
        """How often the policy does something else than its favourite, as of the last match."""
        return self._shared.counted.epsilon

    # --- ending --------------------------------------------------------------------------------

    def close(self) -> None:
        """Keep an unfinished match as aborted; the last agent stops the learner, once it is done.

        The end of the program does the same.
        """
        self._stand_up()
        self._shared.close(whoever_plays=False)

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
