from __future__ import annotations

from pathlib import Path

import pytest

from understudy.core.statistics import wilson
from understudy.games import catalog
from understudy.telemetry import events as ev
from understudy.telemetry.history import History
from understudy.telemetry.table import Table
from understudy.telemetry.training_rows import (
    BEHAVIOUR,
    CHECKPOINTS,
    LEAGUE,
    MONITOR,
    REWARDS,
    STRATEGY,
    TRAINING,
    TableRow,
    TrainingRows,
    columns_of,
)

from .entries import at, batch, iteration, published

WON = ("based", 1, 300, {"win": 65536})
LOST = ("step-65536", -1, 200, {"win": -65536})
MEASURES = [column.name for column in catalog.measure_columns()]
RATIOS = {"damage_ratio": ("damage_dealt", "damage_taken")}
COLUMNS = columns_of(MEASURES)
DOCUMENT = Path(__file__).parents[2] / "docs" / "monitoring.md"


def rows_of(rows: TrainingRows, *told: tuple[float, ev.Event]) -> list[TableRow]:
    return [row for t, event in told for row in rows.add(at(t, event))]


def only(rows: list[TableRow], table: str) -> list[dict[str, object]]:
    return [dict(row) for name, row in rows if name == table]


def test_every_match_is_a_row_at_once() -> None:
    rows = rows_of(TrainingRows(100.0), (102.5, iteration(64, WON, LOST)))
    assert only(rows, MONITOR) == [
        {"r": 1.0, "l": 300, "t": 2.5, "steps": 64, "opponent": "based", "result": "win"},
        {"r": -1.0, "l": 200, "t": 2.5, "steps": 64, "opponent": "step-65536", "result": "loss"},
    ]
    assert len(rows) == 2


def test_an_interval_lasts_some_seconds() -> None:
    rows = TrainingRows(100.0, every_s=5.0)
    early = rows_of(rows, *((101.0 + i, iteration(64 * (i + 1), WON)) for i in range(5)))
    assert only(early, BEHAVIOUR) == []
    late = rows_of(rows, (105.9, batch()), (106.0, iteration(384, WON, LOST)))
    behaviour = only(late, BEHAVIOUR)
    assert [(row["opponent"], row["matches"]) for row in behaviour] == [
        ("based", 6),
        ("step-65536", 1),
    ]
    assert {row["steps"] for row in behaviour} == {384}
    assert {row["time_s"] for row in behaviour} == {6.0}
    assert [row["opponent"] for row in only(late, REWARDS)] == ["all", "based", "step-65536"]
    assert only(late, TRAINING)[0]["iterations"] == 1


@pytest.mark.parametrize(
    "event",
    [
        published(1, 1),
        ev.LearnerStopped(reason="done", pending=0),
        ev.StageChanged(steps=64, before="one", after="two", reason="92%"),
    ],
)
def test_what_matters_ends_an_interval(event: ev.Event) -> None:
    rows = TrainingRows(0.0, every_s=1e9)
    assert only(rows_of(rows, (1.0, iteration(64, WON)), (2.0, event)), BEHAVIOUR)


def test_no_row_mixes_two_stages() -> None:
    rows = TrainingRows(0.0, every_s=1e9)
    told = rows_of(
        rows, (1.0, iteration(64, WON, stage="one")), (2.0, iteration(128, WON, stage="two"))
    )
    told += list(rows.close())
    assert [(row["stage"], row["steps"]) for row in only(told, BEHAVIOUR)] == [
        ("one", 64),
        ("two", 128),
    ]


def test_a_clock_that_is_set_back_ends_the_interval_instead_of_stretching_it() -> None:
    rows = TrainingRows(0.0, every_s=5.0)
    told = rows_of(rows, (1000.0, iteration(64, WON)), (10.0, iteration(128, WON)))
    assert len(only(told, BEHAVIOUR)) == 1


def test_steps_never_fall_within_a_table() -> None:
    rows = TrainingRows(0.0, every_s=2.0)
    told: list[TableRow] = []
    for i in range(1, 20):
        told += rows_of(
            rows,
            (float(i), batch()),
            (float(i), iteration(64 * i, WON, LOST)),
            (float(i), ev.LearnerRated(steps=64 * i, mu=25.0, sigma=8.0)),
        )
        if i % 5 == 0:
            name = f"step-{64 * i}"
            taken = ev.SnapshotTaken(steps=64 * i, name=name, kept=True, reason="due", pool=i)
            told += rows_of(rows, (float(i), taken))
    for table in COLUMNS:
        steps = [int(row["steps"]) for row in only(told, table)]  # type: ignore[call-overload]
        assert steps == sorted(steps)
    assert [row["event"] for row in only(told, LEAGUE)].count("snapshot") == 3


def test_the_last_rating_and_strategy_of_an_interval_count() -> None:
    rows = TrainingRows(0.0, every_s=1e9)
    told = []
    for i in (1, 2):
        measured = ev.StrategyMeasured(
            steps=i, latent_mean=0.1 * i, latent_spread=1.0, attention_entropy=0.5, drift=0.0,
            by_opponent={"based": (0.5, 0.25)},
        )  # fmt: skip
        told += rows_of(rows, (1.0, measured), (1.0, ev.LearnerRated(steps=i, mu=20 + i, sigma=2)))
    told += list(rows.close())
    (rated,) = only(told, LEAGUE)
    assert (rated["mu"], rated["steps"]) == (22, 2)
    everyone, based = only(told, STRATEGY)
    assert (everyone["opponent"], everyone["latent_mean"]) == ("all", 0.2)
    assert (based["opponent"], based["latent_1"], based["latent_2"]) == ("based", 0.5, 0.25)


def test_a_judged_checkpoint_has_intervals_and_means_a_match() -> None:
    tally = ev.OpponentTally(15, 1, 4, 2.5, 2000.0, 1000.0, 50.0, 5.0)
    judged = ev.CheckpointJudged(
        steps=64,
        version=3,
        seconds=1.5,
        opponents={"based": tally, "nobody": ev.OpponentTally(0, 0, 0)},
    )
    (row,) = only(rows_of(TrainingRows(0.0, ratios=RATIOS), (1.0, judged)), CHECKPOINTS)
    assert (row["low"], row["high"]) == wilson(15, 20)
    assert (row["win_rate"], row["damage_dealt"], row["damage_ratio"]) == (0.75, 100.0, 2.0)
    assert (row["knockouts"], row["falls"], row["mean_return"]) == (2.5, 0.25, 2.5)


def test_what_happens_in_a_league_has_a_row_with_words() -> None:
    replaced = ev.AgentReplaced(
        steps=64, agent=2, parent=5, fitness=0.4, parent_fitness=0.9, settings={"clip": 0.25}
    )
    refused = ev.SnapshotTaken(steps=64, name="step-64", kept=False, reason="no better", pool=3)
    advanced = ev.StageChanged(steps=64, before="one", after="two", reason="92%")
    rows = only(
        rows_of(TrainingRows(0.0), (1.0, replaced), (2.0, refused), (3.0, advanced)), LEAGUE
    )
    assert [row["name"] for row in rows] == ["agent-2", "step-64", "two"]
    assert rows[0]["note"] == "by a copy of agent-5 (fitness 0.9 against 0.4): clip 0.25"
    assert (rows[1]["kept"], rows[1]["pool"]) == (0, 3)
    assert rows[2]["note"] == "after one: 92%"


def test_rows_have_no_column_that_their_table_does_not_announce() -> None:
    rows = TrainingRows(0.0, ratios=RATIOS)
    told = rows_of(rows, (1.0, batch()), (1.0, iteration(64, WON))) + list(rows.close())
    for table, row in told:
        assert {name for name in row if not name.startswith("term_")} <= set(COLUMNS[table])


def test_every_number_of_an_update_is_in_the_table() -> None:
    kept_apart = {"matches", "replayed", "steps", "seconds", "samples_per_insert", "version_lag"}
    kept_apart.add("step_share")  # of the ring alone: `train` has its schedules
    assert set(ev.BatchTrained.__struct_fields__) - kept_apart <= set(COLUMNS[TRAINING])


def test_a_run_whose_table_has_fewer_columns_goes_on_with_all_of_them(tmp_path: Path) -> None:
    path = tmp_path / f"{TRAINING}.csv"
    path.write_text("time_s,steps,stage,iterations,kl\n1.5,64,,1,0.01\n", encoding="utf-8")
    table, rows = Table(path, COLUMNS[TRAINING]), TrainingRows(0.0)
    table.begin(64)
    told = rows_of(rows, (1.0, batch(kl=0.02, recognition_loss=0.5)), (2.0, iteration(128, WON)))
    for row in only(told + list(rows.close()), TRAINING):
        table.add(row)  # type: ignore[arg-type]
    table.flush()
    assert path.read_text(encoding="utf-8").startswith("time_s,steps,stage,iterations,kl,loss,")
    history = History()
    for read in table.rows():
        history.add(TRAINING, read)
    assert history.training["kl"].values() == pytest.approx([0.01, 0.02])
    assert history.training["recognition_loss"].steps().tolist() == [128]
    assert history.training["recognition_loss"].values().tolist() == [0.5]


def test_every_table_and_column_is_documented() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    for table, columns in COLUMNS.items():
        start = text.index(f"\n## {table}.csv")
        section = text[start : text.index("\n## ", start + 1)]
        missing = [name for name in columns if f"| `{name}` |" not in section]
        assert not missing, f"{table}.csv: {missing} not in {DOCUMENT.name}"
