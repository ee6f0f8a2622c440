"""What networks with memory compute, written with loops in float64, nothing cached.

One match after another, obs [T, F] and first [T]: each frame looks back at its whole match.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from understudy.core.arrays import NDArray
from understudy.policy.strategist import Strategist
from understudy.policy.streaming import Stack
from understudy.policy.transformer import Transformer


class Slow:
    """Layers by the names of their parameters."""

    def __init__(self, params: dict[str, NDArray]) -> None:
        self.p = {name: value.astype(np.float64) for name, value in params.items()}

    def linear(self, name: str, x: NDArray) -> NDArray:
        return np.asarray(x @ self.p[f"{name}.w"] + self.p[f"{name}.b"])

    def norm(self, name: str, x: NDArray) -> NDArray:
        spread = np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        centred = x - x.mean(-1, keepdims=True)
        return np.asarray(centred / spread * self.p[f"{name}.scale"] + self.p[f"{name}.shift"])


def match_starts(first: NDArray) -> list[int]:
    """For each frame, the frame at which its match began."""
    return [max([0, *(s for s in range(t + 1) if first[s])]) for t in range(len(first))]


def softmax_mean(scores: list[float], rows: list[NDArray]) -> NDArray:
    odds = [math.exp(score) for score in scores]
    return np.asarray(sum(o / sum(odds) * row for o, row in zip(odds, rows, strict=True)))


def slow_attention(
    stack: Stack, q: NDArray, k: NDArray, v: NDArray, bias: NDArray, starts: list[int]
) -> NDArray:
    """Banded causal attention over q, k, v [T, width]."""
    size = stack.width // stack.heads
    out = np.zeros_like(v)
    for t in range(len(q)):
        for head in range(stack.heads):
            columns = slice(head * size, (head + 1) * size)
            seen = range(max(starts[t], t - stack.window + 1), t + 1)
            scores = [
                float(q[t, columns] @ k[s, columns]) / math.sqrt(size) + bias[head, t - s]
                for s in seen
            ]
            out[t, columns] = softmax_mean(scores, [v[s, columns] for s in seen])
    return out


def slow_stack(slow: Slow, stack: Stack, x: NDArray, starts: list[int]) -> NDArray:
    for index in range(stack.layers):
        name = f"layer.{index}"
        mixed = slow.linear(f"{name}.attention.in", slow.norm(f"{name}.attention.norm", x))
        q, k, v = np.split(mixed, 3, axis=-1)
        y = slow_attention(stack, q, k, v, slow.p[f"{name}.attention.bias"], starts)
        x = x + slow.linear(f"{name}.attention.out", y)
        hidden = slow.linear(f"{name}.feed.in", slow.norm(f"{name}.feed.norm", x))
        x = x + slow.linear(f"{name}.feed.out", np.maximum(hidden, 0.0))
    return slow.norm("norm", x)


def slow_transformer(
    network: Transformer, params: dict[str, NDArray], obs: NDArray, first: NDArray
) -> tuple[NDArray, NDArray]:
    """Logits [T, options] and values [T]."""
    slow = Slow(params)
    x = slow.linear("embed", obs.astype(np.float64))
    x = slow_stack(slow, network, x, match_starts(first))
    return slow.linear("policy", x), slow.linear("value", x)[:, 0]


class SlowInsight(NamedTuple):
    logits: NDArray
    values: NDArray
    latent: NDArray
    opponent_logits: NDArray


def slow_strategist(
    network: Strategist, params: dict[str, NDArray], obs: NDArray, first: NDArray
) -> SlowInsight:
    slow, starts = Slow(params), match_starts(first)
    obs = obs.astype(np.float64)
    x = slow.norm("embed.norm", slow.linear("embed", obs[:, len(obs[0]) - network.opponent :]))
    x = slow_stack(slow, network, np.maximum(x, 0.0), starts)
    pooled = np.zeros_like(x)
    for t in range(len(x)):
        seen = range(max(starts[t], t - network.window + 1), t + 1)
        scores = [
            float(x[s] @ slow.p["pool.score"][:, 0]) + slow.p["pool.bias"][t - s] for s in seen
        ]
        pooled[t] = softmax_mean(scores, [x[s] for s in seen])
    latent = slow.linear("refine.1", np.maximum(slow.linear("refine.0", pooled), 0.0))
    hidden = slow_lstm(slow, network.lstm, obs, latent, starts)
    actor = critic = hidden
    for index in range(len(network.head_widths)):
        actor = np.maximum(slow.linear(f"actor.{index}", actor), 0.0)
        critic = np.maximum(slow.linear(f"critic.{index}", critic), 0.0)
    return SlowInsight(
        slow.linear("policy", actor),
        slow.linear("value", critic)[:, 0],
        latent,
        slow.linear("opponent", latent),
    )


def logistic(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))


def slow_lstm(slow: Slow, size: int, obs: NDArray, latent: NDArray, starts: list[int]) -> NDArray:
    """All hidden [T, size], one unit at a time."""
    hidden, cell, every = np.zeros(size), np.zeros(size), []
    for t in range(len(obs)):
        if starts[t] == t:
            hidden, cell = np.zeros(size), np.zeros(size)
        gates = slow.linear("lstm.obs", obs[t])
        gates = gates + latent[t] @ slow.p["lstm.latent.w"] + hidden @ slow.p["lstm.hidden.w"]
        hidden, cell = hidden.copy(), cell.copy()
        for unit in range(size):
            enter, keep, show = (logistic(gates[unit + gate * size]) for gate in range(3))
            cell[unit] = keep * cell[unit] + enter * math.tanh(gates[unit + 3 * size])
            hidden[unit] = show * math.tanh(cell[unit])
        every.append(hidden)
    return np.stack(every)
