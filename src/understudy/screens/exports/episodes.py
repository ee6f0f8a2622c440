"""The episodes of a run as two tables: `episodes`, and `decisions` with a row a decision."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.spaces import ActionSpace, Discrete, MultiBinary
from understudy.experience.episode import Episode
from understudy.policy.spec import PolicySpec
from understudy.screens.exports.metrics import json_text
from understudy.screens.exports.schema import Cells, ExportColumn, ExportTable

EPISODES = ExportTable(
    "episodes",
    (
        ExportColumn("episode", "text"),
        ExportColumn("outcome", "text"),
        ExportColumn("finished_at", "float"),
        ExportColumn("decisions", "integer"),
        ExportColumn("total_reward", "float"),
        ExportColumn("goes_on", "boolean"),
        ExportColumn("tags", "json"),
        ExportColumn("imported_from", "text"),
        ExportColumn("cameo_coin", "float"),
        ExportColumn("folder", "text"),
        ExportColumn("file", "text"),
    ),
    numbered=True,
)
_DECISION = (
    ExportColumn("episode", "text"),
    ExportColumn("step", "integer"),
    ExportColumn("version", "integer"),
    ExportColumn("sampled", "boolean"),
    ExportColumn("executed", "boolean"),
    ExportColumn("reward", "float32"),
    ExportColumn("log_prob", "float32"),
    ExportColumn("value", "float32"),
    ExportColumn("settled", "boolean"),
    ExportColumn("explored", "boolean"),
    ExportColumn("gate_expected", "float32"),
    ExportColumn("cameo", "integer"),
    ExportColumn("cut", "boolean"),
    ExportColumn("legal", "text"),
    ExportColumn("action", "text"),
)
ACTION, FEATURE = "action.", "feature."
"""What the columns of action parts and of features begin with."""


def decisions_table(spec: PolicySpec) -> ExportTable:
    """The columns of a run's decisions: those of every run, then action parts and features."""
    parts = range(len(spec.actions.parts))
    return ExportTable(
        "decisions",
        (
            *_DECISION,
            *(ExportColumn(f"{ACTION}{part}", "integer") for part in parts),
            *(ExportColumn(f"{FEATURE}{name}", "float32") for name in spec.features),
        ),
        numbered=True,
    )


def episode_row(episode: Episode, path: Path) -> list[Cells]:
    """One row of `episodes`, as columns."""
    meta = episode.meta
    return [
        [meta.id],
        [str(meta.outcome)],
        [meta.finished_at],
        [len(episode)],
        [float(episode.rewards.astype(np.float64).sum())],
        [episode.truncated],
        [json_text(meta.tags)],
        [meta.imported_from],
        [meta.cameo_coin],
        [path.parent.name],
        [path.name],
    ]


def decision_columns(episode: Episode, spec: PolicySpec) -> list[Cells]:
    """The rows of `decisions` of one episode, as columns in the order of the table."""
    length = len(episode)
    yes, no = np.ones(length, np.bool_), np.zeros(length, np.bool_)
    expected = [None] * length if episode.expected is None else _known(episode.expected)
    log_probs = [
        value if drawn else None
        for value, drawn in zip(episode.log_probs.tolist(), episode.sampled.tolist(), strict=True)
    ]
    return [
        [episode.meta.id] * length,
        np.arange(length),
        episode.versions,
        episode.sampled,
        yes if episode.sent is None else episode.sent,
        episode.rewards,
        log_probs,
        episode.values,
        episode.taught,
        no if episode.explored is None else episode.explored,
        expected,
        np.zeros(length, np.int16) if episode.cameos is None else episode.cameos,
        no if episode.cuts is None else episode.cuts,
        [None] * length if episode.legal is None else _masks(episode.legal),
        action_names(episode.actions, spec.actions),
        *episode.actions.T,
        *episode.observations.T,
    ]


def action_names(actions: NDArray, space: ActionSpace) -> list[str]:
    """Of actions [T, parts]: `attack`, `left+jump`, or the option of each part, `2/0`."""
    if isinstance(space, Discrete):
        return [space.names[option] for option in actions[:, 0].tolist()]
    if isinstance(space, MultiBinary):
        return [
            "+".join(name for name, on in zip(space.names, row, strict=True) if on)
            for row in actions.tolist()
        ]
    return ["/".join(map(str, row)) for row in actions.tolist()]


def _masks(legal: NDArray) -> list[str]:
    """bool [T, options] as `1011` for each decision."""
    digits = legal.astype(np.uint8) + ord("0")
    return [row.tobytes().decode("ascii") for row in digits]


def _known(expected: NDArray) -> list[float | None]:
    return [None if math.isnan(one) else one for one in expected.tolist()]
