"""One library's replay buffer, filled with a million entries and timed on demand.

    python benchmarks/replay_peer.py {understudy,torchrl,stable-baselines3} [--entries N]

`replay.py` starts one process of it for each library, with the interpreter of `.venv-bench` and one
maths thread. It says what it is and what it can time, then answers each line of JSON
(`kind`, `batch`, `seconds`) with the microseconds of processor time that each batch took.

An entry is what a value-based learner holds: observation and next observation (28 float32 each),
action (int32), reward and done (float32). Timed is a whole batch as a learner needs it: sampled,
gathered into contiguous arrays, and, where prioritised, given its new priorities.

TorchRL 0.14.1's library was compiled for torch 2.14. With 2.13.0, the CPU build that the other
peers run on, one function is missing that is no part of its replay buffers; loading symbols when
they are first called is enough, and `check` makes sure that it samples by priority.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from typing import Any, NamedTuple

import numpy as np

FEATURES = 28
ALPHA, BETA = 0.6, 0.4
CHUNK = 10_000

Batch = dict[str, np.ndarray]


class Kind(NamedTuple):
    """What is timed, and what it is given, which is made ready before the clock starts."""

    ready: Callable[[int], Any]
    run: Callable[[int, Any], object]


def entries(count: int) -> Iterator[tuple[Batch, np.ndarray]]:
    """Random entries and their priorities, a chunk at a time, the same for every library."""
    rng = np.random.default_rng(0)
    for begin in range(0, count, CHUNK):
        size = min(CHUNK, count - begin)
        yield (
            {
                "observation": rng.random((size, FEATURES), np.float32),
                "action": rng.integers(5, size=size, dtype=np.int32),
                "reward": rng.random(size, np.float32),
                "done": np.zeros(size, np.float32),
                "next_observation": rng.random((size, FEATURES), np.float32),
            },
            rng.random(size, np.float32),
        )


def understudy(count: int) -> dict[str, Kind]:
    """Ours: `Replay` and `SlotColumns`; and gathering alone, to know its share."""
    from understudy.experience.replay import Replay, SlotColumns

    rng = np.random.default_rng(1)
    first, _ = next(entries(CHUNK))
    columns = SlotColumns(count, {key: (one.shape[1:], one.dtype) for key, one in first.items()})
    uniform = Replay(capacity=count)
    prioritised = Replay(capacity=count, priority="prioritised", alpha=ALPHA, beta=BETA)
    for chunk, priorities in entries(count):
        prioritised.insert(len(priorities), now=0.0, priorities=priorities)
        columns.put(uniform.insert(len(priorities), now=0.0), chunk)

    def gather(slots: np.ndarray) -> Batch:
        return {key: np.ascontiguousarray(one) for key, one in columns.take(slots).items()}

    def by_priority(size: int, priorities: np.ndarray) -> tuple[Batch, np.ndarray]:
        sample = prioritised.sample(rng, size, now=0.0)
        batch = gather(sample.slots)
        prioritised.reprioritise(sample.slots, priorities)
        return batch, sample.weights

    check(
        lambda size: prioritised.sample(rng, size, now=0.0).slots, prioritised.reprioritise, count
    )
    return {
        "prioritised": Kind(lambda size: rng.random(size, np.float32), by_priority),
        "uniform": Kind(_nothing, lambda size, _: gather(uniform.sample(rng, size, now=0.0).slots)),
        "gather": Kind(lambda size: rng.integers(count, size=size), lambda _, slots: gather(slots)),
    }


def torchrl(count: int) -> dict[str, Kind]:
    """TorchRL: its prioritised buffers over `LazyTensorStorage`, in all three forms."""
    if hasattr(sys, "setdlopenflags"):
        sys.setdlopenflags(os.RTLD_LAZY)  # see above
    os.environ.setdefault("RL_LOGGING_LEVEL", "WARNING")
    import torch
    from tensordict import TensorDict  # type: ignore[import-not-found]
    from torchrl.data import (  # type: ignore[import-not-found]
        LazyTensorStorage,
        PrioritizedReplayBuffer,
        TensorDictPrioritizedReplayBuffer,
    )

    torch.set_num_threads(1)
    torch.manual_seed(1)

    def filled(make: Callable[..., Any], form: Callable[[dict[str, torch.Tensor]], object]) -> Any:
        buffer = make(alpha=ALPHA, beta=BETA, storage=LazyTensorStorage(count))
        for chunk, priorities in entries(count):
            added = buffer.extend(form({key: torch.from_numpy(one) for key, one in chunk.items()}))
            buffer.update_priority(added, torch.from_numpy(priorities))
        return buffer

    def tensor_dict(columns: dict[str, torch.Tensor]) -> TensorDict:
        return TensorDict(columns, [len(columns["reward"])])

    def plain(buffer: Any) -> Kind:
        def by_priority(size: int, priorities: torch.Tensor) -> object:
            batch, info = buffer.sample(size, return_info=True)
            buffer.update_priority(info["index"], priorities)
            return batch, info

        def draw(size: int) -> np.ndarray:
            return np.asarray(buffer.sample(size, return_info=True)[1]["index"])

        def reprioritise(slots: np.ndarray, priorities: np.ndarray) -> None:
            buffer.update_priority(torch.from_numpy(slots), torch.from_numpy(priorities))

        check(draw, reprioritise, count)
        return Kind(torch.rand, by_priority)

    whole = filled(TensorDictPrioritizedReplayBuffer, tensor_dict)

    def all_in_one(size: int, priorities: torch.Tensor) -> object:
        batch = whole.sample(size)
        batch["td_error"] = priorities
        whole.update_tensordict_priority(batch)
        return batch

    return {
        "prioritised, dict": plain(filled(PrioritizedReplayBuffer, dict)),
        "prioritised, TensorDict": plain(filled(PrioritizedReplayBuffer, tensor_dict)),
        "prioritised, TensorDict buffer": Kind(torch.rand, all_in_one),
    }


def stable_baselines3(count: int) -> dict[str, Kind]:
    """stable-baselines3: `ReplayBuffer.sample`, without its bookkeeping of time limits."""
    import torch
    from gymnasium import spaces
    from stable_baselines3.common.buffers import ReplayBuffer  # type: ignore[import-not-found]

    torch.set_num_threads(1)
    np.random.seed(1)  # what it draws from
    seen = spaces.Box(-1.0, 1.0, (FEATURES,), np.float32)
    buffer = ReplayBuffer(
        count, seen, spaces.Discrete(5), device="cpu", handle_timeout_termination=False
    )
    begin = 0
    for chunk, priorities in entries(count):  # row by row `add` would take a minute for the same
        end = begin + len(priorities)
        buffer.observations[begin:end, 0] = chunk["observation"]
        buffer.next_observations[begin:end, 0] = chunk["next_observation"]
        buffer.actions[begin:end, 0, 0] = chunk["action"]
        buffer.rewards[begin:end, 0] = chunk["reward"]
        begin = end
    buffer.full = True
    return {"uniform": Kind(_nothing, lambda size, _: buffer.sample(size))}


def check(
    draw: Callable[[int], np.ndarray],
    reprioritise: Callable[[np.ndarray, np.ndarray], None],
    count: int,
) -> None:
    """A buffer that does not sample by priority ** alpha is not worth timing."""
    everything, few = np.arange(count), np.arange(0, count, 100)
    reprioritise(everything, np.full(count, 1e-3, np.float32))
    reprioritise(few, np.full(len(few), 2.0, np.float32))
    expected = len(few) * 2.0**ALPHA
    expected /= expected + (count - len(few)) * 1e-3**ALPHA
    share = float((draw(20_000) % 100 == 0).mean())
    if abs(share - expected) > 0.02:
        sys.exit(f"samples do not follow priorities: {share:.3f}, expected {expected:.3f}")
    for begin in range(0, count, CHUNK):
        chunk = everything[begin : begin + CHUNK]
        reprioritise(chunk, np.random.default_rng(begin).random(len(chunk), np.float32))


def timed(kind: Kind, size: int, seconds: float) -> list[float]:
    """Microseconds of processor time of each batch, for so long and for 20 batches at least."""
    took: list[float] = []
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline or len(took) < 20:
        given = kind.ready(size)
        began = time.process_time_ns()
        kept = kind.run(size, given)
        took.append((time.process_time_ns() - began) / 1e3)
        del kept  # freeing it is not timed
    return took


def _nothing(_: int) -> None:
    return None


LIBRARIES = {
    "understudy": (understudy, ("numpy",)),
    "torchrl": (torchrl, ("torchrl", "tensordict", "torch")),
    "stable-baselines3": (stable_baselines3, ("stable-baselines3", "torch")),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("library", choices=LIBRARIES)
    parser.add_argument("--entries", type=int, default=1_000_000)
    arguments = parser.parse_args()
    make, packages = LIBRARIES[arguments.library]
    kinds = make(arguments.entries)
    names = [f"{name} {metadata.version(name)}" for name in packages]
    print(json.dumps({"what": ", ".join(names), "kinds": list(kinds)}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        took = timed(kinds[asked["kind"]], asked["batch"], asked["seconds"])
        print(json.dumps(took), flush=True)


if __name__ == "__main__":
    main()
