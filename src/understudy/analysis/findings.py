"""The results of an analysis: the content of `analysis.json`, and a page of text.

Parts that were not computed, after Ctrl-C or because too few matches lasted so long, are null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from understudy.analysis.ablation import CONTRASTS, WAYS, Ablation, AblationWorth, worth
from understudy.analysis.figures import chosen, option_names
from understudy.analysis.paired import Effect
from understudy.analysis.probing import ProbeVerdict
from understudy.analysis.recording import MatchRecording
from understudy.analysis.study import READINGS, AttentionRecord, by_action
from understudy.core.arrays import NDArray
from understudy.core.spaces import ActionSpace
from understudy.match.tally import Tally
from understudy.telemetry.layout import Column, Width, hanging, kept_columns, table_lines


class ActionAttention(msgspec.Struct, frozen=True, kw_only=True):
    """Attention to the frames in which the opponent chose an action; 1 is uniform."""

    action: str
    frames: int
    trained: float
    untrained: float


class Attention(msgspec.Struct, frozen=True, kw_only=True):
    """Entropy over that of uniform weights, [trained, untrained], and attention by action."""

    matches: int
    window: int
    evenness: dict[str, list[float]]
    """By opponent; `all` is the mean."""
    by_action: list[ActionAttention]


class Ways(msgspec.Struct, frozen=True, kw_only=True):
    """The ablation against one opponent, or against all."""

    results: dict[str, dict[str, object]]
    """By way: matches, wins, draws, losses, win_rate, interval."""
    worth: dict[str, AblationWorth]
    """By contrast, such as `own-other`."""


class Findings(msgspec.Struct, kw_only=True):
    """All numbers; see `docs/analysis.md`."""

    game: str
    agent: str
    version: int | None
    matches: int
    """against each opponent"""
    seed: int
    sampled: bool
    frames_per_s: int
    opponents: list[str]
    window: int
    """how many frames the pool sees"""
    readings: dict[str, str] = msgspec.field(default_factory=lambda: dict(READINGS))
    probe: dict[str, dict[int, ProbeVerdict]] | None = None
    ceiling: dict[int, float] | None = None
    """seconds -> the highest accuracy that any predictor can reach"""
    silhouette: dict[int, list[float]] | None = None
    """[trained, untrained] by seconds"""
    distances: dict[str, list[list[float]]] | None = None
    attention: Attention | None = None
    ablation: dict[str, Ways] | None = None


def attention_of(
    record: MatchRecording, attended: AttentionRecord, actions: ActionSpace
) -> Attention:
    """Counts frames within a match; for the entropy, those with a full window."""
    weights, columns = attended.weights, attended.columns
    length, window = weights.shape[1], weights.shape[-1]
    frames = np.arange(length)[:, None]
    inside = frames <= record.lengths[columns][None] - min(window, length)
    full = (frames < record.lengths[columns][None]) & (frames >= min(window, length) - 1)
    labels = record.labels[columns]
    even = {"all": _means(attended.evenness, full)}
    for label, name in enumerate(record.opponents):
        even[name] = _means(attended.evenness, full & (labels == label)[None])
    options = chosen(actions, record.done[:, columns]) & inside
    trained, untrained = (by_action(one, options) for one in attended.received)
    names = option_names(actions)
    shares = [
        ActionAttention(
            action=names[option],
            frames=frames_of,
            trained=round(share, 4),
            untrained=round(untrained[option][0], 4),
        )
        for option, (share, frames_of) in trained.items()
    ]
    return Attention(matches=len(columns), window=window, evenness=even, by_action=shares)


def ablation_of(ablation: Ablation) -> dict[str, Ways]:
    """Against all, then against each opponent."""
    found = {}
    for label, name in ((None, "all"), *enumerate(ablation.opponents)):
        where = slice(None) if label is None else ablation.labels == label
        found[name] = Ways(
            results={way: Tally.of(ablation.scores[way][where]).as_dict() for way in WAYS},
            worth={
                f"{better}-{worse}": worth(ablation, better, worse, label=label)
                for better, worse in CONTRASTS
            },
        )
    return found


def page(found: Findings, *, width: Width = None) -> str:
    """The page of text, for a console of this width; None: a pipe or a file."""
    version = "" if found.version is None else f" (version {found.version})"
    lines = hanging(
        f"{found.game}: what {found.agent}{version} makes of its opponents, "
        f"{found.matches} matches v each of {len(found.opponents)}",
        width=width,
    )
    if found.probe is not None:
        chance = 1 / len(found.opponents)
        lines += ["", *_probe_lines(found.probe, found.ceiling or {}, chance=chance, width=width)]
    if found.silhouette:
        columns = (Column("", text=True), Column("trained"), Column("untrained"))
        rows = [
            (f"after {at} s", f"{trained:.3f}", f"{untrained:.3f}")
            for at, (trained, untrained) in found.silhouette.items()
        ]
        lines += ["", "Clusters (silhouette, -1 to 1):"]
        lines += table_lines(columns, rows, width=width, indent=2)
    if found.attention is not None:
        lines += ["", *_attention_lines(found.attention, width)]
    if found.ablation is not None:
        lines += ["", *_ablation_lines(found.ablation, width)]
    return "\n".join(lines)


def _probe_lines(
    probe: Mapping[str, Mapping[int, ProbeVerdict]],
    ceiling: Mapping[int, float],
    *,
    chance: float,
    width: Width,
) -> list[str]:
    own = probe.get("itself", {})
    columns = [
        Column("", text=True),
        Column("trained latent", text=True),
        Column("untrained"),
        Column("gained", text=True, drop=2),
        Column("frame alone", drop=3),
        Column("at most", drop=4),
        *([Column("itself", drop=1)] if own else []),
    ]
    rows: list[Sequence[str]] = []
    for at, verdict in probe["latent"].items():
        one, zero, gain = verdict.trained, verdict.untrained, verdict.gain
        rows.append(
            (
                f"after {at} s",
                f"{one.share:.1%} ({one.low:.1%} to {one.high:.1%})",
                f"{zero.share:.1%}" if zero else "-",
                f"{gain.mean:+.1%} ({gain.low:+.1%} to {gain.high:+.1%})" if gain else "-",
                f"{probe['frame'][at].trained.share:.1%}",
                f"{ceiling.get(at, 1.0):.1%}",
                *([f"{own[at].trained.share:.1%}" if at in own else "-"] if own else []),
            )
        )
    shown = kept_columns(columns, rows, None if width is None else width - 2)
    notes = {
        "at most": "at most: matches that look alike so far cannot be told apart by anyone",
        "itself": "itself: no probe, but whom the agent names; it knows whom it trained against",
    }
    return [
        f"A linear probe names the opponent (chance {chance:.0%}; 95% intervals):",
        *table_lines(columns, rows, width=width, indent=2),
        *(
            line
            for name, words in notes.items()
            if name in shown
            for line in hanging(words, width=width, indent=2)
        ),
    ]


def _attention_lines(attention: Attention, width: Width) -> list[str]:
    trained, untrained = attention.evenness["all"]
    shares = sorted(attention.by_action, key=lambda one: -one.trained)
    shares = [one for one in shares if one.frames >= 20]
    words = ", ".join(f"{one.action} {one.trained:.2f}" for one in shares[:3])
    least = ", ".join(f"{one.action} {one.trained:.2f}" for one in shares[-2:])
    return [
        f"Attention over {attention.window} frames: entropy {trained:.1%} of uniform "
        f"(untrained {untrained:.1%})",
        *hanging(
            f"most to frames in which the opponent chose {words} (1 is uniform)",
            width=width,
            indent=2,
        ),
        *hanging(f"least to {least}", width=width, indent=2),
    ]


def _ablation_lines(ablation: Mapping[str, Ways], width: Width = None) -> list[str]:
    overall = ablation["all"]
    count, donors = overall.results["own"]["matches"], overall.worth["same-other"].wins.donors
    words = {
        "own-other": "its own, not one of another opponent",
        "own-same": "its own, not another match's",
        "same-other": "one of this opponent, not of another",
    }
    columns = (Column("", text=True), Column("win rate", text=True), Column("score", True, drop=1))
    rows = [(words[name], _gain(gain.wins), _gain(gain.score)) for name, gain in
            overall.worth.items()]  # fmt: skip
    return [
        *hanging(
            f"What the latent is worth, {count} matches on the same seeds, told those of {donors} "
            "others:",
            width=width,
        ),
        *table_lines(columns, rows, width=width, indent=2),
    ]


def _gain(gain: Effect) -> str:
    return f"{gain.mean:+.2%} ({gain.low:+.2%} to {gain.high:+.2%})"


def _means(values: NDArray, where: NDArray) -> list[float]:
    """values [2, T, M] where bool [T, M]."""
    return [round(float(one[where].mean()), 4) if where.any() else 1.0 for one in values]
