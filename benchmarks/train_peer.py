"""The trainer that people use today: sb3-contrib's RecurrentPPO with the network of preset `seed`.

    python benchmarks/train_peer.py --device cpu --sweep 1x512x64,8x64x256 [--sweep-minutes 5]

`train_throughput.py` starts it with the interpreter of `.venv-bench`. Starting points are written
as environments x steps of each x minibatch, with `+tf32` where a GPU may round products to TF32.
From the best of them it climbs (`peer_sweep.py`): sizes are doubled and halved, TF32 or the number
of threads is switched, until nothing gains more than 5% or the minutes are over. Prints one JSON
object per line: `measuring` before each configuration, then its figures or why there are none.

The environments are Gymnasium's in a `DummyVecEnv`, as a user of the peer has them. The
game costs nothing, so every second is the trainer's own. For every decision the 65 last frames of
the opponent are encoded anew: that is what this network is in the peer's hands.

Measured is at least one whole iteration: a rollout and all epochs over it. Before it comes a
minibatch of the same shape, on a GPU a rollout and an epoch, since the first allocates up to 100
GB. An iteration of 512 steps takes about two minutes on two cores; epochs are alike, so
`--measured-epochs 2` runs two of the ten and counts the others at the same pace. Shorter rollouts
would be no fair abbreviation: the peer pads the sequence that its shuffle cuts, which costs it 6%
at 1x512x64 and 25% at 1x128x64.

On a machine with PyTorch and without network, carry the rest (pure Python) in a folder:

    pip install --target .carry --no-deps stable-baselines3==2.9.2 sb3-contrib==2.9.2 \
        gymnasium==1.4.0 cloudpickle==3.1.2 farama-notifications==0.0.6
    PYTHONPATH=.carry python3 benchmarks/train_peer.py --device cuda
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import sys
import time
from typing import Any

import gymnasium  # type: ignore[import-not-found, unused-ignore]
import numpy as np
import sb3_contrib  # type: ignore[import-not-found]
import torch
from peer_sweep import Configuration, DoesNotFit, Row, Switches, climb, configurations, fastest
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor  # type: ignore[import-not-found]
from stable_baselines3.common.vec_env import DummyVecEnv  # type: ignore[import-not-found]

PLAYER, WINDOW, ACTIONS = 32, 65, 10
OBSERVED = 2 * PLAYER + WINDOW * PLAYER
"""Own and opponent's numbers now, then the opponent's over the window, oldest first."""
SWEEP = "1x512x64,8x64x256,16x64x1024"
TEN_MILLION = 10_000_000


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


def warm_up(chosen: Configuration, frames: np.ndarray, *, device: str) -> None:
    """One epoch of what will be measured; on a CPU, which compiles nothing, one minibatch."""
    if device == "cpu":
        chosen = chosen._replace(n_steps=min(chosen.n_steps, max(2, chosen.batch // chosen.envs)))
    trainer(chosen, frames, epochs=1, device=device).learn(chosen.steps)


def measure(
    chosen: Configuration, *, frames: np.ndarray, device: str, epochs: int, measured_epochs: int,
    seconds: float,
) -> Row:  # fmt: skip
    """Whole iterations until `seconds` have been spent.

    Raises:
        DoesNotFit: PyTorch could not allocate the memory.
    """
    gc.collect()  # the last trainer and its hook hold each other, and with them their memory
    if device == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    torch.set_float32_matmul_precision("high" if chosen.tf32 else "highest")
    if chosen.threads:
        torch.set_num_threads(chosen.threads)
    try:
        warm_up(chosen, frames, device=device)
        return _timed(
            trainer(chosen, frames, epochs=measured_epochs, device=device), chosen,
            device=device, epochs=epochs, measured_epochs=measured_epochs, seconds=seconds,
        )  # fmt: skip
    except (MemoryError, RuntimeError) as error:  # PyTorch's OutOfMemoryError is a RuntimeError
        if not _out_of_memory(error):
            raise
        raise DoesNotFit(". ".join(str(error).split(". ")[:2])) from None


def _out_of_memory(error: Exception) -> bool:
    kinds, words = (MemoryError, torch.OutOfMemoryError), ("can't allocate memory", "ALLOC_FAILED")
    return isinstance(error, kinds) or any(one in str(error) for one in words)


def _timed(
    model: Timed, chosen: Configuration, *, device: str, epochs: int, measured_epochs: int,
    seconds: float,
) -> Row:  # fmt: skip
    began, cpu_began, steps = time.perf_counter(), time.process_time(), 0
    while steps == 0 or time.perf_counter() - began < seconds:
        model.learn(chosen.steps, reset_num_timesteps=False)
        steps += chosen.steps
    took, cpu_s = time.perf_counter() - began, time.process_time() - cpu_began
    scale = epochs / measured_epochs
    unseen = (scale - 1.0) * model.update_s
    gradient_steps = round(model.gradient_steps * scale)
    return {
        "steps": steps,
        "seconds": took + unseen,
        "steps_s": steps / (took + unseen),
        "rollout_s": model.rollout_s,
        "update_s": model.update_s + unseen,
        "gradient_steps": gradient_steps,
        "gradient_steps_10m": round(gradient_steps / steps * TEN_MILLION),
        "epochs": epochs,
        "measured_epochs": measured_epochs,
        "cores_used": cpu_s / took,  # well below the threads: a neighbour took the processor
        "parameters": sum(one.numel() for one in model.policy.parameters()),
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
        "memory_gb": torch.cuda.max_memory_allocated() / 1e9 if device == "cuda" else None,
        "torch": torch.__version__,
        "sb3_contrib": sb3_contrib.__version__,
        "torch_threads": torch.get_num_threads(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--sweep", default=SWEEP, help="starting points (%(default)s)")
    parser.add_argument(
        "--sweep-minutes", type=float, default=0.0, help="climb for as long (0: starts alone)"
    )
    parser.add_argument("--seconds", type=float, default=0.0, help="at least one iteration")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--measured-epochs", type=int, help="run fewer, count all (default: all)")
    parser.add_argument("--match-frames", type=int, default=1350, help="length of a match")
    parser.add_argument(
        "--threads", type=int, help="on a CPU, and no others (default: one and all cores)"
    )
    arguments = parser.parse_args()
    sweep(arguments)


def sweep(arguments: argparse.Namespace) -> None:
    """Climbs, prints each row to stdout and progress to stderr."""
    on_gpu = arguments.device == "cuda"
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    threads = arguments.threads or (0 if on_gpu else cores or 1)
    starts = [one._replace(threads=threads) for one in configurations(arguments.sweep)]
    frames, began, rows = tape(arguments.match_frames), time.perf_counter(), list[Row]()
    limit_s = 60.0 * arguments.sweep_minutes

    def measured(point: Configuration) -> Row:
        print(json.dumps({"measuring": point._asdict()}), flush=True)
        return measure(
            point, frames=frames, device=arguments.device, epochs=arguments.epochs,
            measured_epochs=arguments.measured_epochs or arguments.epochs,
            seconds=arguments.seconds,
        )  # fmt: skip

    switches = Switches(
        tf32=(True, False) if on_gpu else (False,),
        threads=(threads,) if on_gpu or arguments.threads else (threads, 1),
    )
    for row in climb(starts, measured, switches=switches, seconds=limit_s):
        rows.append(row)
        print(json.dumps(row), flush=True)
        told = row.get("failed") or f"{row['steps_s']:,.2f} steps/s"
        best = fastest(rows)
        mark = ", best so far" if best is row else ""
        print(
            f"peer [{time.perf_counter() - began:4.0f} s, at most {limit_s:.0f} s and the starts] "
            f"{Configuration(*(row[name] for name in Configuration._fields))}: {told}{mark}",
            file=sys.stderr, flush=True,
        )  # fmt: skip


if __name__ == "__main__":
    main()
