"""The metrics of a run as tables: one table for each kind of event in its journal.

Most tables have a row an event and the event's own fields as columns, so a field that an event
gains is a new column. What has no table of its own is a row of `events`.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from understudy.screens.exports.schema import ColumnKind, ExportColumn, ExportTable
from understudy.telemetry import events as ev
from understudy.telemetry.journal import Entry

_HEAD = (ExportColumn("at", "float"), ExportColumn("by", "text"))
"""When, in seconds since 1970, and which kind of process wrote it."""
_FLAT: dict[str, type[msgspec.Struct]] = {
    "matches": ev.MatchFinished,
    "batches": ev.BatchTrained,
    "continuous_batches": ev.ContinuousTrained,
    "served": ev.ServerCounted,
    "versions": ev.VersionPublished,
    "adoptions": ev.VersionAdopted,
    "roles": ev.RoleChanged,
    "evaluations": ev.Evaluated,
    "strategy": ev.StrategyMeasured,
    "stages": ev.StageChanged,
    "snapshots": ev.SnapshotTaken,
    "ratings": ev.LearnerRated,
    "replaced_agents": ev.AgentReplaced,
    "rollbacks": ev.RolledBack,
    "problems": ev.Problem,
    "notes": ev.Note,
}
_PERCENTILES = ("decision_p50_us", "decision_p99_us")
_SCALARS: dict[Any, ColumnKind] = {int: "integer", float: "float", str: "text", bool: "boolean"}
_TALLY = ("wins", "draws", "losses", "mean_return", *ev.OPPONENT_MEASURES)


def _kind(annotation: Any) -> ColumnKind:
    """Of a field; whatever is no number, text or truth value is JSON."""
    if isinstance(annotation, types.UnionType):
        annotation = next(one for one in typing.get_args(annotation) if one is not type(None))
    return _SCALARS.get(annotation, "json")


def _columns(event: type[msgspec.Struct]) -> Iterator[ExportColumn]:
    for field in msgspec.structs.fields(event):
        if event is ev.MatchFinished and field.name == "decision_us":
            yield from (ExportColumn(name, "float") for name in _PERCENTILES)
        else:
            yield ExportColumn(field.name, _kind(field.type))


def _named(kind: ColumnKind, *names: str) -> tuple[ExportColumn, ...]:
    return tuple(ExportColumn(name, kind) for name in names)


METRICS: dict[str, ExportTable] = {
    **{name: ExportTable(name, (*_HEAD, *_columns(event))) for name, event in _FLAT.items()},
    "training_matches": ExportTable(
        "training_matches",
        (
            *_HEAD,
            *_named("integer", "steps"),
            *_named("text", "stage", "opponent"),
            *_named("integer", "started", "wins", "draws", "losses", "matches"),
            *_named("float", "mean_return"),
            *_named("json", "terms", "measures", "sides"),
        ),
    ),
    "benchmarks": ExportTable(
        "benchmarks",
        (
            *_HEAD,
            *_named("integer", "steps", "version"),
            *_named("float", "seconds"),
            *_named("text", "opponent"),
            *_named("integer", *_TALLY[:3]),
            *_named("float", *_TALLY[3:]),
            *_named("integer", "matches"),
            *_named("float", "reward"),
            *_named("json", "sides"),
        ),
    ),
    "events": ExportTable(
        "events", (*_HEAD, ExportColumn("event", "text"), ExportColumn("details", "json"))
    ),
}
"""Every table of `--as metrics`, by name."""


def metric_rows(entry: Entry) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """The rows that an entry of the journal becomes: the name of the table, and the cells."""
    head = (entry.t, entry.by)
    match entry.e:
        case ev.MatchesTrained() as e:
            for cells in _training_rows(e):
                yield "training_matches", (*head, *cells)
        case ev.CheckpointJudged() as e:
            for cells in _benchmark_rows(e):
                yield "benchmarks", (*head, *cells)
        case e:
            table = _TABLE_OF.get(type(e))
            if table is None:
                fields = msgspec.to_builtins(e)
                fields.pop("event")
                yield "events", (*head, type(e).__name__, json_text(fields))
            else:
                yield table, (*head, *_getters[table](e))


def json_text(value: object) -> str:
    """Plain data as JSON."""
    return msgspec.json.encode(value).decode("utf-8")


def _training_rows(e: ev.MatchesTrained) -> Iterator[tuple[Any, ...]]:
    for name, counts in e.results.items():
        yield (
            e.steps, e.stage, name, *counts, None, e.returns.get(name),
            json_text(e.terms.get(name, {})), json_text(e.measures.get(name, {})), None,
        )  # fmt: skip
    if e.matches:  # of an environment, whose matches have no winner
        yield (
            e.steps, e.stage, ev.ENVIRONMENT, None, None, None, None, e.matches,
            e.returns.get(ev.ENVIRONMENT), None, None, json_text(e.sides),
        )  # fmt: skip


def _benchmark_rows(e: ev.CheckpointJudged) -> Iterator[tuple[Any, ...]]:
    head = (e.steps, e.version, e.seconds)
    for name, one in e.opponents.items():
        yield (*head, name, *(getattr(one, field) for field in _TALLY), None, None, None)
    if e.matches:
        missing = (None,) * len(_TALLY)
        yield (*head, ev.ENVIRONMENT, *missing, e.matches, e.reward, json_text(e.sides))


def _getter(table: str, event: type[msgspec.Struct]) -> Callable[[Any], tuple[Any, ...]]:
    """The cells of an event of one kind."""
    kinds = {column.name: column.kind for column in METRICS[table].columns}

    def cells(e: Any) -> tuple[Any, ...]:
        row: list[Any] = []
        for name in event.__struct_fields__:
            value = getattr(e, name)
            if name in kinds:
                row.append(json_text(value) if kinds[name] == "json" else value)
            else:
                row += value  # the percentiles of a decision
        return tuple(row)

    return cells


_TABLE_OF: dict[type[Any], str] = {event: name for name, event in _FLAT.items()}
_getters = {name: _getter(name, event) for name, event in _FLAT.items()}
