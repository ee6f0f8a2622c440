"""A trainer of items without JAX, and a learner around it: what the proofs of durability are of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
from walk.toys import SPEC, START, Tally, _tally
from walk.toys import episode as any_episode

from understudy.core import config as configs
from understudy.core.arrays import NDArray, to_npz
from understudy.core.config import Config
from understudy.experience.episode import Episode
from understudy.gates.decision import DecisionGate
from understudy.learner.batch import Batch
from understudy.learner.continuous.learner import ContinuousLearner
from understudy.policy import weights as weight_files
from understudy.policy.weights import Weights
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import LEARNER, WEIGHTS
from understudy.telemetry import events
from understudy.telemetry.journal import Journal, Reader

LENGTH = 2
METRICS = (
    "loss", "policy_loss", "value_loss", "kl", "explained_variance", "behaviour_kl", "clip_share",
    "behaviour_kl_max", "gradient_norm", "gradient_steps",
)  # fmt: skip


def settings(**values: Any) -> Config:
    """Every interval is a second, every version is published at once, unless asked otherwise."""
    quick: dict[str, Any] = {
        "learner.publish_interval_s": 0.0,
        "learner.epochs": 1,
        "learner.minibatches": 1,
        "continuous.batch": 4,
        "continuous.min_batch": 2,
        "continuous.length": LENGTH,
        "registry.keep_versions": 1_000_000,
        "registry.keep_bytes": 0,
    }
    dotted = {key.replace("__", "."): value for key, value in values.items()}
    return configs.with_values(Config(), quick | dotted)


def segment(number: int, *, length: int = 4, finished_at: float = START, **changes: Any) -> Episode:
    """An episode whose observations say which one it is, from its second feature on."""
    seen = np.stack([np.arange(length), np.full(length, number)], 1).astype(np.float32)
    made = any_episode(str(number), length=length, finished_at=finished_at, observations=seen)
    return replace(made, **changes)


class ToyItems:
    """Learns nothing, but remembers how often it was shown each episode's items."""

    def __init__(self, meet: Callable[[Sequence[str]], None] = lambda ids: None) -> None:
        self._meet = meet
        self._weights = weight_files.encode(weight_files.fresh(SPEC, np.random.default_rng(0)))
        self.tally = Tally()
        self.entropy = float(np.log(2.0))
        self.surprise = 1.0
        self.restored: list[str] = []
        self.rates: list[float] = []
        self.entropy_weights: list[float] = []
        self.batches: list[Batch] = []
        self.by_evidence: list[bool] = []

    def train_items(
        self,
        batch: Batch,
        *,
        new: Sequence[Episode],
        learning_rate: float,
        entropy_weight: float,
        keep: bool = True,
        by_evidence: bool = False,
        champion: Weights | None = None,
    ) -> tuple[dict[str, float], NDArray]:
        filled = batch.valid[0] > 0
        ids = [str(int(number)) for number in batch.obs[0, filled, 1]]
        self._meet(ids)
        self.rates.append(learning_rate)
        self.entropy_weights.append(entropy_weight)
        self.batches.append(batch)
        self.by_evidence.append(by_evidence)
        if keep:
            came = Counter(one.meta.id for one in new)
            self.tally = Tally(
                dict(Counter(self.tally.ingested) + came),
                dict(Counter(self.tally.sampled) + Counter(ids)),
            )
        metrics = dict.fromkeys(METRICS, 0.0) | {"entropy": self.entropy}
        metrics |= {"learning_rate": learning_rate, "steps": float(batch.valid.sum())}
        metrics["step_share"] = 0.5
        return metrics, np.full(batch.valid.shape[1], self.surprise, np.float32)

    def snapshot(self) -> dict[str, bytes]:
        memory = np.frombuffer(msgspec.json.encode(self.tally), np.uint8)
        return {WEIGHTS: self._weights, LEARNER: to_npz({"tally": memory})}

    def restore(self, contents: Mapping[str, bytes] | None, *, what: str) -> None:
        self.restored.append(what)
        self.tally = Tally() if contents is None else _tally(contents[LEARNER])


def continuous(
    folder: RunFolder, toy: ToyItems | None = None, gate: DecisionGate | None = None
) -> ContinuousLearner:
    journal = Journal(folder.journal, "learner", folder.clock)
    return ContinuousLearner(folder, toy or ToyItems(), journal, gate)


def told(folder: RunFolder, kind: type[Any]) -> list[Any]:
    """Events of one kind, in the order of time."""
    found: list[events.Event] = [entry.e for entry in Reader(folder.journal).new()]
    return [event for event in found if isinstance(event, kind)]
