"""The parts of a status report as labelled lines: training, the reward, a run that is served.

A label is empty where a line continues the subject of the line above it. `report` puts the parts
together; `understudy models` and `understudy train` print some of them alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from understudy.core.opponents import kind_of
from understudy.core.statistics import margin, points, wilson
from understudy.telemetry.events import BatchTrained, CheckpointJudged, ContinuousTrained
from understudy.telemetry.history import SNAPSHOTS
from understudy.telemetry.played import PlayedRecord
from understudy.telemetry.promotion_status import in_units
from understudy.telemetry.status import Estimate, RewardStatus, Status, VersionReward, WinRecord
from understudy.telemetry.text import Lines, many, plain


def opponents_met(status: Status) -> dict[str, WinRecord]:
    """Opponents with an ended match, over the whole run; snapshots together, since there can be
    hundreds."""
    met: dict[str, WinRecord] = {}
    for name, one in status.opponents.items():
        kind = kind_of(name, SNAPSHOTS)
        so_far = met.get(kind, WinRecord())
        met[kind] = WinRecord(
            so_far.wins + one.wins, so_far.draws + one.draws, so_far.losses + one.losses
        )
    return {name: one for name, one in met.items() if one.matches}


def opponent_lines(status: Status) -> Lines:
    """Whom it met, and how often it won."""
    rows = [
        f"{plain(name)} {one.wins / one.matches:.0%} of {one.matches:,}"
        for name, one in opponents_met(status).items()
    ]
    return _under("Opponents", rows)


def played_lines(status: Status) -> Lines:
    """Win rates by player and by tag, where evidence decides who plays; the most played."""
    if status.promotion is None:
        return []
    players = [one for one in status.played if not one.tag and one.matches]
    totals = {(one.player, one.mode): one.matches for one in players}
    # A tag that all matches of a player have says nothing.
    tagged = [
        one
        for one in status.played
        if one.tag and 0 < one.matches < totals.get((one.player, one.mode), 0)
    ]
    return [
        *_under("Players", [_played(one) for one in players[:4]]),
        *_under("By tag", [_played(one) for one in tagged[:6]]),
    ]


def _played(one: PlayedRecord) -> str:
    low, high = one.interval
    name = f"{one.player}, {plain(one.tag, limit=30)}" if one.tag else one.player
    figures = f"{one.wins / one.matches:.0%} of {one.matches:,} ({low:.0%} to {high:.0%})"
    return f"{name}: {figures}, mode {one.mode or 'unknown'}"


def league_lines(status: Status) -> Lines:
    """The stage, the rating, the snapshots and the last benchmark, as far as there are any."""
    lines: Lines = []
    if status.stage:
        since = f"since step {status.stage_since:,}" if status.stage_since else "from the start"
        lines.append(("Stage", f"{plain(status.stage)}, {since}"))
    if status.rating is not None:
        rated = f"{points(status.rating.mu):.0f} +- {margin(status.rating.sigma):.0f}"
        lines.append(("Rating", f"{rated} (95% of the belief)"))
    if status.snapshots:
        newest = f", the newest is {plain(status.last_snapshot)}" if status.last_snapshot else ""
        lines.append(("Snapshots", f"{status.snapshots:,} in the league{newest}"))
    if status.last_benchmark is not None:
        lines += _benchmark(status.last_benchmark)
    if status.last_note:
        served = status.promotion is not None and status.promotion.served
        lines.append(("Note", in_units(plain(status.last_note), served=served)))
    return lines


def rewards_text(mean: float, sides: Mapping[str, float]) -> str:
    """The mean reward of a match, or that of each agent where there are several: of two sides of a
    zero-sum match the mean over agents is always 0."""
    if not sides:
        return f"{mean:.4g}"
    return ", ".join(f"{plain(agent)} {reward:.2f}" for agent, reward in sides.items())


def behaviour_kl(batch: BatchTrained | ContinuousTrained) -> list[str]:
    """How far the trained policy is from the one that played; nothing where it was not measured."""
    if batch.behaviour_kl is None or batch.behaviour_kl_max is None:
        return []
    return [
        f"behaviour KL {batch.behaviour_kl:.2g}, at most {batch.behaviour_kl_max:.2g} "
        "for one decision (0: what is trained is what played)"
    ]


def _benchmark(judged: CheckpointJudged) -> Lines:
    rows = [f"version {judged.version} at step {judged.steps:,}, in frozen matches:"]
    if judged.matches:
        rows.append(f"reward {rewards_text(judged.reward, judged.sides)} of {judged.matches:,}")
    for name, one in judged.opponents.items():
        matches = one.wins + one.draws + one.losses
        low, high = wilson(one.wins, matches)
        share = one.wins / max(matches, 1)
        # Drawn matches are what separates an equal from a loser in games that are often drawn.
        drawn = f", {one.draws:,} drawn" if judged.matches and one.draws else ""
        rows.append(f"{plain(name)} {share:.0%} of {matches:,} ({low:.0%} to {high:.0%}){drawn}")
    return _under("Benchmark", rows)


def _under(label: str, rows: Sequence[str]) -> Lines:
    return [("" if index else label, row) for index, row in enumerate(rows)]


def reward_lines(reward: RewardStatus | None) -> Lines:
    """Now, at the start, and of random and fixed actions."""
    if reward is None:
        return []
    rows = [_reward_now(reward)]
    if reward.start is not None and reward.start != reward.now:
        known = "at the start" if reward.start.first <= 1 else "of the earliest versions known"
        rows.append(f"{known} {_reward_of(reward.start, reward)}")
    rows += _alternative_actions(reward)
    return [("" if index else "Reward", row) for index, row in enumerate(rows)]


def estimate(one: Estimate) -> str:
    """`0.31 (0.29 to 0.33)`"""
    return f"{one.mean:.3g} ({one.low:.3g} to {one.high:.3g})"


def _reward_now(reward: RewardStatus) -> str:
    if reward.now is None:
        return f"not known yet: {reward.counted} of {reward.needed} {_reward_unit(reward)}"
    return f"{_reward_of(reward.now, reward)} (reward per {reward.per})"


def _reward_of(one: VersionReward, reward: RewardStatus) -> str:
    span = f"version {one.last}" if one.first == one.last else f"versions {one.first} to {one.last}"
    return f"{estimate(one.reward)} by {span} in {one.count:,} {_reward_unit(reward)}"


def _reward_unit(reward: RewardStatus) -> str:
    return "segments" if reward.per == "decision" else "matches"


def _alternative_actions(reward: RewardStatus) -> list[str]:
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


def decision_lines(status: Status) -> Lines:
    """How many there were, and how they ended; nothing where the ledger was not read."""
    counts = status.ledger
    if counts is None:
        return []
    words = (
        f"{counts.opened:,} = {counts.settled:,} settled + {counts.expired:,} expired + "
        f"{counts.superseded:,} superseded + {counts.orphaned:,} orphaned + {counts.open:,} open"
    )
    return [("Decisions", words)]


def continuous_lines(status: Status) -> Lines:
    """The replay, the last second of training, the gate and what was taken back."""
    lines: Lines = []
    told = status.continuous
    if told is not None:
        waits = "; waiting for experience" if status.waiting else ""
        lines += [
            (
                "Replay",
                f"{told.buffer:,} items held, {told.samples_per_insert:.1f} samples per insert"
                f"{waits}",
            ),
            (
                "Lately",
                f"busy {told.utilisation:.0%} of the time, entropy {told.entropy:.3f} "
                f"({told.entropy_share:.0%} of the largest), KL {told.kl:.4f}, "
                f"explained variance {told.explained_variance:.2f}, "
                f"learning rate {told.learning_rate:.2g}{_step_share(told.step_share)}",
            ),
            *(("", row) for row in behaviour_kl(told)),
        ]
        if told.agreement is not None:
            lines.append(
                ("Gate", f"judges {told.agreement:.0%} of what is sampled as it did at first")
            )
    if status.rollbacks:
        times = "once" if status.rollbacks == 1 else f"{status.rollbacks:,} times"
        lines.append(("Rollbacks", f"{times} a learner gave up what it had learned"))
    return lines


def _step_share(share: float | None) -> str:
    return "" if share is None else f", steps {share:.0%} of full size"


def segment_lines(status: Status) -> Lines:
    """What became of those that left."""
    e = status.episodes
    old = f" ({status.files_skipped_old:,} too old)" if status.files_skipped_old else ""
    words = f"{e.ingested:,} learned from, {e.archived:,} archived{old}"
    return [("Segments", f"{words}, {e.quarantined:,} quarantined")]


def waiting(status: Status) -> str:
    """What waits in the buffer: `3 matches wait`."""
    return waits(status.buffer_file_count, served=status.served)


def waits(count: int, *, served: bool) -> str:
    """`1 match waits`, `3 segments wait`"""
    return f"{learned_from(count, served=served)} {'waits' if count == 1 else 'wait'}"


def learned_from(count: int, *, served: bool) -> str:
    """`1 match`, `3 segments`: what a learner takes in from a bot, or from a server."""
    return many(count, "segment", "segments") if served else many(count, "match", "matches")


def relay_hints(status: Status) -> list[str]:
    """What to do next where another machine learns, in whole lines."""
    if not status.buffer_file_count:
        return []
    run, store = plain(status.run, limit=4096), plain(status.relay_to, limit=4096)
    return [f"{waiting(status)} for the relay; if none runs: understudy relay {run} {store}"]


def served_hints(status: Status) -> list[str]:
    """What to do next, in whole lines; the learner of matches has no place here."""
    run = plain(status.run, limit=4096)
    lines = []
    if status.buffer_file_count and status.learner in {"not started", "stopped", "dead"}:
        lines.append(
            f"{waiting(status)} to be learned from, by the server's gate: "
            f"understudy learner --run {run} --continuous --gate GATE"
        )
    if status.continuous is not None and status.continuous.agreement is not None:
        lines.append(f"What the gate is worth: understudy gate --run {run}")
    return lines
