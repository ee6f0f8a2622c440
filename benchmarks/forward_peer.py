"""One network, one process, two engines: our NumPy forward beside PyTorch's eager one.

Runs inside `.venv-bench`; `decision_latency.py` starts it. Prints one JSON object.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import numpy as np
import torch

from understudy.core.ops import NUMPY
from understudy.core.spaces import Discrete
from understudy.policy.mlp import Mlp
from understudy.policy.policy import untrained
from understudy.policy.spec import PolicySpec

ROUNDS, CALLS = 20, 2000


class Peer(torch.nn.Module):  # type: ignore[misc]
    """The same network, as one would write it in PyTorch."""

    def __init__(self, params: dict[str, np.ndarray]) -> None:
        super().__init__()
        self.policy = _tower(params, "trunk", "policy")
        self.value = _tower(params, "critic", "value")

    def forward(self, obs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.policy(obs), self.value(obs)[..., 0]


def _tower(params: dict[str, np.ndarray], trunk: str, head: str) -> torch.nn.Sequential:
    return torch.nn.Sequential(
        _linear(params, f"{trunk}.0"),
        torch.nn.ReLU(),
        _linear(params, f"{trunk}.1"),
        torch.nn.ReLU(),
        _linear(params, head),
    )


def _linear(params: dict[str, np.ndarray], name: str) -> torch.nn.Linear:
    weight = torch.from_numpy(np.ascontiguousarray(params[f"{name}.w"].T))
    layer = torch.nn.Linear(weight.shape[1], weight.shape[0])
    layer.load_state_dict({"weight": weight, "bias": torch.from_numpy(params[f"{name}.b"])})
    return layer


def _median_us(call: Callable[[], object]) -> float:
    took = np.empty(CALLS)
    for index in range(CALLS):
        began = time.perf_counter_ns()
        call()
        took[index] = time.perf_counter_ns() - began
    return float(np.median(took)) / 1e3


def main() -> None:
    torch.set_num_threads(1)  # faster than two for a network this small
    spec = PolicySpec(tuple(f"f{i}" for i in range(15)), Discrete(tuple("ABCDE")), Mlp((64, 64)))
    params = untrained(spec, 0).weights.params
    peer = Peer(params).eval()
    obs = np.random.default_rng(0).random((1, 15), dtype=np.float32)
    tensor = torch.from_numpy(obs)

    def ours() -> object:
        return spec.network.step(NUMPY, params, obs, ())

    with torch.inference_mode():
        for mine, theirs in zip(
            spec.network.step(NUMPY, params, obs, ())[:2], peer(tensor), strict=True
        ):
            np.testing.assert_allclose(mine, theirs.numpy(), atol=1e-5)
        rounds = [(_median_us(ours), _median_us(lambda: peer(tensor))) for _ in range(ROUNDS)]
    mine_us, theirs_us = np.median(np.array(rounds[2:]), axis=0)
    print(json.dumps({"ours_us": mine_us, "torch_us": theirs_us, "torch": torch.__version__}))


if __name__ == "__main__":
    main()
