"""The peer of `equal_time.py`: sb3-contrib's RecurrentPPO on our Gymnasium brawl, for a time.

    python benchmarks/equal_time_peer.py --out peer.npz --minutes 20 [--set lstm=256 ...]

`equal_time.py` starts it with the interpreter of `.venv-bench`. The budget is wall-clock time, or
with `--cpu-minutes` the processor time of this process alone, for a machine that others use too. It
saves the actor's weights (no pickle), and beside them as `.json` what it did. The peer is as it is
installed; ours are the environment, which steps all matches at once, and its notion of progress,
which schedules follow: a share of the budget.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import sb3_contrib  # type: ignore[import-not-found]
import torch
from equal_time_matches import Matches
from equal_time_player import ACTIVATIONS, PeerPlayer, load
from equal_time_vec_env import MatchesVecEnv, OneByOne
from stable_baselines3.common.callbacks import BaseCallback  # type: ignore[import-not-found]
from stable_baselines3.common.vec_env import VecEnv, VecNormalize  # type: ignore[import-not-found]

from understudy.core.arrays import to_npz
from understudy.core.files import write_atomic
from understudy.core.ops import NUMPY

NEAR = 1e-3
"""How far our forward may be from PyTorch's, in log-probability: rounding over 400 frames made up
to 2e-4, and a wrong gate makes whole units."""


@dataclass(frozen=True)
class Settings:
    """What is chosen for the peer; the defaults are the best that a small search found.

    Compared on seed 501, at equal processor time. After 60 s: 256 environments x 32 steps as below,
    491,000 steps and a mean reward of -0.17 a match; with a second LSTM for the critic, tanh, 1e-3
    and minibatches of 2048, 344,000 and -2.2; the same with 512 environments and 4096, 426,000 and
    -0.8. After 90 s: 128 x 128 with two LSTMs, 295,000 steps at 3e-4 and at 1e-3, 15% and 11% of
    matches won against `constant`, where the first wins 98%. Long rollouts of few environments are
    slow because a match that begins within a minibatch makes the peer go through it frame by frame.
    Not compared: the falling learning rate, gamma, entropy, larger LSTMs. One seed, minutes long.
    """

    envs: int = 256
    n_steps: int = 32
    batch_size: int = 1024
    n_epochs: int = 4
    learning_rate: float = 7e-4
    schedule: str = "linear"
    """Of the learning rate: constant, or linear, to nothing at the end of the budget."""
    gamma: float = 0.997
    gae_lambda: float = 0.95
    clip_range: float = 0.2
    ent_coef: float = 0.005
    vf_coef: float = 0.5
    max_grad_norm: float = 0.5
    lstm: int = 128
    layers: str = "64"
    """Of actor and critic after the LSTM, such as 64x64."""
    activation: str = "relu"
    critic_lstm: bool = False
    normalise_reward: bool = False
    threads: int = 2
    dummy: bool = False
    """One `GameEnv` after the other, for comparison."""


class Budgeted(sb3_contrib.RecurrentPPO):  # type: ignore[misc]
    """The peer as it is; how far it has come is a share of the budget instead of steps."""

    share: Callable[[], float]
    rollout_s = 0.0

    def _update_current_progress_remaining(self, num_timesteps: int, total: int) -> None:
        self._current_progress_remaining = max(0.0, 1.0 - self.share())

    def collect_rollouts(self, *args: Any, **kwargs: Any) -> bool:
        began = time.perf_counter()
        going_on = bool(super().collect_rollouts(*args, **kwargs))
        self.rollout_s += time.perf_counter() - began
        return going_on


class Budget:
    """Seconds of the clock, or of this process on the processors."""

    def __init__(self, seconds: float, *, cpu: bool) -> None:
        self.seconds, self.cpu = seconds, cpu
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    @property
    def wall_s(self) -> float:
        return time.perf_counter() - self._wall

    @property
    def cpu_s(self) -> float:
        return time.process_time() - self._cpu

    def share(self) -> float:
        return (self.cpu_s if self.cpu else self.wall_s) / self.seconds


class Keeper(BaseCallback):  # type: ignore[misc]
    """Stops at the end of the budget; logs and saves along the way."""

    def __init__(self, budget: Budget, game: MatchesVecEnv, out: Path, points: int) -> None:
        super().__init__()
        self._budget, self._game, self._out, self._points = budget, game, out, points
        self._shown = 0
        self.curve: list[dict[str, object]] = []

    def _on_step(self) -> bool:
        return self._budget.share() < 1.0

    def _on_rollout_end(self) -> None:
        point = int(self._budget.share() * self._points)
        if point <= self._shown:
            return
        self._shown = point
        won = {
            name: round(float(np.mean([score > 0 for score in scores])), 3) if scores else None
            for name, scores in self._game.recent.items()
        }
        self.curve.append(
            {
                "share": round(self._budget.share(), 4),
                "wall_s": round(self._budget.wall_s, 1),
                "cpu_s": round(self._budget.cpu_s, 1),
                "steps": self.num_timesteps,
                "matches": self._game.ended,
                "returned": round(float(np.mean(self._game.returns or [0.0])), 3),
                "won": won,
            }
        )
        print(json.dumps(self.curve[-1]), file=sys.stderr, flush=True)
        save(self._out.with_name(f"{self._out.stem}-{point:03}.npz"), self.model.policy)


def trainer(chosen: Settings, budget: Budget, seed: int) -> tuple[Budgeted, MatchesVecEnv]:
    """RecurrentPPO with the settings, and the matches that it plays."""
    game = MatchesVecEnv(Matches(chosen.envs, seed=seed), chosen.envs)
    env: VecEnv = OneByOne(chosen.envs, game) if chosen.dummy else game
    if chosen.normalise_reward:
        env = VecNormalize(env, norm_obs=False, norm_reward=True, gamma=chosen.gamma)
    rate = chosen.learning_rate
    layers = [int(width) for width in chosen.layers.split("x") if width]
    kind = {"tanh": torch.nn.Tanh, "relu": torch.nn.ReLU}[chosen.activation]
    model = Budgeted(
        "MlpLstmPolicy", env, n_steps=chosen.n_steps, batch_size=chosen.batch_size,
        n_epochs=chosen.n_epochs, gamma=chosen.gamma, gae_lambda=chosen.gae_lambda,
        learning_rate=rate if chosen.schedule == "constant" else lambda left: rate * left,
        clip_range=chosen.clip_range, ent_coef=chosen.ent_coef, vf_coef=chosen.vf_coef,
        max_grad_norm=chosen.max_grad_norm, seed=seed, device="cpu",
        policy_kwargs={
            "lstm_hidden_size": chosen.lstm, "net_arch": {"pi": layers, "vf": layers},
            "activation_fn": kind, "enable_critic_lstm": chosen.critic_lstm,
        },
    )  # fmt: skip
    model.share = budget.share
    return model, game


def save(path: Path, policy: Any) -> None:
    """The actor: what `equal_time_player.PeerPlayer` reads."""
    lstm = policy.lstm_actor
    layers = [one for one in policy.mlp_extractor.policy_net if isinstance(one, torch.nn.Linear)]
    arrays = {
        "lstm.input": lstm.weight_ih_l0.T,
        "lstm.hidden": lstm.weight_hh_l0.T,
        "lstm.b": lstm.bias_ih_l0 + lstm.bias_hh_l0,
        "action.w": policy.action_net.weight.T,
        "action.b": policy.action_net.bias,
    }
    for index, layer in enumerate(layers):
        arrays |= {f"mlp.{index}.w": layer.weight.T, f"mlp.{index}.b": layer.bias}
    kind = ACTIVATIONS[int(policy.activation_fn is torch.nn.ReLU)]
    plain = {name: array.detach().numpy().astype(np.float32) for name, array in arrays.items()}
    write_atomic(path, to_npz(plain | {"activation": np.array(kind)}))


def disagreement(policy: Any, player: PeerPlayer, *, matches: int = 64, frames: int = 400) -> float:
    """The largest difference in log-probability from PyTorch's, each with its own memory.

    On real observations: the policy plays its own matches, by draws, so that all it does is seen.
    """
    played = Matches(matches, seed=0)
    obs, starts = played.reset(), np.ones(matches, np.float32)
    shape = (1, matches, policy.lstm_hidden_state_shape[-1])
    states = (torch.zeros(shape), torch.zeros(shape))
    memory, worst = player.memory(NUMPY, matches), 0.0
    with torch.no_grad():
        for _ in range(frames):
            distribution, states = policy.get_distribution(
                torch.as_tensor(obs), states, torch.as_tensor(starts)
            )
            memory = tuple(part * (1 - starts)[:, None] for part in memory)
            logits, memory = player.logits(NUMPY, player.weights, obs, memory)
            top = logits.max(1, keepdims=True)
            ours = logits - top - np.log(np.exp(logits - top).sum(1, keepdims=True))
            worst = max(worst, float(np.abs(ours - distribution.distribution.logits.numpy()).max()))
            obs, _, over, _ = played.step(distribution.get_actions().numpy())
            starts = over.astype(np.float32)
    return worst


def run(chosen: Settings, budget: Budget, *, seed: int, out: Path, points: int) -> dict[str, Any]:
    """Train for the budget, save, check what was saved; how it went."""
    torch.set_num_threads(chosen.threads)
    model, game = trainer(chosen, budget, seed)
    keeper = Keeper(budget, game, out, points)
    model.learn(10**12, callback=keeper, log_interval=10**9)
    wall_s, cpu_s = budget.wall_s, budget.cpu_s
    save(out, model.policy)
    worst = disagreement(model.policy, load(out, game._matches.game.actions))
    if worst > NEAR:
        raise SystemExit(f"{out}: our forward is {worst:.1e} from PyTorch's, expected {NEAR}")
    return {
        "settings": asdict(chosen),
        "seed": seed,
        "budget_s": budget.seconds,
        "budget_of": "cpu" if budget.cpu else "wall",
        "wall_s": round(wall_s, 1),
        "cpu_s": round(cpu_s, 1),
        "cores_used": round(cpu_s / wall_s, 3),
        "rollout_s": round(model.rollout_s, 1),
        "steps": model.num_timesteps,
        "matches": game.ended,
        "parameters": sum(one.numel() for one in model.policy.parameters()),
        "disagreement": worst,
        "torch": torch.__version__,
        "sb3_contrib": sb3_contrib.__version__,
        "curve": keeper.curve,
    }


def with_values(chosen: Settings, values: Sequence[str]) -> Settings:
    """Settings changed by `key=value`."""
    kinds = {field.name: type(getattr(chosen, field.name)) for field in fields(chosen)}
    changed: dict[str, Any] = {}
    for one in values:
        key, _, text = one.partition("=")
        if key not in kinds:
            raise SystemExit(f"--set: expected one of {', '.join(kinds)}; got {key!r}")
        changed[key] = text.lower() == "true" if kinds[key] is bool else kinds[key](text)
    return replace(chosen, **changed)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="where the .npz goes")
    budgets = parser.add_mutually_exclusive_group(required=True)
    budgets.add_argument("--minutes", type=float, help="by the clock")
    budgets.add_argument("--cpu-minutes", type=float, help="of all threads of this process")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--points", type=int, default=40, help="lines of log, and checkpoints")
    arguments = parser.parse_args()
    minutes = arguments.cpu_minutes or arguments.minutes
    budget = Budget(60.0 * minutes, cpu=arguments.cpu_minutes is not None)
    chosen = with_values(Settings(), arguments.set)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    told = run(chosen, budget, seed=arguments.seed, out=arguments.out, points=arguments.points)
    write_atomic(arguments.out.with_suffix(".json"), json.dumps(told, indent=1).encode())
    print(json.dumps(told))


if __name__ == "__main__":
    main()
