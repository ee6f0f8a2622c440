"""The charts of a run that the report and the dashboard share: what each shows, in plain words."""

from __future__ import annotations

from collections.abc import Iterable

from understudy.screens.html.parts import TrendChart

MET, JUDGED = "win_rate.", "benchmark."
"""Trends by opponent: matches of training, frozen ones."""

WIN_RATE = TrendChart(
    "Win rate",
    "The share of matches won (a tie is not a win), as a moving average; the band is its 95% "
    "interval. The horizontal axis is time of play; dashed lines are pauses.",
    {"win_rate": "learned versions", "rules_win_rate": "the rules"},
    "win rate",
)
RETURN = TrendChart(
    "Return of a match",
    "The sum of all rewards of a match; reward is what the learner is told to "
    "increase. The thin line shows single values, the thick one their moving average.",
    {"return": "return"},
)
RETURN_BY_RESULT = TrendChart(
    "Return of matches won and lost",
    "Matches that are won should earn more than those that are lost; where the lines touch, the "
    "reward does not tell winning from losing.",
    {"return_won": "won", "return_lost": "lost"},
)
DECISION_TIME = TrendChart(
    "Time of a decision",
    "How long the bot waited for a decision: in half of all cases less than p50, in 99 "
    "of 100 less than p99.",
    {"decision_p50_us": "p50", "decision_p99_us": "p99"},
    "microseconds",
)
DECISIONS = TrendChart(
    "Decisions in a match", "How many decisions a match takes.", {"decisions": "decisions"}
)
MATCH_TIME = TrendChart(
    "Time of a match", "How long a match takes, from its start to its end.",
    {"match_s": "a match"}, "seconds",
)  # fmt: skip
FRAMES = TrendChart("Length of a match", "How many frames a match takes.", {"frames": "frames"})

ENTROPY = TrendChart(
    "Entropy",
    "How undecided the policy is. It should fall slowly; near 0 the policy always does "
    "the same, and a flat line at the top means that it has learned nothing.",
    {"entropy": "entropy"},
)
ENTROPY_SHARE = TrendChart(
    "Entropy",
    "How undecided the policy is, as a share of the largest possible: near 0 it always "
    "does the same.",
    {"entropy_share": "entropy"},
    "share",
)
KL = TrendChart(
    "KL divergence",
    "How far one update moves the policy. Very large values mean steps that are too "
    "long; exactly 0 means that nothing moves.",
    {"kl": "of an update", "behaviour_kl": "from what played"},
)
KL_OF_UPDATES = TrendChart(
    "KL divergence of an update",
    "How far one update moves the policy. Far above its target steps are too long; exactly 0 means "
    "that nothing moves.",
    {"kl": "of an update"},
)
KL_FROM_PLAYED = TrendChart(
    "KL divergence from what played",
    "How far the policy that is trained is from those that made the decisions. Near 0 is good: "
    "what a distant policy did teaches little.",
    {"behaviour_kl": "from what played"},
)
LOSSES = TrendChart(
    "Loss",
    "What training makes small: of the value (how well results are foreseen) and of "
    "the policy. It need not fall while play improves.",
    {"value_loss": "value", "policy_loss": "policy"},
)
LOSS = TrendChart("Loss", "What training makes small.", {"loss": "loss"})
EXPLAINED_VARIANCE = TrendChart(
    "Explained variance",
    "How much of the results the value foresees: 1 is all of it, 0 is nothing.",
    {"explained_variance": "explained variance"},
)
LEARNING_RATE = TrendChart(
    "Learning rate", "How long a step of training is.", {"learning_rate": "learning rate"}
)
CLIP_SHARE = TrendChart(
    "Clipped decisions",
    "The share of decisions whose update was cut off, because the policy had moved far enough. "
    "Up to a third is usual; near 100% the steps are too long.",
    {"clip_share": "clipped"},
    "share",
)
GRADIENT = TrendChart(
    "Gradient norm",
    "How strongly a batch pulls at the weights, before it is limited. Spikes are batches that "
    "surprised the learner.",
    {"gradient_norm": "gradient norm"},
)
VERSION_LAG = TrendChart(
    "Version lag",
    "How many versions old the decisions were when they were trained on; small is good, since "
    "old decisions are those of a policy that is no more.",
    {"version_lag": "versions"},
)
SAMPLES = TrendChart(
    "Samples per insert",
    "How often each decision was trained on; far more than intended means memorising.",
    {"samples_per_insert": "samples"},
)
SPEED = TrendChart(
    "Speed of training",
    "Decisions trained on in a second of training.",
    {"steps_s": "decisions a second"},
)
UTILISATION = TrendChart(
    "Load of the learner",
    "The share of its time that the learner spends on batches.",
    {"utilisation": "busy"},
    "share",
)
REPLAY_SIZE = TrendChart("Replay", "Items that the learner can sample from.", {"buffer": "items"})
GATE_AGREEMENT = TrendChart(
    "Agreement of the gate with itself",
    "The share of sampled decisions that the gate judges as it did at first; it falls where the "
    "game drifts.",
    {"gate_agreement": "agreement"},
    "share",
)
ALL_BENCHMARKS = TrendChart(
    "Frozen matches",
    "Win rate of checkpoints in matches that nothing is learned from.",
    {"benchmark": "all opponents"},
    "win rate",
)
LATENTS = TrendChart(
    "Latents of opponents",
    "A latent is what the policy makes of its opponent: how far latents lie from their "
    "mean, and how far those of different opponents lie from each other.",
    {"latent_spread": "spread", "latent_apart": "between opponents"},
)
MEMORY = TrendChart("Memory", "Resident memory of the learner, in MiB.", {"memory_mb": "memory"})


def by_opponent(trends: Iterable[str]) -> TrendChart:
    """Win rates of training against each opponent."""
    return TrendChart(
        "Win rate by opponent",
        "The share of matches of training that were won; 'self' is all earlier copies together.",
        _named(trends, MET),
        "win rate",
    )


def benchmarks(trends: Iterable[str]) -> TrendChart:
    """Win rates of frozen matches against each opponent."""
    return TrendChart(
        "Frozen benchmarks",
        "The win rate of checkpoints in matches in which nothing is learned, by opponent.",
        _named(trends, JUDGED),
        "win rate",
    )


def _named(trends: Iterable[str], prefix: str) -> dict[str, str]:
    return {name: name.removeprefix(prefix) for name in trends if name.startswith(prefix)}
