"""The results of an analysis: the content of `analysis.json`, and a page of text.

Parts that were not computed, after Ctrl-C or because too few matches lasted so long, are null.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from understudy.analysis.ablation import CONTRASTS, WAYS, Ablation, AblationWorth, worth
from understudy.analysis.figures import chosen, option_names
from understudy.analysis.probing import ProbeVerdict
from understudy.analysis.recording import MatchRecording
from understudy.analysis.study import READINGS, AttentionRecord, by_action
from understudy.core.arrays import NDArray
from understudy.core.spaces import ActionSpace
from understudy.match.tally import Tally


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


def page(found: Findings) -> str:
    """The page of text."""
    version = "" if found.version is None else f" (version {found.version})"
    lines = [
        f"{found.game}: what {found.agent}{version} makes of its opponents, "
        f"{found.matches} matches v each of {len(found.opponents)}"
    ]
    if found.probe is not None:
        chance = 1 / len(found.opponents)
        lines += ["", *_probe_lines(found.probe, found.ceiling or {}, chance=chance)]
    if found.silhouette:
        lines += ["", "Clusters (silhouette, -1 to 1)        trained  untrained"]
        for at, (trained, untrained) in found.silhouette.items():
            lines.append(f"  after {at} s {'':<27}{trained:>7.3f}  {untrained:>9.3f}")
    if found.attention is not None:
        lines += ["", *_attention_lines(found.attention)]
    if found.ablation is not None:
        lines += ["", *_ablation_lines(found.ablation)]
    return "\n".join(lines)


def _probe_lines(
    probe: Mapping[str, Mapping[int, ProbeVerdict]], ceiling: Mapping[int, float], *, chance: float
) -> list[str]:
    lines = [
        f"A linear probe names the opponent (chance {chance:.0%}; 95% intervals):",
        f"{'':13}{'trained latent':<24}{'untrained':>9}   {'gained':<24}{'frame alone':>11}"
        f"{'itself':>9}{'at most':>10}",
    ]
    own = probe.get("itself", {})
    for at, verdict in probe["latent"].items():
        one, zero, gain = verdict.trained, verdict.untrained, verdict.gain
        share = f"{one.share:.1%} ({one.low:.1%} to {one.high:.1%})"
        gained = f"{gain.mean:+.1%} ({gain.low:+.1%} to {gain.high:+.1%})" if gain else "-"
        lines.append(
            f"  after {at} s{'':<2}{share:<24}{zero.share if zero else 0:>9.1%}   {gained:<24}"
            f"{probe['frame'][at].trained.share:>11.1%}"
            f"{f'{own[at].trained.share:.1%}' if at in own else '-':>9}"
            f"{ceiling.get(at, 1.0):>10.1%}"
        )
    if own:
        lines.append(
            "  itself: no probe, but whom the agent names; it knows whom it trained against"
        )
    return [*lines, "  at most: matches that look alike so far cannot be told apart by anyone"]


def _attention_lines(attention: Attention) -> list[str]:
    trained, untrained = attention.evenness["all"]
    shares = sorted(attention.by_action, key=lambda one: -one.trained)
    shares = [one for one in shares if one.frames >= 20]
    words = ", ".join(f"{one.action} {one.trained:.2f}" for one in shares[:3])
    least = ", ".join(f"{one.action} {one.trained:.2f}" for one in shares[-2:])
    return [
        f"Attention over {attention.window} frames: entropy {trained:.1%} of uniform "
        f"(untrained {untrained:.1%})",
        f"  most to frames in which the opponent chose {words} (1 is uniform)",
        f"  least to {least}",
    ]


def _ablation_lines(ablation: Mapping[str, Ways]) -> list[str]:
    overall = ablation["all"]
    count, donors = overall.results["own"]["matches"], overall.worth["same-other"].wins.donors
    lines = [
        f"What the latent is worth, {count} matches on the same seeds, told those of {donors} "
        "others, win rate (score):"
    ]
    words = {
        "own-other": "its own, not one of another opponent",
        "own-same": "its own, not another match's",
        "same-other": "one of this opponent, not of another",
    }
    for name, gain in overall.worth.items():
        wins, score = gain.wins, gain.score
        lines.append(
            f"  {words[name]:<38} {wins.mean:>+7.2%} ({wins.low:+.2%} to {wins.high:+.2%})"
            f"   {score.mean:>+7.2%} ({score.low:+.2%} to {score.high:+.2%})"
        )
    return lines


def _means(values: NDArray, where: NDArray) -> list[float]:
    """values [2, T, M] where bool [T, M]."""
    return [round(float(one[where].mean()), 4) if where.any() else 1.0 for one in values]
