"""The reward in words, with what it is measured against; what cannot be told is said.

A label is empty where a line goes on with what the one above it is about.
"""

from __future__ import annotations

from understudy.telemetry.status import Estimate, RewardStatus, VersionReward
from understudy.telemetry.text import plain
from understudy.telemetry.training_report import Lines


def lines(reward: RewardStatus | None) -> Lines:
    """Now, at the start, and of random and fixed actions."""
    if reward is None:
        return []
    rows = [_now(reward)]
    if reward.start is not None and reward.start != reward.now:
        known = "at the start" if reward.start.first <= 1 else "of the earliest versions known"
        rows.append(f"{known} {_of_versions(reward.start, reward)}")
    rows += _alternatives(reward)
    return [("" if index else "Reward", row) for index, row in enumerate(rows)]


def estimate(one: Estimate) -> str:
    """`0.31 (0.29 to 0.33)`"""
    return f"{one.mean:.3g} ({one.low:.3g} to {one.high:.3g})"


def _now(reward: RewardStatus) -> str:
    if reward.now is None:
        return f"not known yet: {reward.counted} of {reward.needed} {_unit(reward)}"
    return f"{_of_versions(reward.now, reward)} (reward per {reward.per})"


def _of_versions(one: VersionReward, reward: RewardStatus) -> str:
    span = f"version {one.last}" if one.first == one.last else f"versions {one.first} to {one.last}"
    return f"{estimate(one.reward)} by {span} in {one.count:,} {_unit(reward)}"


def _unit(reward: RewardStatus) -> str:
    return "segments" if reward.per == "decision" else "matches"


def _alternatives(reward: RewardStatus) -> list[str]:
    if reward.per == "match":
        return []  # the reward of a match comes of many decisions
    if reward.policy is None:
        return []
    rows = [f"the last {reward.decisions:,} decisions {estimate(reward.policy)}; in place of each:"]
    if reward.random is None:
        few = f"{reward.random_segments:.0f} of {reward.needed} segments"
        rows.append(f"a random action: cannot be told, the policy draws too few (worth {few})")
    else:
        rows.append(f"a random action {estimate(reward.random)}")
    if reward.fixed is not None:
        name = plain(reward.fixed_action)
        of = f"of {reward.fixed_known}"
        if reward.fixed_known < reward.actions:
            others = reward.actions - reward.fixed_known
            of += f" that can be told; the policy draws {others} too rarely"
        rows.append(f"the fixed action {name!r} {estimate(reward.fixed)}, the best {of}")
    elif not reward.fixed_compared:
        rows.append(f"a fixed action: {reward.actions:,} are too many to compare one by one")
    else:
        rows.append("a fixed action: cannot be told, the policy draws each of them too rarely")
    return rows
