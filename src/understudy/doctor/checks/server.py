"""Checks of a served run: the gate, the ledger, rewards, and the learner behind the server.

What the gate did and what was rewarded is read from the newest segments, how decisions ended from
the ledger, how the learner goes on from its events.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.spaces import ActionSpace, Continuous, Discrete
from understudy.doctor.evidence import Evidence
from understudy.doctor.findings import Finding, section
from understudy.experience.ledger.recovery import LEDGER, territories_in
from understudy.experience.served import ServedDecisions

_FEWEST = 300
"""Decisions; with fewer nothing is judged."""
_LETS_THROUGH, _BLOCKS = 0.999, 0.98
_DOMINATES, _ALONE = 0.5, 0.95
"""Shares of one action, without and with the safe action. A healthy server of territory: the most
frequent spawn is 2% of spawns, and no spawn is 36 to 60% of decisions."""
_OPTIONS = 8
_UNDATED = 0.2
_TERRITORY, _SILENT = 20, 0.1
_CLIPPED, _FEW_REWARDS = 0.2, 3
"""A game that pays so few amounts below the clip may pay just what the clip is: -1, 0 and 1."""
_AGREES = 0.7
_ABOVE = 1.25
_BUSY = 0.9


def _decisions(evidence: Evidence) -> ServedDecisions | None:
    """Of the newest segments; None: this is no server, or there are too few."""
    found = evidence.episodes if evidence.kind == "server" else ()
    if sum(map(len, found)) < _FEWEST:
        return None
    return ServedDecisions.joined([ServedDecisions.of(one) for one in found])


def gate_judges_nothing(evidence: Evidence) -> Iterator[Finding]:
    """A gate that lets everything through, or nearly nothing."""
    seen = _decisions(evidence)
    if seen is None or int(seen.judged.sum()) < _FEWEST:
        return
    count = int(seen.judged.sum())
    passed = float((seen.sent & ~seen.explored)[seen.judged].mean())
    threshold = evidence.config.live.threshold
    figures = (
        f"Of the last {count:,} actions that the gate judged it let {passed:.1%} through; "
        f"live.threshold is {threshold:g}.",
    )
    measure = f"understudy gate --run {evidence.folder.root}"
    if passed >= _LETS_THROUGH:
        yield Finding(
            check="gate-lets-all-through",
            weight="warning",
            certainty="certain",
            title="The gate holds nothing back.",
            evidence=figures,
            next_step=f"Raise live.threshold; see what the gate expects: {measure}",
            link=section("gate-lets-all-through"),
        )
    elif passed <= 1.0 - _BLOCKS:
        yield Finding(
            check="gate-blocks-nearly-all",
            weight="problem",
            certainty="certain",
            title="The gate holds nearly everything back, so the policy cannot show what it does.",
            evidence=figures,
            next_step=f"Lower live.threshold, or raise live.explore_share; what blocking is worth: "
            f"{measure}",
            link=section("gate-blocks-nearly-all"),
        )


def gate_disagrees(evidence: Evidence) -> Iterator[Finding]:
    """The gate judges recorded decisions otherwise than it did."""
    trend = evidence.trend("gate_agreement")
    now = trend.mean(of=trend.last(20))
    if trend.weight < 20 or now is None or now >= _AGREES:
        return
    yield Finding(
        check="gate-disagrees",
        weight="warning",
        certainty="certain",
        title="The gate judges decisions otherwise than when they were made.",
        evidence=(
            f"It agrees with itself in {now:.0%} of what was sampled of late; decisions on which "
            f"it does not are treated as continuous.on_disagreement = "
            f"{evidence.config.continuous.on_disagreement!r}.",
        ),
        next_step="A gate must be a pure function of observation and action: look for a clock, "
        "chance or state in it. After a change of the gate this passes by itself.",
        link=section("gate-disagrees"),
    )


def one_action_dominates(evidence: Evidence) -> Iterator[Finding]:
    """One of many actions is most of what the policy does; or it does nothing at all."""
    seen = _decisions(evidence)
    space = evidence.folder.spec.actions
    options = math.prod(space.parts)
    if seen is None or isinstance(space, Continuous) or options < _OPTIONS:
        return
    # A gate judges every action but the safe one: to do nothing in half of all cases is healthy.
    # Without a gate the safe action is not known.
    acts = seen.sampled & seen.judged
    for chosen, most in ((seen.sampled, _ALONE), (acts, _DOMINATES)):
        if int(chosen.sum()) < _FEWEST:
            continue
        used, counts = np.unique(seen.actions[chosen], axis=0, return_counts=True)
        top, total = int(counts.argmax()), int(counts.sum())
        share = float(counts[top] / total)
        if share < most:
            continue
        yield Finding(
            check="server-action-dominates",
            weight="problem",
            certainty="likely",
            title=f"One action is {share:.0%} of all that the policy does: it has collapsed.",
            evidence=(
                f"{_named(used[top], space)}: {int(counts[top]):,} of the last {total:,} "
                f"decisions, with {options:,} actions to choose from; {len(used):,} were used.",
            ),
            next_step="Raise learner.entropy_weight, go back to a version before it (understudy "
            "models list, then rollback), and see whether its reward is right.",
            link=section("server-action-dominates"),
        )
        return


def _named(action: NDArray, space: ActionSpace) -> str:
    """`attack`, or of an action in parts the option of each: `2/0`; action [parts]."""
    if isinstance(space, Discrete):
        return space.names[int(action[0])]
    return "/".join(str(int(option)) for option in action)


def undated_rewards(evidence: Evidence) -> Iterator[Finding]:
    """Many decisions end without a reward."""
    ledger = evidence.status.ledger
    if ledger is None:
        return
    lost = {
        "expired": ledger.expired,
        "superseded": ledger.superseded,
        "orphaned": ledger.orphaned,
    }
    ended = ledger.settled + sum(lost.values())
    share = sum(lost.values()) / max(ended, 1)
    if ended < _FEWEST or share < _UNDATED:
        return
    most = max(lost, key=lambda one: lost[one])
    reasons = {
        "expired": "Rewards come later than live.reward_window_s = "
        f"{evidence.config.live.reward_window_s:g} s, or never: raise it, or send them.",
        "superseded": "Ticks are skipped, so no reward can be dated: count ticks without gaps, or "
        f"raise live.max_gap (now {evidence.config.live.max_gap}).",
        "orphaned": "Territories end, or clients vanish, before the reward: send `end` after the "
        "last reward, and keep the connection.",
    }
    yield Finding(
        check="undated-rewards",
        weight="problem" if not ledger.settled else "warning",
        certainty="certain",
        title=f"{share:.0%} of decisions end without a reward, and teach nothing.",
        evidence=(
            f"Of {ended:,} decisions that ended: {ledger.settled:,} settled, "
            + ", ".join(f"{count:,} {name}" for name, count in lost.items())
            + ".",
        ),
        next_step=reasons[most],
        link=section("undated-rewards"),
    )


def territories_without_reward(evidence: Evidence) -> Iterator[Finding]:
    """Some territories never get a reward, while others do."""
    ledger = evidence.status.ledger
    if ledger is None or ledger.settled < _FEWEST:
        return
    known = {
        name: one
        for name, one in territories_in(evidence.folder.root / LEDGER).items()
        if one.ended >= _TERRITORY
    }
    silent = {name: one for name, one in known.items() if not one.settled}
    if not silent or len(silent) < _SILENT * len(known):
        return
    clients = sorted({one.client for one in silent.values()})
    names = ", ".join(sorted(silent)[:3])
    yield Finding(
        check="territories-without-reward",
        weight="warning",
        certainty="certain",
        title=f"{len(silent):,} of {len(known):,} territories never got a reward.",
        evidence=(
            f"Without a single settled decision of {sum(one.ended for one in silent.values()):,}: "
            f"{names}{', ...' if len(silent) > 3 else ''}.",
            f"Their clients: {', '.join(clients[:3])}{', ...' if len(clients) > 3 else ''}.",
        ),
        next_step="See whether these clients send rewards, and count ticks without gaps: others "
        "of this run do.",
        link=section("territories-without-reward"),
    )


def reward_says_nothing(evidence: Evidence) -> Iterator[Finding]:
    """Rewards that are always 0, or at the clip."""
    seen = _decisions(evidence)
    if seen is None or int(seen.settled.sum()) < _FEWEST:
        return
    rewards = seen.rewards[seen.settled]
    clip = evidence.config.live.reward_clip
    if float(np.abs(rewards).max()) == 0.0:
        yield Finding(
            check="reward-always-zero",
            weight="problem",
            certainty="certain",
            title="The reward is always 0, so there is nothing to learn from.",
            evidence=(f"The last {len(rewards):,} settled decisions all have the reward 0.",),
            next_step="See what the client sends as reward, and the [rewards] of its schema.",
            link=section("reward-always-zero"),
        )
        return
    at_clip = np.abs(rewards) >= 0.999 * clip
    clipped = float(at_clip.mean())
    if clipped >= _CLIPPED and len(np.unique(rewards[~at_clip])) > _FEW_REWARDS:
        yield Finding(
            check="reward-clipped",
            weight="warning",
            certainty="likely",
            title=f"{clipped:.0%} of rewards are cut off at live.reward_clip.",
            evidence=(
                f"Of the last {len(rewards):,} rewards {clipped:.0%} are plus or minus {clip:g}: "
                "what lies beyond is all the same to the learner.",
            ),
            next_step="Scale rewards so that most lie within the clip, or raise live.reward_clip.",
            link=section("reward-clipped"),
        )


def over_reused(evidence: Evidence) -> Iterator[Finding]:
    """More samples an item than the bound."""
    trend, bound = evidence.trend("samples_per_insert"), _bound(evidence)
    now = trend.mean(of=trend.last(10))
    if evidence.kind != "server" or trend.weight < 10 or now is None or now <= _ABOVE * bound:
        return
    yield Finding(
        check="server-over-reused",
        weight="warning",
        certainty="certain",
        title="Experience is sampled more often than its bound: the learner memorises it.",
        evidence=(f"{now:.1f} samples for each that came in; the bound is {bound:g}.",),
        next_step="Was the bound lowered in a run that goes on? Then it passes as experience comes "
        "in. Else report it: this bound should hold.",
        link=section("server-over-reused"),
    )


def _bound(evidence: Evidence) -> float:
    return evidence.config.continuous.samples_per_insert


def server_learner_outrun(evidence: Evidence) -> Iterator[Finding]:
    """Segments come faster than they are taken in, or leave the replay before they are sampled."""
    if evidence.kind != "server":
        return
    busy, samples = evidence.trend("utilisation"), evidence.trend("samples_per_insert")
    load, drawn = busy.mean(of=busy.last(20)), samples.mean(of=samples.last(20))
    if busy.weight < 30 or load is None or drawn is None:
        return
    if load >= _BUSY and drawn < 0.5:
        yield Finding(
            check="server-learner-outrun",
            weight="warning",
            certainty="likely",
            title="Clients send more than the learner can learn from.",
            evidence=(
                f"The learner trains {load:.0%} of the time, and has sampled each item "
                f"{drawn:.2f} times on average, of {_bound(evidence):g} allowed; "
                f"{evidence.status.buffer_file_count:,} segments wait on disk.",
            ),
            next_step="Give the learner a machine or a core of its own (understudy learner --run), "
            "a larger continuous.batch, or a smaller network.",
            link=section("server-learner-outrun"),
        )


CHECKS = (
    gate_judges_nothing,
    gate_disagrees,
    one_action_dominates,
    undated_rewards,
    territories_without_reward,
    reward_says_nothing,
    over_reused,
    server_learner_outrun,
)
