"""Settings of `understudy serve`: `[live]` for decisions, `[continuous]` for the learner behind."""

from __future__ import annotations

import math
from typing import Literal

from understudy.core.config.section import Section, at_least_zero, check, finite, positive, share
from understudy.core.errors import ConfigError


class LiveConfig(Section, frozen=True, kw_only=True):
    """How a live game is answered (`[live]`)."""

    segment: int = 128
    """Settled decisions of a territory that leave together at most, as one episode of the spool."""
    segment_s: float = 10.0
    """They leave before, once they span this: the learner should not wait for a slow game. Not so
    where the network has memory, which a segment begins without."""
    max_gap: int = 1
    """Ticks from one observation to the next; over a wider gap no reward can be dated."""
    reward_window_s: float = 60.0
    """How long a decision waits for its reward, and a territory for a client that vanished."""
    reward_clip: float = 1.0
    """Rewards are clipped to plus and minus this."""
    threshold: float = 0.0
    """The decision gate sends what it expects more than this from."""
    explore_share: float = 0.02
    """Share of blocked actions that are sent anyway, so that the gate can be judged."""
    gate_budget_ms: float = 5.0
    """How long a gate that simulates may take for a batch; past it the verdict is WAIT."""
    gate_deadline_ms: float = 50.0
    """How long the server waits for a custom gate (module:Name) to judge a batch; past it the
    answer is the safe action."""
    sync_ms: float = 50.0
    """The ledger is synced to disk this often: what a power cut may cost at most."""
    max_message_bytes: int = 65_536
    """Longer messages are refused."""
    messages_per_s: float = 2_000.0
    """Beyond this rate a client's WebSocket is not read; of its HTTP requests observations get the
    safe action, and the others are refused."""
    messages_per_s_per_address: float = 10_000.0
    """Messages of all clients at one address beyond this rate are refused; observations get the
    safe action."""
    messages_per_s_in_all: float = 20_000.0
    """Beyond this rate messages of all clients wait; connections take turns."""
    territories_per_client: int = 1_000
    """Active territories of one client. Beyond it an idle one is evicted; where none is idle, an
    observation of a new territory gets the safe action, which is not recorded."""
    territories_per_address: int = 5_000
    """The same for all clients at one address."""
    max_territories: int = 10_000
    """The same for all clients together."""
    evict_after_s: float = 10.0
    """A territory without an observation for so long is idle: it may be evicted to make room."""
    max_clients: int = 1_000
    """Connections at one time."""
    queue: int = 64
    """Messages of one connection that may wait; beyond that the oldest are answered `degraded`, and
    beyond twice that it is not read."""
    promotion: Literal["latest", "auto"] = "latest"
    """Who decides. `latest`: the newest version. `auto`: the rules (the action that a client
    proposes, else the safe action), until a version is better by evidence."""
    promotion_segment: int = 128
    """With `promotion = "auto"`: decisions of a territory that one player makes in a row, by one
    throw of the coin."""
    promotion_segment_s: float = 10.0
    """They end before, once they span this and `least_settled` of them count."""
    wash_out: float = 0.2
    """Share of such a segment, at its beginning, that counts for no score: the player before left
    the state in which it is decided."""
    least_settled: int = 8
    """Decisions after the wash-out that a segment has before time ends it. Where its territory ends
    with fewer, those of the wash-out count as well."""
    promotion_segments_per_s: float = 10.0
    """Segments that are assigned at most, in all territories; beyond it the incumbent plays and
    nothing is counted, so that neither the disk nor the log is overrun. Servers that are judged
    together (`serve --relay`) share it by `--shard`: each of N has an N-th."""
    score: tuple[float, ...] = ()
    """The lowest and the highest mean reward of a segment, which count 0 and 1; beyond them the
    mean is clipped. Empty: plus and minus `reward_clip`."""

    def __post_init__(self) -> None:
        positive(
            self,
            "live",
            "segment",
            "segment_s",
            "max_gap",
            "reward_window_s",
            "reward_clip",
            "sync_ms",
        )
        positive(self, "live", "max_message_bytes", "gate_budget_ms", "gate_deadline_ms")
        positive(self, "live", "messages_per_s", "messages_per_s_per_address")
        positive(self, "live", "messages_per_s_in_all", "territories_per_client")
        positive(self, "live", "territories_per_address", "max_territories", "max_clients")
        positive(self, "live", "evict_after_s", "queue")
        positive(self, "live", "promotion_segment", "promotion_segment_s", "least_settled")
        positive(self, "live", "promotion_segments_per_s")
        finite(self, "live", "threshold", "reward_window_s", "reward_clip")
        share(self, "live", "explore_share")
        check(self, "live", ["wash_out"], "0 or more, and below 1", lambda one: 0 <= one < 1)
        check(
            self,
            "live",
            ["score"],
            "the lowest and the highest mean reward, or nothing",
            lambda one: not one or (len(one) == 2 and -math.inf < one[0] < one[1] < math.inf),
        )
        if self.promotion_segment - round(self.wash_out * self.promotion_segment) < (
            self.least_settled
        ):
            raise ConfigError(
                f"live.least_settled: expected at most what live.promotion_segment = "
                f"{self.promotion_segment} leaves after live.wash_out = {self.wash_out:g}, "
                f"got {self.least_settled}"
            )


class ContinuousConfig(Section, frozen=True, kw_only=True):
    """How the learner behind a server learns (`[continuous]`)."""

    training_interval_s: float = 1.0
    """Seconds from one batch to the next."""
    batch: int = 32
    """Items a batch."""
    min_batch: int = 8
    """With fewer it waits for experience."""
    length: int = 8
    """Decisions an item at most; 1: transitions. Networks with memory take whole segments."""
    capacity: int = 10_000
    """Items held; the oldest leave first."""
    samples_per_insert: float = 8.0
    """No more samples than this for every item that came in: beyond it would be memorising."""
    priority: Literal["uniform", "prioritised"] = "uniform"
    """Which items are sampled: any, or rather those that surprised."""
    alpha: float = 0.6
    """How much priorities matter; 0: not at all."""
    beta: float = 0.4
    """How much of the bias that priorities cause is corrected by weights; 1: all."""
    max_age_s: float = 3600.0
    """Older items leave without being sampled."""
    revalidate: bool = True
    """Whether the decision gate looks again at everything that is sampled."""
    actual_weight: float = 0.7
    """Weight of what really happened in the reward, where the gate agrees with itself."""
    simulated_weight: float = 0.3
    """Weight of what the gate expects in that reward."""
    on_disagreement: Literal["keep", "skip", "penalty"] = "skip"
    """Where the gate judges otherwise today: learn all the same, learn nothing, or be punished."""
    disagreement_penalty: float = 0.1
    """What is taken off the reward then (`penalty`)."""
    waits: Literal["actual", "counterfactual", "skip"] = "actual"
    """Blocked: gains after them times wait_multiplier, what the gate expected at most, or none."""
    wait_multiplier: float = 0.5
    """See `waits`."""
    learning_rate_decay: float = 0.99
    """The learning rate is multiplied by this every 100 batches, down to learning_rate_min."""
    entropy_floor: float = 0.005
    """Entropy below this share of the largest possible means collapse: back to the last good."""

    def __post_init__(self) -> None:
        positive(self, "continuous", "training_interval_s", "batch", "min_batch", "length")
        positive(self, "continuous", "capacity", "samples_per_insert", "max_age_s")
        positive(self, "continuous", "learning_rate_decay")
        at_least_zero(self, "continuous", "alpha", "disagreement_penalty", "wait_multiplier")
        at_least_zero(self, "continuous", "actual_weight", "simulated_weight")
        share(self, "continuous", "beta", "entropy_floor", "learning_rate_decay")
        if self.min_batch > self.batch:
            raise ConfigError(
                f"continuous.min_batch: expected at most continuous.batch = {self.batch}, "
                f"got {self.min_batch}"
            )
        if self.capacity < self.min_batch:
            raise ConfigError(
                f"continuous.capacity: expected at least continuous.min_batch = {self.min_batch}, "
                f"got {self.capacity}"
            )
