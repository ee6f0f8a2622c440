"""Views of runs with fixed data and a fixed clock: what the screens are compared by."""

from __future__ import annotations

import msgspec

from understudy.screens.monitor.server_reader import server_view
from understudy.telemetry import events as ev
from understudy.telemetry.journal import Entry
from understudy.telemetry.played import PlayedRecord
from understudy.telemetry.promotion_status import (
    ArmResult,
    PromotionStatus,
    TrialStatus,
    VerdictNote,
)
from understudy.telemetry.run_view import AnswerTimes, RunFile, RunFiles, RunView, ServerStatus
from understudy.telemetry.status import (
    Episodes,
    LedgerCounts,
    Percentiles,
    Status,
    Trouble,
    WinRecord,
)
from understudy.telemetry.trends import TrendFold

NOW = 1_700_000_000.0
HOSTILE = "[bold red]x[/] \x1b[31mred \u202eevil"
"""What a tag or a message may be: markup, an escape sequence, a bidi control."""


class StillClock:
    """A clock that stands still."""

    def time(self) -> float:
        return NOW

    def monotonic(self) -> float:
        return NOW


def batch(loss: float) -> ev.BatchTrained:
    return ev.BatchTrained(
        matches=3, replayed=2, steps=450, seconds=1.5, loss=loss, policy_loss=loss / 2,
        value_loss=loss / 4, entropy=1.0 - loss, kl=0.01, explained_variance=0.5,
        clip_share=0.05, gradient_norm=0.4, learning_rate=7e-4, samples_per_insert=3.3,
    )  # fmt: skip


def match(index: int, outcome: str, **more: str) -> ev.MatchFinished:
    return ev.MatchFinished(
        id=f"m{index}", outcome=outcome, decisions=40, reward=float(index % 7) - 2.0, version=3,
        seconds=1.0, saved=True, tags=more, decision_us=(40.0 + index % 5, 90.0 + index % 9),
    )  # fmt: skip


def entries(count: int = 60, **tags: str) -> tuple[Entry, ...]:
    """Matches, a batch and a version every few seconds."""
    found: list[Entry] = [
        Entry(NOW - 3.0 * count - 3.0, "bot", ev.BotStarted(pid=1, mode="learn", learner="process",
                                                            version=0))
    ]  # fmt: skip
    for index in range(count):
        t = NOW - 3.0 * (count - index)
        outcome = "victory" if index * index % 5 < 2 + index // 30 else "defeat"
        found.append(Entry(t, "bot", match(index, outcome, **tags)))
        if index % 5 == 4:
            found.append(Entry(t + 1.0, "learner", batch(1.0 / (index + 2))))
            number = index // 5 + 1
            found.append(
                Entry(t + 1.5, "learner", ev.VersionPublished(version=number, parent=None,
                                                              matches=5, promoted=True))
            )  # fmt: skip
    return tuple(found)


def _trends(found: tuple[Entry, ...]) -> TrendFold:
    fold = TrendFold()
    for one in found:
        fold.add(one)
    return fold


def ring(**changes: object) -> RunView:
    """A bot of mode auto in the middle of a test."""
    found = entries(opponent="Zerg")
    promotion = PromotionStatus(
        incumbent=0,
        stage="canary",
        line="the rules play, version 12 in 20%; E 5.8 of 20 for, 0.14 of 4 against",
        why="no version has shown yet that it is better",
        tests=(
            TrialStatus(
                number=4, recheck=False, since=NOW - 100.0, version=12, against=0,
                canary=ArmResult(version=12, matches=29, mean=0.81, low=0.64, high=0.91),
                incumbent=ArmResult(version=0, matches=43, mean=0.52, low=0.38, high=0.66),
                better=5.8, better_enough=20.0, worse=0.14, worse_enough=4.0, share=0.4,
                short=60, hopeless=1.0, long=200, promising=5.0, longest=400,
            ),
        ),
        verdicts=(VerdictNote(number=3, at=NOW - 300.0, version=9, kind="undecided", words=""),),
    )  # fmt: skip
    status = Status(
        run="runs/swarm-1", at=NOW, mode="auto", matches=60, wins=33, defeats=25, ties=2,
        rules_matches=40, rules_wins=20, win_rate=0.55, win_rate_first=0.25, win_rate_last=0.75,
        decisions=2400, decision_ms=Percentiles(0.041, 0.095), version=12, versions=12, playing=12,
        last_version_time=NOW - 197.0, champion=0, learner="training", learner_pid=4321,
        learning="on", batches_trained=12, total_samples=5400, last_loss=0.0234, avg_loss=0.0456,
        last_batch_time=NOW - 2.0, buffer_file_count=3, buffer_bytes=159_949,
        archive_file_count=57, archive_bytes=799_232, agreement_last=0.83,
        agreement_last_matches=20,
        episodes=Episodes(written=60, ingested=57, archived=57), promotion=promotion,
        played=(
            PlayedRecord(player="rules", version=0, mode="auto", wins=20, losses=20),
            PlayedRecord(player="version 12", version=12, mode="auto", wins=13, losses=7),
            PlayedRecord(
                player="rules", version=0, mode="auto", tag="opponent=Zerg", wins=8, losses=9
            ),
        ),
    )  # fmt: skip
    view = RunView(
        status=status,
        trends=_trends(found).trends,
        recent=found[-12:],
        files=RunFiles(
            buffer=(RunFile(name="buffer/00000000000000000001-aa.npz", bytes=52_100, at=NOW - 5),),
            archive=(
                RunFile(name="archive/00000000000000000000-bb.npz", bytes=51_800, at=NOW - 60),
            ),
            version=RunFile(name="versions/00000012", bytes=24_883, at=NOW - 197.0),
        ),
    )
    return changed(view, **changes)


def changed(view: RunView, **changes: object) -> RunView:
    """The same with other fields of the status."""
    status = msgspec.structs.replace(view.status, **changes)
    return msgspec.structs.replace(view, status=status)


def empty() -> RunView:
    return RunView(status=Status(run="runs/new", at=NOW))


def trouble() -> RunView:
    """A learner that died, a stall, hostile names."""
    found = (*entries(6, race=HOSTILE),)
    problem = ev.Problem(where="learner", message=f"no space left: {HOSTILE}")
    view = ring(
        learner="dead", learner_pid=None, learner_deaths=3, learning="stalled",
        experience_waits_s=400.0, errors=4, constant_features=(HOSTILE, "health"),
        problems=(Trouble(NOW - 9.0, "learner", f"no space left: {HOSTILE}"),),
        quarantine_file_count=2, pinned=True, champion=7, promotion=None, mode="learn",
    )  # fmt: skip
    return msgspec.structs.replace(view, recent=(*found, Entry(NOW - 9.0, "learner", problem)))


def training() -> RunView:
    """`understudy train` in a league."""
    fold = TrendFold()
    for index in range(50):
        fold.add(Entry(NOW - 50.0 + index, "train", batch(1.0 / (index + 2))))
        wins = 2 + index // 10
        fold.add(
            Entry(NOW - 50.0 + index, "train", ev.MatchesTrained(
                steps=16_384 * index, results={"based": (10, wins, 1, 9 - wins)},
                returns={"based": wins - 3.0},
            ))
        )  # fmt: skip
    status = Status(
        run="runs/brawl-1", at=NOW, steps=819_200, matches=500, wins=200, defeats=250, ties=50,
        win_rate=0.4, version=4, versions=4, last_version_time=NOW - 30.0, learner="training",
        learner_pid=77, batches_trained=50, total_samples=819_200, last_batch_time=NOW - 1.0,
        opponents={"based": WinRecord(200, 50, 250), "step-1000": WinRecord(3, 0, 1)},
        stage="mixed", stage_since=400_000, snapshots=3, last_snapshot="step-1000",
        rating=ev.LearnerRated(steps=819_200, mu=28.0, sigma=1.2),
        last_benchmark=ev.CheckpointJudged(
            steps=800_000, version=4, seconds=3.0,
            opponents={"based": ev.OpponentTally(60, 10, 30)},
        ),
    )  # fmt: skip
    return RunView(
        status=status, trends=fold.trends,
        recent=(Entry(NOW - 1.0, "train", batch(0.02)),
                Entry(NOW - 0.5, "train", ev.Note(where="train", message="a note"))),
    )  # fmt: skip


def live_server(**changes: object) -> ServerStatus:
    return msgspec.structs.replace(
        ServerStatus(
            game="territory", gate="cost", version=31, clients=3, connections=3, territories=60,
            ledger=LedgerCounts(opened=14_380, settled=14_320, orphaned=50, open=10),
            decisions=14_380, sent=8_166, waited=6_214, explored=143, mean_reward=0.512,
            recent_reward=0.766, answer_ms=AnswerTimes(p50=1.69, p99=5.86), learner="training",
            learning="on", waiting_episodes=4, degraded=2, safe_actions={"overload": 2},
        ),
        **changes,
    )  # fmt: skip


def server() -> RunView:
    fold = TrendFold()
    for index in range(30):
        fold._put(NOW - 30.0 + index, "answer_p99_ms", 5.0 + index % 4)
        fold._put(NOW - 30.0 + index, "recent_reward", 0.5 + index / 100)
    return server_view(live_server(), fold.trends, run="http://127.0.0.1:8765/status", at=NOW)
