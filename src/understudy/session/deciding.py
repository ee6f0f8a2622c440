"""From observations to decisions: earlier ones are settled, new ones are made and recorded.

Observations of different territories are decided together, in one forward pass of one policy. A
policy with memory gets each territory's own, side by side in a batch: what one territory saw never
reaches another.

A decision is answered only after the ledger has it. Where the ledger cannot write, the answer is
the safe action without an id, and nothing is learned from it. The safe action also answers where
there is no time, no room or no verdict; `SafeReason` says why.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.config.serving import LiveConfig
from understudy.core.ops import Tree, mapped, stacked
from understudy.experience.ledger import Closing, Ledger, Opened, pack_legal
from understudy.gates.decision import DecisionGate, Verdict, judge
from understudy.gates.worker import GateFailed, GateLate
from understudy.policy.policy import Choice, Policy
from understudy.session.protocol import Decision, RequestId
from understudy.session.rewards import settled_by_observations
from understudy.session.status import SessionCounts
from understudy.session.territory import DecisionRequest, WaitingDecision
from understudy.session.translation import TranslatedObservation, Translator

_LARGEST = float(np.finfo(np.float32).max)


class SafeReason(NamedTuple):
    """Why the rules answer an observation: with what its client proposed, or the safe action."""

    cause: Literal["overload", "disk", "territories", "rate", "gate_deadline", "error", "rules"]
    """What it is counted under"""
    words: str
    """What the client is told"""


OVERLOAD = SafeReason("overload", "no time for a policy")
DISK = SafeReason("disk", "the record cannot be written")
GATE_LATE = SafeReason("gate_deadline", "the gate took too long")
FAILED = SafeReason("error", "the policy or the gate failed")
BY_RULES = SafeReason("rules", "the rules play")
"""No failure: the rules are the player. Their action is the one that answers a failure too."""


class PolicyFailed(Exception):
    """A policy raised, or answered what is not finite."""


class Proposal(NamedTuple):
    """An action for one observation, before it is recorded."""

    action: tuple[int, ...]
    log_prob: float
    value: float
    verdict: Verdict
    explored: bool
    """The verdict is WAIT and the action is sent anyway"""
    memory: Tree
    """The policy's memory afterwards, without a batch axis"""


class Decider:
    """Decides batches of observations, one after the other.

    `problem` gets what a gate or a policy raised, `closed` every decision that has ended. `blames`:
    a version that fails is told from a gate that does, and one whose answer is not finite fails;
    else the newest version decides whatever it answers, as nothing else could.
    """

    def __init__(
        self,
        translator: Translator,
        *,
        gate: DecisionGate,
        ledger: Ledger,
        config: LiveConfig,
        rng: np.random.Generator,
        counts: SessionCounts,
        problem: Callable[[str, Exception], None],
        closed: Callable[[Sequence[Closing]], None] | None = None,
        blames: bool = False,
    ) -> None:
        self._translator = translator
        self._gate = gate
        self._ledger = ledger
        self._config = config
        self._rng = rng
        self._counts = counts
        self._problem = problem
        self._closed = closed
        self._blames = blames
        self._failed: dict[str, str] = {}
        """Territories in which the policy failed, with how, until `take_failed`."""
        self._widest = (config.max_gap + 0.5) * translator.tick_length

    def decide(
        self,
        batch: Sequence[DecisionRequest],
        policy: Policy,
        *,
        now: float,
        safe: SafeReason | None,
    ) -> list[tuple[DecisionRequest, Decision]]:
        """A decision for each observation, in any order; the territories are all different.

        `safe`: each gets the safe action, and neither the policy nor the gate is asked. `BY_RULES`:
        the same action, as what the rules decide, which is no failure. Where a batch fails, each
        observation is decided alone, so that one on which a gate fails costs the others nothing;
        it gets the safe action itself.
        """
        try:
            decisions = self._decide_together(batch, policy, now=now, safe=safe)
        except GateLate as error:  # all get the safe action: each alone would wait for the gate
            self._problem("the gate is too slow, its decisions are safe actions", error)
            return self.decide(batch, policy, now=now, safe=GATE_LATE)
        except GateFailed as error:
            self._problem("the gate failed", error)
            failed = [one for row, one in enumerate(batch) if row in error.rows]
            others = [one for row, one in enumerate(batch) if row not in error.rows]
            decided = self.decide(failed, policy, now=now, safe=FAILED)
            return decided + (self.decide(others, policy, now=now, safe=safe) if others else [])
        except Exception as error:  # noqa: BLE001  a gate is user code: other territories go on
            # Decisions that were closed before the failure do not wait any more.
            alone = [one._replace(due=one.territory.waiting) for one in batch]
            if len(alone) > 1:
                each = [self.decide([one], policy, now=now, safe=safe) for one in alone]
                return [pair for pairs in each for pair in pairs]
            self._problem("an observation could not be decided", error)
            if isinstance(error, PolicyFailed):
                self._failed[batch[0].territory.name] = str(error)
            if safe is None:
                return self.decide(alone, policy, now=now, safe=FAILED)
            why = FAILED if safe is BY_RULES else safe
            return self.unrecorded(alone, policy.version, why)  # the ledger refuses it
        return list(zip(batch, decisions, strict=True))

    def _decide_together(
        self,
        batch: Sequence[DecisionRequest],
        policy: Policy,
        *,
        now: float,
        safe: SafeReason | None,
    ) -> list[Decision]:
        """A policy or a gate that raises does so before anything is closed or recorded."""
        closings = settled_by_observations(
            batch,
            translator=self._translator,
            ledger=self._ledger,
            config=self._config,
            widest_gap=self._widest,
            now=now,
        )
        remembers = policy.remembers and safe is not BY_RULES
        cuts = self._cuts(batch, policy.version, remembers=remembers)
        if safe is None:
            share = self._config.explore_share
            proposals = propose(
                policy,
                self._gate,
                batch,
                rng=self._rng,
                explore_share=share,
                blames=self._blames,
            )
        else:
            proposals = self._fallback(batch, safe)
        for one in batch:
            one.territory.stop_waiting()
        try:
            self.close(closings)
            for name, bootstrap in cuts:
                self._ledger.cut(name, bootstrap)
            ids = self._ledger.take_ids(len(batch))
            opened = [
                _opened(key, one, proposal, policy.version, now=now, safe=safe)
                for key, one, proposal in zip(ids, batch, proposals, strict=True)
            ]
            self._ledger.open(opened)
        except OSError:
            self._counts.ledger_errors += 1
            why = DISK if safe is None or safe is BY_RULES else safe
            return [decision for _, decision in self.unrecorded(batch, policy.version, why)]
        by_observation = self._translator.rewards_by_observation
        for one, proposal, entry in zip(batch, proposals, opened, strict=True):
            one.territory.recorded(WaitingDecision(entry, one.sight) if by_observation else None)
            if safe is BY_RULES:
                one.territory.stop_remembering()
            elif remembers and safe is not None:
                one.territory.forget()  # the policy did not see this observation
            elif remembers:
                one.territory.remember(proposal.memory, policy.version)
        return [
            self._answered(one, proposal, policy.version, key=entry.id, safe=safe)
            for one, proposal, entry in zip(batch, proposals, opened, strict=True)
        ]

    def unrecorded(
        self, batch: Sequence[DecisionRequest], version: int, safe: SafeReason
    ) -> list[tuple[DecisionRequest, Decision]]:
        """The safe action for each, without a record. Earlier decisions of these territories end
        with this observation."""
        self._counts.unrecorded += len(batch)
        for one in batch:
            one.territory.unrecorded(one.sight.features)
        return [
            (one, self._answered(one, proposal, version, key=None, safe=safe))
            for one, proposal in zip(batch, self._fallback(batch, safe), strict=True)
        ]

    def stateless(
        self,
        reading: TranslatedObservation,
        version: int,
        safe: SafeReason,
        *,
        request: RequestId | None,
    ) -> Decision:
        """The safe action for an observation of an unknown territory, which is not added."""
        self._counts.unrecorded += 1
        (action,) = self._translator.fallback([reading.sight]).tolist()
        return self._decision(
            _proposal(action, safe),
            name=reading.territory,
            tick=reading.tick or 0,
            version=version,
            key=None,
            safe=safe,
            request=request,
        )

    def take_failed(self) -> dict[str, str]:
        """Territories in which the policy failed since the last call, and how."""
        failed, self._failed = self._failed, {}
        return failed

    def close(self, closings: Sequence[Closing]) -> None:
        """Close decisions in the ledger, then count them. Raises OSError if it cannot write."""
        if not closings:
            return
        self._ledger.close(closings)
        if self._closed is not None:
            self._closed(closings)
        for closing in closings:
            if closing.state == "settled":
                self._counts.reward(closing.reward)

    def _cuts(
        self, batch: Sequence[DecisionRequest], version: int, *, remembers: bool
    ) -> list[tuple[str, bytes]]:
        """Territories whose segment ends here, and the observation after its end."""
        cuts = []
        for one in batch:
            limits = self._widest, self._config.segment
            bootstrap = one.territory.cut(one.tick, one.sight, version, remembers, *limits)
            if bootstrap is not None:
                cuts.append((one.territory.name, bootstrap))
        return cuts

    # --- new decisions ---------------------------------------------------------------------------

    def _fallback(self, batch: Sequence[DecisionRequest], safe: SafeReason) -> list[Proposal]:
        actions = self._translator.fallback([one.sight for one in batch])
        return [_proposal(action, safe) for action in actions.tolist()]

    def _answered(
        self,
        one: DecisionRequest,
        proposal: Proposal,
        version: int,
        *,
        key: int | None,
        safe: SafeReason | None,
    ) -> Decision:
        decision = self._decision(
            proposal,
            name=one.territory.name,
            tick=one.tick,
            version=version,
            key=key,
            safe=safe,
            request=one.request,
        )
        one.territory.answered(decision)
        return decision

    def _decision(
        self,
        proposal: Proposal,
        *,
        name: str,
        tick: int,
        version: int,
        key: int | None,
        safe: SafeReason | None,
        request: RequestId | None,
    ) -> Decision:
        """The answer, which is counted here."""
        verdict, counts = proposal.verdict, self._counts
        sent = verdict.send or proposal.explored
        counts.decisions += 1
        counts.sent += sent
        counts.waited += not sent
        counts.explored += proposal.explored
        degraded = safe is not None and safe is not BY_RULES
        if safe is not None and degraded:
            counts.degraded += 1
            counts.safe_actions[safe.cause] += 1
        return Decision(
            decision_id=key,
            territory=name,
            tick=tick,
            action=self._translator.label(proposal.action),
            confidence=0.0 if safe is not None else math.exp(min(proposal.log_prob, 0.0)),
            version=0 if safe is BY_RULES else version,
            by="policy" if safe is None else "rules",
            verdict="SEND" if sent else "WAIT",
            reasons=verdict.reasons,
            # nan, a gate's "no expectation", is not JSON.
            expected_reward=(
                0.0 if math.isnan(verdict.expected_reward) else verdict.expected_reward
            ),
            explored=proposal.explored,
            degraded=degraded,
            id=request,
        )


def _proposal(action: Sequence[int], safe: SafeReason) -> Proposal:
    """The safe action: no policy proposed it and no gate judged it."""
    return Proposal(tuple(action), 0.0, 0.0, Verdict(True, 0.0, (safe.words,)), False, None)


def _opened(
    key: int,
    one: DecisionRequest,
    proposal: Proposal,
    version: int,
    *,
    now: float,
    safe: SafeReason | None,
) -> Opened:
    return Opened(
        id=key,
        territory=one.territory.name,
        client=one.territory.client,
        tick=one.tick,
        at=now,
        version=version,
        action=proposal.action,
        log_prob=min(proposal.log_prob, 0.0),
        value=proposal.value,
        sampled=safe is None,
        sent=proposal.verdict.send or proposal.explored,
        explored=proposal.explored,
        expected=proposal.verdict.expected_reward,
        observation=one.sight.features.tobytes(),
        legal=pack_legal(one.sight.legal),
        rules=safe is BY_RULES,
    )


# --- the forward pass ----------------------------------------------------------------------------


def propose(
    policy: Policy,
    gate: DecisionGate,
    batch: Sequence[DecisionRequest],
    *,
    rng: np.random.Generator,
    explore_share: float,
    blames: bool = False,
) -> list[Proposal]:
    """A proposal for each observation: one forward pass of the policy, one call of the gate.

    `blames`: raises `PolicyFailed` where the policy is at fault.
    """
    count = len(batch)
    observations = np.array([one.sight.features for one in batch])
    # Features near the limit of float32 may overflow in between; the normaliser clips them.
    with np.errstate(over="ignore", invalid="ignore"):
        choice = _choice(policy, batch, observations, rng, blames=blames)
        verdicts = judge(gate, observations, choice.actions)
    explore = (rng.random(count) < explore_share).tolist()
    columns = zip(
        choice.actions.tolist(),
        choice.log_probs.tolist(),
        choice.values.tolist(),
        verdicts,
        explore,
        _scattered(choice.memory, count),
        strict=True,
    )
    return [
        Proposal(
            tuple(action), log_prob, value, _finite(verdict), drawn and not verdict.send, memory
        )
        for action, log_prob, value, verdict, drawn, memory in columns
    ]


def _choice(
    policy: Policy,
    batch: Sequence[DecisionRequest],
    observations: NDArray,
    rng: np.random.Generator,
    *,
    blames: bool,
) -> Choice:
    """The actions of a policy. With `blames` raises `PolicyFailed`: a version is at fault, and no
    gate."""
    memory = _gathered(policy, batch)
    uniforms = rng.random((len(batch), len(policy.spec.actions.parts)), np.float32)
    legal = masks([one.sight.legal for one in batch], policy.spec.actions.options)
    try:
        choice = policy.act(observations, memory, legal=legal, uniforms=uniforms)
    except Exception as error:
        if not blames:
            raise
        raise PolicyFailed(f"{type(error).__name__}: {error}") from error
    if blames and not (np.isfinite(choice.log_probs).all() and np.isfinite(choice.values).all()):
        raise PolicyFailed("its answer is not finite")
    return choice


def masks(legal: Sequence[NDArray | None], options: int) -> NDArray | None:
    """bool [B, options]; None where everything is legal in all of them."""
    if all(mask is None for mask in legal):
        return None
    everything = np.ones(options, np.bool_)
    return np.array([everything if mask is None else mask for mask in legal])


def _gathered(policy: Policy, batch: Sequence[DecisionRequest]) -> Tree:
    """The memories of all territories as arrays [B, ...]."""
    if not policy.remembers:
        return policy.begin(len(batch))
    alone = mapped(lambda leaf: leaf[0], policy.begin(1))
    held = (one.territory.memory for one in batch)
    return stacked([alone if memory is None else memory for memory in held])


def _scattered(memory: Tree, count: int) -> list[Tree]:
    """The memory of each; copies, so that none keeps the whole batch alive."""
    if not memory:
        return [None] * count
    return [_at(memory, index) for index in range(count)]


def _at(memory: Tree, index: int) -> Tree:
    return mapped(lambda leaf: leaf[index].copy(), memory)


def _finite(verdict: Verdict) -> Verdict:
    """A custom gate may expect anything; what is recorded is finite in float32, or nan: no
    expectation."""
    if abs(verdict.expected_reward) <= _LARGEST:
        return verdict
    return verdict._replace(expected_reward=math.nan)
