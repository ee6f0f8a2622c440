"""The trainer that people use today: sb3-contrib's RecurrentPPO with the network of preset `seed`.

    python benchmarks/train_peer.py --device cpu --sweep 1x512x64,8x64x256

`train_throughput.py` starts it with the interpreter of `.venv-bench`. Prints one JSON object per
line for each configuration of the sweep, written as environments x steps of each x minibatch. The
game costs nothing, so every second is the trainer's own. For every decision the 65 last frames of
the opponent are encoded anew: that is what this network is in the peer's hands.

Measured is at least one whole iteration: a rollout and all epochs over it. An iteration of 512
steps takes about two minutes on two cores; epochs are alike, so `--measured-epochs 2` runs two of
the ten and counts the others at the same pace. Shorter rollouts would be no fair abbreviation: the
peer pads the sequence that its shuffle cuts, which costs it 6% at 1x512x64 and 25% at 1x128x64.

On a machine with PyTorch and without network, carry the rest (pure Python) in a folder:

    pip install --target .carry --no-deps stable-baselines3==2.9.2 sb3-contrib==2.9.2 \
        gymnasium==1.4.0 cloudpickle==3.1.2 farama-notifications==0.0.6
    PYTHONPATH=.carry python3 benchmarks/train_peer.py --device cuda
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import gymnasium  # type: ignore[import-not-found, unused-ignore]
import numpy as np
import sb3_contrib  # type: ignore[import-not-found]
import torch
from stable_baselines3.common.torch_layers import (  # type: ignore[import-not-found]
    BaseFeaturesExtractor,
)
from stable_baselines3.common.vec_env import DummyVecEnv  # type: ignore[import-not-found]

PLAYER, WINDOW, ACTIONS = 32, 65, 10
OBSERVED = 2 * PLAYER + WINDOW * PLAYER
"""Own and opponent's numbers now, then the opponent's over the window, oldest first."""
SWEEP = "1x512x64,8x64x256,16x64x1024"


class Configuration(NamedTuple):
    """How the peer is run: what its users turn to make it faster."""

    envs: int
    n_steps: int
    batch: int


class FreeGame(gymnasium.Env):  # type: ignore[misc, unused-ignore]
    """Looks its observations up: what is left is the cost of training."""

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (OBSERVED,), np.float32)
    action_space = gymnasium.spaces.Discrete(ACTIONS)

    def __init__(self, tape: np.ndarray, began: int) -> None:
        self._tape, self._frame = tape, began

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self._frame %= len(self._tape) - 1  # the first match begins where it was told to
        return self._tape[self._frame], {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self._frame += 1
        over = self._frame == len(self._tape) - 1
        return self._tape[self._frame], 0.01 * float(action), over, False, {}


def tape(match_frames: int) -> np.ndarray:
    """One match as it is observed: [match_frames + 1, OBSERVED]; before it, the first frame."""
    rng = np.random.default_rng(0)
    own, other = rng.uniform(-1, 1, (2, match_frames + 1, PLAYER)).astype(np.float32)
    padded = np.concatenate([np.repeat(other[:1], WINDOW - 1, 0), other])
    windows = np.lib.stride_tricks.sliding_window_view(padded, WINDOW, 0).swapaxes(1, 2)
    return np.concatenate([own, other, windows.reshape(len(own), -1)], 1)


class StrategyEncoder(BaseFeaturesExtractor):  # type: ignore[misc]
    """The 65 frames of the opponent to 256 numbers, joined with both players as they are now."""

    def __init__(
        self, space: gymnasium.spaces.Box, width: int = 256, heads: int = 8, layers: int = 6
    ) -> None:
        super().__init__(space, features_dim=width + 2 * PLAYER)
        self.embed = torch.nn.Sequential(
            torch.nn.Linear(PLAYER, width), torch.nn.LayerNorm(width), torch.nn.ReLU()
        )
        self.register_buffer("positions", _sinusoids(WINDOW, width))
        layer = torch.nn.TransformerEncoderLayer(
            width, heads, dim_feedforward=4 * width, dropout=0.0, batch_first=True
        )
        self.encoder = torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.score = torch.nn.Sequential(
            torch.nn.Linear(width, width // 2), torch.nn.Tanh(), torch.nn.Linear(width // 2, 1)
        )
        self.refine = torch.nn.Sequential(
            torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, width)
        )

    def forward(self, observed: torch.Tensor) -> torch.Tensor:
        """observed [B, OBSERVED] to [B, 256 + 64]."""
        now, history = observed[:, : 2 * PLAYER], observed[:, 2 * PLAYER :]
        frames = self.embed(history.reshape(-1, WINDOW, PLAYER)) + self.positions
        frames = self.encoder(frames)
        pooled = (torch.softmax(self.score(frames), 1) * frames).sum(1)
        return torch.cat([now, self.refine(pooled)], 1)


def _sinusoids(length: int, width: int) -> torch.Tensor:
    angles = torch.arange(length)[:, None] * torch.exp(
        torch.arange(0, width, 2) * (-math.log(10_000.0) / width)
    )
    return torch.stack([torch.sin(angles), torch.cos(angles)], -1).reshape(length, width)


class Timed(sb3_contrib.RecurrentPPO):  # type: ignore[misc]
    """The peer as it is, with a clock around its two halves and a count of gradient steps."""

    rollout_s = update_s = 0.0
    gradient_steps = 0

    def collect_rollouts(self, *args: Any, **kwargs: Any) -> bool:
        began = self._now()
        going_on = bool(super().collect_rollouts(*args, **kwargs))
        self.rollout_s += self._now() - began
        return going_on

    def train(self) -> None:
        began = self._now()
        super().train()
        self.update_s += self._now() - began

    def count(self, *_: object) -> None:
        self.gradient_steps += 1

    def _now(self) -> float:
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()


def trainer(chosen: Configuration, frames: np.ndarray, *, epochs: int, device: str) -> Timed:
    """RecurrentPPO with the seed's hyper-parameters; matches of the environments are staggered."""
    starts = [index * (len(frames) - 1) // chosen.envs for index in range(chosen.envs)]
    model = Timed(
        "MlpLstmPolicy",
        DummyVecEnv([lambda began=began: FreeGame(frames, began) for began in starts]),
        n_steps=chosen.n_steps, batch_size=chosen.batch, n_epochs=epochs, learning_rate=2.5e-4,
        clip_range=0.2, gamma=0.99, gae_lambda=0.95, ent_coef=0.01, max_grad_norm=0.5,
        target_kl=None, device=device, seed=0,
        policy_kwargs={
            "features_extractor_class": StrategyEncoder, "net_arch": [96, 96],
            "lstm_hidden_size": 512, "shared_lstm": True, "enable_critic_lstm": False,
        },
    )  # fmt: skip
    model.policy.optimizer.register_step_post_hook(model.count)
    return model


def measure(
    chosen: Configuration, *, frames: np.ndarray, device: str, epochs: int, measured_epochs: int,
    seconds: float,
) -> dict[str, object]:  # fmt: skip
    """Whole iterations until `seconds` have been spent, after one minibatch of the same shape."""
    short = chosen._replace(n_steps=min(chosen.n_steps, max(2, chosen.batch // chosen.envs)))
    trainer(short, frames, epochs=1, device=device).learn(short.envs * short.n_steps)
    model = trainer(chosen, frames, epochs=measured_epochs, device=device)
    began, cpu_began, steps = time.perf_counter(), time.process_time(), 0
    while steps == 0 or time.perf_counter() - began < seconds:
        model.learn(chosen.envs * chosen.n_steps, reset_num_timesteps=False)
        steps += chosen.envs * chosen.n_steps
    took, cpu_s = time.perf_counter() - began, time.process_time() - cpu_began
    scale = epochs / measured_epochs
    unseen = (scale - 1.0) * model.update_s
    return {
        **chosen._asdict(),
        "steps": steps,
        "seconds": took + unseen,
        "steps_s": steps / (took + unseen),
        "rollout_s": model.rollout_s,
        "update_s": model.update_s + unseen,
        "gradient_steps": round(model.gradient_steps * scale),
        "epochs": epochs,
        "measured_epochs": measured_epochs,
        "cores_used": cpu_s / took,  # well below the threads: a neighbour took the processor
        "parameters": sum(one.numel() for one in model.policy.parameters()),
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
        "torch": torch.__version__,
        "sb3_contrib": sb3_contrib.__version__,
        "threads": torch.get_num_threads(),
    }


def configurations(sweep: str) -> Iterator[Configuration]:
    """`1x512x64,8x64x256` as configurations."""
    for one in sweep.split(","):
        parts = one.strip().split("x")
        if len(parts) != 3 or not all(part.isdecimal() and int(part) for part in parts):
            raise SystemExit(f"--sweep: expected ENVSxSTEPSxBATCH, got {one!r}")
        yield Configuration(*map(int, parts))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--sweep", default=SWEEP, help="envs x steps x batch, ... (%(default)s)")
    parser.add_argument("--seconds", type=float, default=0.0, help="at least one iteration")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--measured-epochs", type=int, help="run fewer, count all (default: all)")
    parser.add_argument("--match-frames", type=int, default=1350, help="length of a match")
    parser.add_argument("--threads", type=int, help="maths threads (default: PyTorch's choice)")
    arguments = parser.parse_args()
    chosen = list(configurations(arguments.sweep))
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    frames = tape(arguments.match_frames)
    for one in chosen:
        figures = measure(
            one, frames=frames, device=arguments.device, epochs=arguments.epochs,
            measured_epochs=arguments.measured_epochs or arguments.epochs,
            seconds=arguments.seconds,
        )  # fmt: skip
        print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
