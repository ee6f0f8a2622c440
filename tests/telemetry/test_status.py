from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.telemetry import events as ev
from understudy.telemetry.fold import Spread, StatusFold
from understudy.telemetry.journal import Journal, Reader
from understudy.telemetry.status import Folder, Folders, Status
from understudy.telemetry.status_reader import StatusReader

from .entries import FixedClock, at, batch, continuous, match, published, served, started

OUTCOMES = st.sampled_from(["victory", "defeat", "tie", "aborted", "something new"])


def folded(events: Iterable[ev.Event], folders: Folders | None = None, now: float = 0.0) -> Status:
    fold = StatusFold()
    for t, event in enumerate(events):
        fold.add(at(float(t), event))
    return fold.status(folders or Folders(), now)


def test_a_run_without_events_is_all_zero() -> None:
    status = folded([])
    assert (status.matches, status.batches_trained, status.versions) == (0, 0, 0)
    assert status.win_rate is None and status.win_rate_first is None
    assert status.last_batch_time is None and status.decision_ms is None
    assert status.learner == "not started"


def test_known_events_give_known_numbers() -> None:
    status = folded(
        [
            ev.BotStarted(pid=1, mode="learn", learner="process", version=0),
            started(),
            match("victory", fallback=4, agreed=3),
            match("defeat"),
            match("tie", saved=False),
            match("aborted"),
            batch(3, loss=0.5, steps=100, seconds=1.0),
            batch(1, loss=0.1, steps=50, seconds=0.5),
            published(1, 4),
            ev.EpisodesArchived(count=5, too_old=1),
            ev.EpisodeQuarantined(name="a.npz", reason="cut short"),
            ev.VersionAdopted(version=1, previous=0),
            ev.Evaluated(version=1, matches=10, wins=6, draws=1, losses=3, opponent="rules"),
            ev.Problem(where="bot", message="oops"),
            ev.ConstantFeatures(names=("larva",), decisions=500),
            ev.BotStopped(matches=4),
            ev.LearnerStopped(reason="asked", pending=0, cpu_s=9.0, wall_s=10.0),
        ],
        Folders(Folder(2, 200), Folder(5, 500), Folder(1, 10)),
    )
    assert (status.wins, status.defeats, status.ties, status.aborted) == (1, 1, 1, 1)
    assert status.matches == 4 and status.unsaved == 1
    assert status.aborted_share == 0.25 and folded([]).aborted_share is None
    assert status.win_rate == pytest.approx(1 / 3)
    assert (status.files_processed, status.batches_trained, status.total_samples) == (4, 2, 150)
    assert status.avg_loss == pytest.approx(0.3) and status.last_loss == 0.1
    assert status.total_processing_time == pytest.approx(1.5)
    assert status.last_batch_time == 7.0
    assert status.last_batch is not None and status.last_batch.entropy == 1.3
    assert msgspec.to_builtins(status.episodes) == {
        "written": 3,
        "ingested": 4,
        "archived": 5,
        "quarantined": 1,
    }
    assert status.files_skipped_old == 1
    assert (status.versions, status.version, status.playing) == (1, 1, 1)
    assert status.learner == "stopped" and status.learner_cpu_share == pytest.approx(0.9)
    assert status.errors == 2
    assert [problem.message for problem in status.problems] == ["a.npz: cut short", "oops"]
    assert (status.buffer_file_count, status.archive_file_count) == (2, 5)
    assert (status.buffer_bytes, status.archive_bytes, status.quarantine_file_count) == (
        200,
        500,
        1,
    )
    assert (status.decisions, status.fallback, status.agreed) == (40, 4, 3)
    assert status.constant_features == ("larva",)
    assert status.last_evaluation is not None and status.last_evaluation.wins == 6


def test_the_statistics_of_the_old_learner_keep_their_names() -> None:
    names = {field.name for field in msgspec.structs.fields(Status)}
    assert names >= {
        "files_processed", "batches_trained", "total_samples", "avg_loss", "last_loss",
        "total_processing_time", "errors", "active_workers", "max_workers", "buffer_file_count",
        "archive_file_count", "quarantine_file_count", "files_skipped_old", "last_batch_time",
    }  # fmt: skip


@given(st.lists(OUTCOMES, max_size=60))
def test_fifths_are_those_of_a_slow_reference(outcomes: list[str]) -> None:
    finished = [o for o in outcomes if o in {"victory", "defeat", "tie"}]
    fifth = len(finished) // 5

    def rate(part: list[str]) -> float | None:
        return sum(o == "victory" for o in part) / len(part) if part else None

    status = folded(match(outcome) for outcome in outcomes)
    assert status.win_rate == rate(finished)
    assert status.win_rate_first == rate(finished[:fifth])
    assert status.win_rate_last == rate(finished[len(finished) - fifth :])
    total = status.wins + status.defeats + status.ties + status.aborted
    assert status.matches == len(outcomes) == total


@given(
    st.lists(st.tuples(st.floats(1.0, 1e6), st.integers(1, 300)), min_size=1, max_size=40),
)
def test_median_of_decision_times_is_near_the_exact_one(pairs: list[tuple[float, int]]) -> None:
    spread = Spread()
    for value, weight in pairs:
        spread.add(value, weight)
    exact = sorted(value for value, weight in pairs for _ in range(weight))
    assert spread.median() == pytest.approx(exact[(len(exact) - 1) // 2], rel=0.026)


def test_decision_times_weigh_matches_by_decisions_and_ignore_unmeasured_ones() -> None:
    status = folded(
        [
            match(decisions=100, decision_us=(200.0, 900.0)),
            match(decisions=1, decision_us=(9_000.0, 9_000.0)),
            match(decisions=5_000),
        ]
    )
    assert status.decision_ms is not None
    assert status.decision_ms.p50 == pytest.approx(0.2, rel=0.026)
    assert status.decision_ms.p99 == pytest.approx(0.9, rel=0.026)


def test_a_batch_that_was_not_committed_counts_once_when_it_is_trained_again() -> None:
    events: list[ev.Event] = [started(), batch(3), published(1, 3), batch(4)]
    before = folded(events)
    assert (before.files_processed, before.episodes.ingested) == (7, 3)

    events += [ev.LearnerDied(code=-9, restart_in_s=1.0), started(version=1, pending=4)]
    restarted = folded(events)
    assert (restarted.files_processed, restarted.episodes.ingested) == (3, 3)

    after = folded([*events, batch(4), published(2, 4)])
    assert (after.files_processed, after.episodes.ingested, after.versions) == (7, 7, 2)
    assert after.batches_trained == 3


def test_a_version_whose_event_was_lost_is_known_from_the_next_start() -> None:
    events: list[ev.Event] = [started(), batch(3), published(1, 3, 3), batch(4)]
    events += [started(version=2, total=7)]  # killed after the commit, before the journal
    status = folded(events)
    assert (status.episodes.ingested, status.versions, status.version) == (7, 2, 2)
    for later in (published(3, 2), published(3, 2, 9)):
        assert folded([*events, batch(2), later]).episodes.ingested == 9


def test_thousands_of_events_stay_exact_and_small() -> None:
    fold = StatusFold()
    for t in range(6_000):
        fold.add(at(float(t), match("victory" if t >= 3_000 else "defeat", decision_us=(t, t))))
        fold.add(at(float(t), ev.Problem(where="x", message="y" * 10_000)))
    status = fold.status(Folders())
    assert (status.matches, status.errors, len(status.problems)) == (6_000, 6_000, 5)
    assert (status.win_rate_first, status.win_rate, status.win_rate_last) == (0.0, 0.5, 1.0)
    assert len(msgspec.json.encode(status)) < 8_000


@pytest.mark.parametrize(
    ("events", "pending", "now", "state"),
    [
        ([ev.BotStarted(pid=1, mode="learn", learner="process", version=0)], 0, 0, "starting"),
        (
            [started(), ev.BotStarted(pid=1, mode="learn", learner="process", version=0)],
            0,
            0,
            "starting",
        ),  # the one before was killed together with its bot
        ([ev.BotStarted(pid=1, mode="learn", learner="off", version=0)], 3, 0, "not started"),
        ([started()], 0, 0, "idle"),
        ([started()], 2, 0, "training"),
        ([started(), batch()], 0, 5, "training"),
        ([started(), batch()], 0, 60, "idle"),
        (
            [batch(), ev.WaitingForExperience(samples_per_insert=8.0)],
            0,
            2,
            "waiting for experience",
        ),
        ([batch(), ev.WaitingForExperience(samples_per_insert=8.0)], 1, 2, "training"),
        ([started(), ev.LearnerStopped(reason="asked", pending=0)], 2, 0, "stopped"),
        ([started(), ev.LearnerDied(code=1, restart_in_s=None)], 2, 0, "dead"),
        ([ev.LearnerDied(code=1, restart_in_s=1.0), started()], 0, 0, "idle"),
    ],
)
def test_learner_state(events: list[ev.Event], pending: int, now: float, state: str) -> None:
    status = folded(events, Folders(buffer=Folder(pending, 0)), now)
    assert status.learner == state
    assert status.active_workers == (state == "training")


def test_status_survives_json() -> None:
    status = folded([started(), match(), batch(version_lag={"0": 3}), published(1, 3)])
    assert msgspec.json.decode(msgspec.json.encode(status), type=Status) == status


def test_reader_takes_several_files_a_torn_line_and_only_what_is_new(tmp_path: Path) -> None:
    clock = FixedClock()
    folder = tmp_path / "journal"
    folder.mkdir()
    reader = StatusReader(tmp_path, clock)
    bot, learner = Journal(folder, "bot", clock), Journal(folder, "learner", clock)
    bot.write(match())
    clock.now += 1
    learner.write(batch(1))
    assert (reader.read().matches, reader.read().batches_trained) == (1, 1)

    line = msgspec.json.encode(at(clock.now, match("defeat"))) + b"\n"
    [path] = folder.glob("bot-*.jsonl")
    with path.open("ab") as file:
        file.write(line[:20])
    assert reader.read().matches == 1
    with path.open("ab") as file:
        file.write(line[20:])
    (folder / "bot-other.jsonl").write_bytes(b'{"torn\n' + line)
    status = reader.read()
    assert (status.matches, status.wins, status.defeats) == (3, 1, 2)
    assert reader.read() == status == StatusReader(tmp_path, clock).read()


def test_reader_counts_whole_episodes_only(tmp_path: Path) -> None:
    assert StatusReader(tmp_path, FixedClock()).read().buffer_file_count == 0
    for folder, names in {
        "buffer": ["a.npz", "b.npz", ".tmp-1.npz"],
        "archive": ["c.npz", ".tmp-9"],
        "quarantine": ["d.npz", "d.npz.reason.json"],
    }.items():
        (tmp_path / folder).mkdir()
        for name in names:
            (tmp_path / folder / name).write_bytes(b"12345")
    status = StatusReader(tmp_path, FixedClock(77.0)).read()
    assert (status.buffer_file_count, status.buffer_bytes) == (2, 10)
    assert (status.archive_file_count, status.quarantine_file_count) == (1, 1)
    assert (status.at, status.run) == (77.0, str(tmp_path))


def test_what_training_met_is_added_up_by_opponent() -> None:
    def trained(steps: int, **results: tuple[int, int, int, int]) -> ev.MatchesTrained:
        return ev.MatchesTrained(steps=steps, results=results)

    status = folded(
        [
            started(),
            batch(5),
            trained(256, based=(4, 1, 0, 2), random=(2, 2, 0, 0)),
            batch(4),
            trained(512, based=(3, 2, 1, 0), random=(0, 0, 0, 1), self=(1, 0, 0, 0)),
        ]
    )
    assert status.steps == 512
    assert msgspec.to_builtins(status.opponents) == {
        "based": {"wins": 3, "draws": 1, "losses": 2},
        "random": {"wins": 2, "draws": 0, "losses": 1},
        "self": {"wins": 0, "draws": 0, "losses": 0},
    }
    assert (status.matches, status.wins, status.ties, status.defeats) == (9, 5, 1, 3)
    assert status.win_rate == pytest.approx(5 / 9)
    assert status.batches_trained == 2 and status.learner_heard == 4.0


def test_training_that_goes_on_from_an_earlier_version_says_where_it_is() -> None:
    """Killed after 512 steps with a version at 256: those steps are trained again."""
    told = [ev.MatchesTrained(steps=steps, results={}) for steps in (256, 512)]
    status = folded([started(), told[0], published(1, 0), told[1], started(1), told[1]])
    assert (status.steps, status.version, status.versions) == (512, 1, 1)
    assert folded([]).steps == 0 and folded([]).opponents == {}


def test_matches_and_reward_of_an_environment() -> None:
    """Killed after 70 matches with a version at 40, which the next session goes on from."""

    def trained(total: int, matches: int, left: float) -> ev.MatchesTrained:
        sides = {"left": left, "right": -left}
        returns = {"environment": 0.0}
        return ev.MatchesTrained(
            steps=total, results={}, returns=returns, matches=matches, total_matches=total,
            sides=sides,
        )  # fmt: skip

    status = folded([started(), trained(40, 40, 1.0), trained(70, 30, 0.0), started(1)])
    assert (status.matches, status.reward, status.reward_matches) == (70, 0.0, 70)
    assert status.sides["left"] == pytest.approx(40 / 70)
    more = [trained(100, 60, 0.5), trained(150, 50, 0.25)]
    status = folded([started(), trained(40, 40, 1.0), trained(70, 30, 0.0), started(1), *more])
    assert (status.matches, status.reward_matches) == (150, 110), "the newest 100 or more"
    assert status.sides["left"] == pytest.approx((60 * 0.5 + 50 * 0.25) / 110)
    old = ev.MatchesTrained(steps=9, results={}, returns={"environment": 7.5}, matches=3)
    status = folded([started(), old, ev.MatchesTrained(steps=10, results={})])
    assert (status.matches, status.reward, status.sides) == (3, 7.5, {})


def test_an_iteration_survives_the_way_through_a_journal(tmp_path: Path) -> None:
    event = ev.MatchesTrained(steps=64, results={"based": (1, 2, 3, 4)}, returns={"based": -0.5})
    (tmp_path / "journal").mkdir()
    Journal(tmp_path / "journal", "train", FixedClock()).write(event)
    (entry,) = Reader(tmp_path / "journal").new()
    assert entry.e == event
    assert StatusReader(tmp_path, FixedClock()).read().opponents["based"].losses == 4


def test_the_learner_behind_a_server() -> None:
    status = folded([started(), continuous(2, loss=0.2), continuous(6, loss=0.4)], now=3.0)
    assert (status.batches_trained, status.total_samples) == (8, 1000)
    assert status.avg_loss == pytest.approx((2 * 0.2 + 6 * 0.4) / 8)
    assert status.last_loss == 0.4
    assert status.files_processed == 6 and status.learner == "training"
    assert status.continuous is not None
    assert (status.continuous.buffer, status.continuous.agreement) == (900, 0.9)
    told: list[ev.Event] = [started(), continuous(), published(1, 3, 3)]
    waiting = folded([*told, ev.WaitingForExperience(samples_per_insert=8.0)])
    assert waiting.waiting and waiting.learner == "waiting for experience"
    assert waiting.episodes.ingested == waiting.files_processed == 3
    back = ev.RolledBack(reason="collapse", version=9, to=3, published=10)
    after = folded([*told, back, continuous()])
    assert (after.rollbacks, after.waiting) == (1, False)


def test_what_servers_of_a_run_answered_is_added_up() -> None:
    status = folded(
        [
            ev.BotStarted(pid=1, mode="serve", learner="off", version=0),
            served(10, answers=(0, 4, 6), errors={"bad_json": 1}, explored=2, gate="cost"),
            ev.BotStopped(matches=0),
            served(5, answers=(5,), errors={"bad_json": 2, "rate": 1}, clients=7, gate="cost"),
        ]
    )
    totals = status.server
    assert totals is not None
    assert (totals.decisions, totals.sent, totals.waited, totals.explored) == (15, 7, 8, 2)
    assert totals.answers == (5, 4, 6) and totals.errors == {"bad_json": 3, "rate": 1}
    assert (totals.clients, totals.gate, totals.at) == (7, "cost", 3.0)


def test_no_client_is_connected_to_a_server_that_has_stopped() -> None:
    totals = folded([served(), ev.BotStopped(matches=0)]).server
    assert totals is not None and totals.decisions == 10
    assert (totals.clients, totals.connections, totals.territories) == (0, 0, 0)
