"""From observations to answers: old decisions are settled, new ones made and written down.

An answer is only given for a decision that the ledger has. Where it cannot write, the answer is the
safe action without an id, and nothing is learned from it. The safe action is also what is answered
where there is no time, no room or no verdict: `Safe` says why.

One wave: observations of different territories that are decided together, in one forward pass.

All of a wave is decided by one policy. A policy with memory gets each territory's own, side by side
in a batch, and gives it back: what one territory saw never reaches another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.config.serving import LiveConfig
from understudy.core.ops import Tree, mapped, stacked
from understudy.experience.ledger import Closing, Ledger, Opened, pack_legal
from understudy.gates.decision import DecisionGate, Verdict, judge
from understudy.policy.policy import Policy
from understudy.session.protocol import Decision, RequestId
from understudy.session.status import SessionCounts
from understudy.session.territory import TerritoryState, WaitingDecision, clipped
from understudy.session.translation import Sight, Step, TranslatedObservation, Translator

_LARGEST = float(np.finfo(np.float32).max)


class DecisionRequest(NamedTuple):
    """One observation that waits to be decided."""

    place: int
    """In the inbox"""
    request: RequestId | None
    territory: TerritoryState
    tick: int
    sight: Sight
    due: WaitingDecision | None
    """The decision that this observation tells the reward of"""


class Proposal(NamedTuple):
    """What is proposed for one observation."""

    action: tuple[int, ...]
    log_prob: float
    value: float
    verdict: Verdict
    explored: bool
    """The verdict is WAIT and it is sent all the same"""
    memory: Tree
    """Afterwards, without a batch axis"""


def propose(
    policy: Policy,
    gate: DecisionGate,
    asked: Sequence[DecisionRequest],
    *,
    rng: np.random.Generator,
    explore_share: float,
) -> list[Proposal]:
    """A proposal for each, drawn from the policy and judged by the gate."""
    count = len(asked)
    observations = np.array([one.sight.features for one in asked])
    # Features near the edge of 32 bits may overflow on the way; the normaliser clips them then.
    with np.errstate(over="ignore", invalid="ignore"):
        choice = policy.act(
            observations,
            _gathered(policy, asked),
            legal=masks([one.sight.legal for one in asked], policy.spec.actions.options),
            uniforms=rng.random((count, len(policy.spec.actions.parts)), np.float32),
        )
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


def masks(legal: Sequence[NDArray | None], options: int) -> NDArray | None:
    """bool [B, options]; None where everything is legal to everybody."""
    if all(mask is None for mask in legal):
        return None
    everything = np.ones(options, np.bool_)
    return np.array([everything if mask is None else mask for mask in legal])


def _gathered(policy: Policy, asked: Sequence[DecisionRequest]) -> Tree:
    """Everybody's memory as arrays [B, ...]."""
    if not policy.remembers:
        return policy.begin(len(asked))
    alone = mapped(lambda leaf: leaf[0], policy.begin(1))
    held = (one.territory.memory for one in asked)
    return stacked([alone if memory is None else memory for memory in held])


def _scattered(memory: Tree, count: int) -> list[Tree]:
    """Each one's memory; copies, so that nobody keeps the whole batch alive."""
    if not memory:
        return [None] * count
    return [_at(memory, index) for index in range(count)]


def _at(memory: Tree, index: int) -> Tree:
    return mapped(lambda leaf: leaf[index].copy(), memory)


def _finite(verdict: Verdict) -> Verdict:
    """A gate of one's own may expect anything; what is recorded is a number of 32 bits, or nan: it
    had nothing to say."""
    if abs(verdict.expected_reward) <= _LARGEST:
        return verdict
    return verdict._replace(expected_reward=math.nan)


class Safe(NamedTuple):
    """Why an observation is answered with the safe action."""

    cause: Literal["overload", "disk", "territories", "rate", "gate_deadline", "error"]
    """What it is counted under"""
    reason: str
    """What the client is told"""


OVERLOAD = Safe("overload", "no time for a policy")
DISK = Safe("disk", "the record cannot be written")
GATE_LATE = Safe("gate_deadline", "the gate took too long")
FAILED = Safe("error", "the policy or the gate failed")


class Decider:
    """Decides waves, one after the other."""

    def __init__(
        self,
        translator: Translator,
        *,
        gate: DecisionGate,
        ledger: Ledger,
        config: LiveConfig,
        rng: np.random.Generator,
        tally: SessionCounts,
    ) -> None:
        self._translator = translator
        self._gate = gate
        self._ledger = ledger
        self._config = config
        self._rng = rng
        self._tally = tally
        self._widest = (config.max_gap + 0.5) * translator.tick_length

    def decide(
        self, asked: Sequence[DecisionRequest], policy: Policy, *, now: float, safe: Safe | None
    ) -> list[Decision]:
        """An answer for each of a wave: observations of different territories.

        `safe`: each gets the safe action, and neither the policy nor the gate is asked. Whatever a
        policy or a gate raises, it raises before anything has happened.
        """
        closings = self._settled(asked, now)
        remembers = policy.remembers
        cuts = self._cuts(asked, policy.version, remembers=remembers)
        proposals = self._proposed(asked, policy) if safe is None else self._fallback(asked, safe)
        for one in asked:
            one.territory.waiting = None
        try:
            self.close(closings)
            for name, bootstrap in cuts:
                self._ledger.cut(name, bootstrap)
            ids = self._ledger.take_ids(len(asked))
            opened = [
                _opened(key, one, proposal, policy.version, now=now, sampled=safe is None)
                for key, one, proposal in zip(ids, asked, proposals, strict=True)
            ]
            self._ledger.open(opened)
        except OSError:
            self._tally.ledger_errors += 1
            return self.unrecorded(asked, policy.version, safe or DISK)
        for one, proposal, entry in zip(asked, proposals, opened, strict=True):
            territory = one.territory
            territory.bootstrap = None
            if self._translator.rewards_by_observation:
                territory.waiting = WaitingDecision(entry, one.sight)
            if remembers and safe is not None:
                territory.forget()  # it did not see this observation
            elif remembers:
                territory.memory, territory.version = proposal.memory, policy.version
                territory.remembered += 1
                territory.severed = False
        return [
            self._answered(one, proposal, policy.version, key=entry.id, safe=safe)
            for one, proposal, entry in zip(asked, proposals, opened, strict=True)
        ]

    def unrecorded(
        self, asked: Sequence[DecisionRequest], version: int, safe: Safe
    ) -> list[Decision]:
        """The safe action for each, without a record. What the territories did before ends with
        what is seen now."""
        self._tally.unrecorded += len(asked)
        for one in asked:
            territory = one.territory
            territory.waiting = None
            territory.forget()
            if territory.bootstrap is None:
                territory.bootstrap = one.sight.features.tobytes()
        return [
            self._answered(one, proposal, version, key=None, safe=safe)
            for one, proposal in zip(asked, self._fallback(asked, safe), strict=True)
        ]

    def stateless(
        self, reading: TranslatedObservation, version: int, safe: Safe, *, request: RequestId | None
    ) -> Decision:
        """The safe action for an observation of a territory that is not known and is not added."""
        self._tally.unrecorded += 1
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

    def close(self, closings: Sequence[Closing]) -> None:
        """Decisions end: in the ledger, then in the counts. OSError: they did not."""
        if not closings:
            return
        self._ledger.close(closings)
        for closing in closings:
            if closing.state == "settled":
                self._tally.reward(closing.reward)

    # --- what came before ----------------------------------------------------------------------

    def _settled(self, asked: Sequence[DecisionRequest], now: float) -> list[Closing]:
        """How the decisions ended that these observations follow."""
        steps: list[Step] = []
        waiting: list[tuple[DecisionRequest, WaitingDecision]] = []
        closings: list[Closing] = []
        for one in asked:
            due = one.due
            if due is None:
                continue
            if now - due.opened.at > self._config.reward_window_s:
                closings.append(_unsettled(one, due, "expired"))
            elif one.tick - due.opened.tick > self._widest:
                closings.append(_unsettled(one, due, "superseded"))
            else:
                steps.append(Step(due.sight, due.opened.action, due.opened.sent, one.sight))
                waiting.append((one, due))
        if not steps:
            return closings
        for (one, due), reward in zip(waiting, self._translator.rewards(steps), strict=True):
            if reward is None or math.isnan(reward):
                closings.append(_unsettled(one, due, "superseded"))
            else:
                added = self._ledger.added(due.opened.id) or 0.0
                worth = clipped(reward + added, self._config.reward_clip)
                closings.append(Closing(id=due.opened.id, state="settled", reward=worth))
        return closings

    def _cuts(
        self, asked: Sequence[DecisionRequest], version: int, *, remembers: bool
    ) -> list[tuple[str, bytes]]:
        """Territories whose segment ends here, and what they saw after it.

        Nothing bridges a gap, nor what was answered without the ledger. With a policy that
        remembers, a segment is one version's and begins with empty memory, so that training on it
        from empty memory repeats what was played.
        """
        cuts = []
        for one in asked:
            territory = one.territory
            gap = territory.tick is not None and one.tick - territory.tick > self._widest
            full = territory.remembered >= self._config.segment
            if gap or (territory.remembered and (full or territory.version != version)):
                territory.forget()
            if territory.bootstrap is not None:
                cuts.append((territory.name, territory.bootstrap))
            elif gap or (remembers and territory.severed):
                cuts.append((territory.name, one.sight.features.tobytes()))
        return cuts

    # --- what comes now ------------------------------------------------------------------------

    def _proposed(self, asked: Sequence[DecisionRequest], policy: Policy) -> list[Proposal]:
        share = self._config.explore_share
        return propose(policy, self._gate, asked, rng=self._rng, explore_share=share)

    def _fallback(self, asked: Sequence[DecisionRequest], safe: Safe) -> list[Proposal]:
        sights: list[Sight] = [one.sight for one in asked]
        return [_proposal(action, safe) for action in self._translator.fallback(sights).tolist()]

    def _answered(
        self,
        one: DecisionRequest,
        proposal: Proposal,
        version: int,
        *,
        key: int | None,
        safe: Safe | None,
    ) -> Decision:
        territory = one.territory
        decision = self._decision(
            proposal,
            name=territory.name,
            tick=one.tick,
            version=version,
            key=key,
            safe=safe,
            request=one.request,
        )
        territory.tick, territory.last = one.tick, decision
        territory.decisions += 1
        return decision

    def _decision(
        self,
        proposal: Proposal,
        *,
        name: str,
        tick: int,
        version: int,
        key: int | None,
        safe: Safe | None,
        request: RequestId | None,
    ) -> Decision:
        """The answer; counted."""
        verdict, tally = proposal.verdict, self._tally
        sent = verdict.send or proposal.explored
        tally.decisions += 1
        tally.sent += sent
        tally.waited += not sent
        tally.explored += proposal.explored
        if safe is not None:
            tally.degraded += 1
            tally.safe_actions[safe.cause] += 1
        return Decision(
            decision_id=key,
            territory=name,
            tick=tick,
            action=self._translator.label(proposal.action),
            confidence=0.0 if safe is not None else math.exp(min(proposal.log_prob, 0.0)),
            version=version,
            verdict="SEND" if sent else "WAIT",
            reasons=verdict.reasons,
            # JSON knows no nan, which a gate without anything to say expects.
            expected_reward=(
                0.0 if math.isnan(verdict.expected_reward) else verdict.expected_reward
            ),
            explored=proposal.explored,
            degraded=safe is not None,
            id=request,
        )


def _proposal(action: Sequence[int], safe: Safe) -> Proposal:
    """The safe action, as one that no policy proposed and no gate judged."""
    return Proposal(tuple(action), 0.0, 0.0, Verdict(True, 0.0, (safe.reason,)), False, None)


def _opened(
    key: int, one: DecisionRequest, proposal: Proposal, version: int, *, now: float, sampled: bool
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
        sampled=sampled,
        sent=proposal.verdict.send or proposal.explored,
        explored=proposal.explored,
        expected=proposal.verdict.expected_reward,
        observation=one.sight.features.tobytes(),
        legal=pack_legal(one.sight.legal),
    )


def _unsettled(
    one: DecisionRequest, due: WaitingDecision, state: Literal["expired", "superseded"]
) -> Closing:
    """No reward: whatever a policy carries began before the gap, so that it is emptied."""
    one.territory.forget()
    return Closing(id=due.opened.id, state=state)
