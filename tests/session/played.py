"""A served game with promotion by evidence, in simulated time: a real session, ledger and promotion
log, and versions that prefer one action each."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from understudy.core.config import Config, with_values
from understudy.experience.episode import Episode
from understudy.experience.ledger import Ledger
from understudy.gates.decision import DecisionGate, OpenGate
from understudy.gates.promotion.roles import PromotionState
from understudy.policy.mlp import Mlp
from understudy.policy.policy import Policy, untrained
from understudy.policy.spec import AnyNetwork, PolicySpec
from understudy.policy.weights import Weights, encode
from understudy.registry.checkpoints import INGESTED
from understudy.registry.pointers import LATEST
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import WEIGHTS, Manifest
from understudy.run.segment_writer import open_segments
from understudy.session.inbox import Incoming
from understudy.session.segments import PlayerSegments
from understudy.session.session import Session
from understudy.session.shards import Shard
from understudy.telemetry.journal import Journal

from .sessions import FakeClock, game

ATTACK, RETREAT, GATHER = "attack", "retreat", "gather"
_NAMES = (ATTACK, RETREAT, GATHER)


def preferring(spec: PolicySpec, action: str, *, times: float = 40.0) -> Weights:
    """Weights of a policy that chooses this action `times` as often as each other one."""
    # What a memory holds has to show in the probabilities.
    params = {
        name: value if spec.remembers else np.zeros_like(value)
        for name, value in spec.network.init(
            np.random.default_rng(0), len(spec.features), spec.actions.options
        ).items()
    }
    bias = next(name for name in params if name.startswith("policy") and params[name].ndim == 1)
    params[bias][_NAMES.index(action)] = np.log(times)
    inputs = len(spec.features)
    return Weights(
        params=params,
        obs_mean=np.zeros(inputs, np.float32),
        obs_scale=np.ones(inputs, np.float32),
        value_scale=np.float32(1.0),
    )


def publish(
    folder: RunFolder, number: int, action: str, *, learned: int = 50, **weights: Any
) -> None:
    """A learner's new version, which prefers this action."""
    made = preferring(folder.spec, action, **weights)
    manifest = Manifest(
        number=number,
        parent=None,
        created_at=0.0,
        spec=folder.spec,
        counters={INGESTED: learned},
    )
    folder.versions.commit(manifest, {WEIGHTS: encode(made)})
    folder.pointers.move("candidate", number, by=LATEST)


class ServedGame:
    """Territories of one client, 10 decisions a second each.

    `reward(action, territory)` is told by the client right after each decision.
    """

    def __init__(
        self,
        root: Path,
        *,
        territories: int = 4,
        reward: Callable[[str, int], float] = lambda action, territory: float(action == ATTACK),
        clock: FakeClock | None = None,
        network: AnyNetwork = Mlp(widths=(8,)),  # noqa: B008  frozen
        gate: DecisionGate | None = None,
        shard: Shard | None = None,
        seed: int = 0,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.clock = clock or FakeClock()
        self.translator = game()
        spec = PolicySpec(self.translator.features, self.translator.actions, network)
        chosen = {"live.promotion": "auto", "live.score": (0.0, 1.0), **(settings or {})}
        self.folder = RunFolder.open(
            root, spec=spec, config=with_values(Config(), chosen), clock=self.clock
        )
        self.reward = reward
        self.territories = territories
        names = (f"t{one}" for one in itertools.count())
        mine = (one for one in names if shard is None or not shard.refusal(one))
        self.names = list(itertools.islice(mine, territories))
        self.newest: Policy = untrained(spec, 0)
        self.said: list[str] = []
        self.problems: list[str] = []
        self.episodes: list[Episode] = []
        self.tick = 0
        self.features: Callable[[int], list[float]] = lambda tick: [1, 2, 3]
        """Of the observation of a tick."""
        self.rewarded: Callable[[int], bool] = lambda tick: True
        """Whether decisions of a tick get a reward."""
        self.degraded = False
        """Whether there is no time for a policy."""
        live = self.folder.config.live
        self.writer = open_segments(
            self.folder,
            newest=lambda: self.newest,
            journal=Journal(self.folder.journal, "server", self.clock),
            say=self.said.append,
            problem=lambda words, error=None: self.problems.append(f"{words} {error}"),
            shard=shard,
            seed=seed,
            background=False,
        )
        self.segments = PlayerSegments(self.writer, live)
        self.ledger = Ledger(
            root / "ledger",
            spec,
            segment=live.segment,
            clock=self.clock,
            put=self._put,
            sync_ms=50.0,
            background=False,
        )
        self.session = Session(
            self.translator,
            policy=lambda: self.writer.policy,
            gate=gate or OpenGate(),
            ledger=self.ledger,
            config=live,
            clock=self.clock,
            seed=seed,
            segments=self.segments,
            shard=shard,
            problem=lambda words, error: self.problems.append(f"{words} {error}"),
        )

    def publish(self, number: int, action: str, *, learned: int = 50, **weights: Any) -> None:
        """A learner's new version, which the watcher adopts."""
        publish(self.folder, number, action, learned=learned, **weights)
        self.newest = self.folder.versions.policy(number)

    def decide(self) -> list[dict[str, Any]]:
        """One observation of each territory, and the reward of each decision."""
        self.tick += 1
        asked = [
            {"type": "observation", "territory": name, "features": self.features(self.tick),
             "tick": self.tick}
            for name in self.names[: self.territories]
        ]  # fmt: skip
        decisions = self.say(asked)
        rewards = [
            {"type": "reward", "decision_id": one["decision_id"],
             "reward": self.reward(one["action"], territory)}
            for territory, one in enumerate(decisions) if one["decision_id"] is not None
            and self.rewarded(self.tick)
        ]  # fmt: skip
        self.say(rewards)
        return decisions

    def play(self, seconds: float, *, until: Callable[[], bool] = lambda: False) -> float:
        """Time passes; returns how much."""
        began = self.clock.now
        while self.clock.now - began < seconds and not until():
            self.decide()
            self.writer.work()
            before = self.clock.now
            self.clock.now += 0.1
            if int(self.clock.now) != int(before):
                self.session.tick()
        return self.clock.now - began

    @property
    def state(self) -> PromotionState:
        return self.writer.promotion.state

    def champion(self) -> int:
        return self.writer.incumbent.version

    def say(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Answers to what the client says."""
        inbox = [Incoming("alice", json.dumps(one)) for one in messages]
        return [json.loads(one.data) for one in self.session.receive(inbox, degraded=self.degraded)]

    def _put(self, episode: Episode) -> None:
        self.episodes.append(episode)
        self.writer.remember(episode)
