"""Sessions without sockets: a clock that stands still, a real ledger, and clients as one-liners."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from policy.makers import lively_policy

import understudy.adapters.territory.messages  # noqa: F401  registers its messages
from understudy.core.arrays import NDArray
from understudy.core.config.serving import LiveConfig
from understudy.experience.episode import Episode
from understudy.experience.ledger import Ledger
from understudy.gates.decision import DecisionGate, OpenGate, Verdict
from understudy.policy.mlp import Mlp
from understudy.policy.policy import Policy
from understudy.policy.spec import AnyNetwork, PolicySpec
from understudy.session.inbox import Incoming
from understudy.session.schema import SchemaGame, from_table
from understudy.session.session import Session
from understudy.session.shards import Shard
from understudy.session.translation import Translator

FEATURES = ["health", "enemies", "gold"]
ACTIONS = ["attack", "retreat", "gather"]
SMALL = Mlp(widths=(8,))
BY_GOLD = [{"name": "income", "feature": "gold", "of": "change"}]


def game(*, rewards: list[dict[str, Any]] | None = None, **changes: Any) -> SchemaGame:
    """A small declared game; with `rewards` its observations tell what decisions were worth."""
    table = {"name": "skirmish", "features": FEATURES, "actions": ACTIONS, "fallback": "retreat"}
    return from_table({"game": {**table, **changes}, "rewards": rewards or []})


class FakeClock:
    """Stands still until it is told otherwise."""

    def __init__(self, now: float = 1_000.0) -> None:
        self.now = now

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now


class Wait:
    """A gate that lets nothing through."""

    name = "wait"

    def evaluate(self, observation: NDArray, action: NDArray) -> Verdict:
        return Verdict(False, -0.25, ("too dangerous",))


class Versions:
    """Policies with preferences of their own, by number; `current` is what plays."""

    def __init__(self, spec: PolicySpec) -> None:
        self._spec = spec
        self._made: dict[int, Policy] = {}
        self.current = 0

    def __call__(self) -> Policy:
        return self[self.current]

    def __getitem__(self, number: int) -> Policy:
        if number not in self._made:
            self._made[number] = lively_policy(self._spec, number, version=number)
        return self._made[number]


class Table:
    """A session, and everything around it that a test looks at."""

    def __init__(
        self,
        folder: Path,
        *,
        translator: Translator | None = None,
        network: AnyNetwork = SMALL,
        gate: DecisionGate | None = None,
        clock: FakeClock | None = None,
        seed: int = 0,
        problem: Callable[[str, Exception], None] | None = None,
        shard: Shard | None = None,
        **config: Any,
    ) -> None:
        self.translator = translator or game(rewards=BY_GOLD)
        self.spec = PolicySpec(self.translator.features, self.translator.actions, network)
        self.versions = Versions(self.spec)
        self.clock = clock or FakeClock()
        self.config = LiveConfig(**config)
        self.episodes: list[Episode] = []
        self.ledger = Ledger(
            folder,
            self.spec,
            segment=self.config.segment,
            clock=self.clock,
            put=self.episodes.append,
            sync_ms=50.0,
            background=False,
        )
        changes: Any = {} if problem is None else {"problem": problem}
        self.session = Session(
            self.translator,
            policy=self.versions,
            gate=gate or OpenGate(),
            ledger=self.ledger,
            config=self.config,
            clock=self.clock,
            seed=seed,
            shard=shard,
            **changes,
        )

    def say(self, *messages: Any, client: str = "alice", **options: Any) -> list[dict[str, Any]]:
        """Send messages of one client together; their answers."""
        return self.inbox([(client, message) for message in messages], **options)

    def inbox(
        self, messages: Sequence[tuple[str, Any]], *, address: str | None = None, **options: Any
    ) -> list[dict[str, Any]]:
        """Send messages of any clients together; bytes and text go as they are."""
        sent = [
            Incoming(client, one if isinstance(one, bytes | str) else json.dumps(one), address)
            for client, one in messages
        ]
        answers = self.session.receive(sent, **options)
        assert [one.client for one in answers] == [client for client, _ in messages]
        return [json.loads(one.data) for one in answers]

    def ask(self, territory: str = "north", *, client: str = "alice", **fields: Any) -> Any:
        """One observation and its answer."""
        (answer,) = self.say(observation(territory, **fields), client=client)
        return answer

    def states(self, *ids: int) -> list[str]:
        """How decisions stand in the ledger."""
        return [self.ledger.state_of(key) for key in ids]

    def later(self, seconds: float) -> None:
        """Time passes, and the session notices."""
        self.clock.now += seconds
        self.session.tick()


def observation(territory: str = "north", *, gold: float = 0.0, **fields: Any) -> dict[str, Any]:
    features = fields.pop("features", [50.0, 40.0, gold])
    return {"type": "observation", "territory": territory, "features": features, **fields}


def recomputed(policy: Policy, features: NDArray, action: int) -> float:
    """The probability of an action under a policy without memory."""
    options = len(policy.spec.actions.parts)
    assert options == 1
    from understudy.core.ops import NUMPY
    from understudy.policy import distributions
    from understudy.policy.weights import normalise

    obs = normalise(NUMPY, policy.weights, features[None])
    logits, _, _ = policy.spec.network.step(NUMPY, policy.weights.params, obs, policy.begin())
    log_p = distributions.log_probs(NUMPY, policy.spec.actions, logits, None)
    return float(np.exp(log_p[0, action]))
