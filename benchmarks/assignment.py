"""What promotion by evidence costs a bot: an assignment before a match, a result after it, a start.

python benchmarks/assignment.py [--json]

All of it is durable: an assignment or a result returns when it survives a power cut. Beside them,
on the same disk: the two syncs of a new file alone, a row committed to SQLite (synchronous=FULL),
and the same assignments on a disk that syncs nothing, which is what the program itself takes.
"""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import machine
import numpy as np

from understudy.core import files
from understudy.core.clock import SystemClock
from understudy.core.config import Config, with_values
from understudy.core.files import Disk
from understudy.core.spaces import Discrete
from understudy.gates.promotion.records import Assigned, Nominated, Resolved, TrialSettings
from understudy.policy.mlp import Mlp
from understudy.policy.spec import PolicySpec
from understudy.promotion.log import PromotionLog
from understudy.promotion.promotion import Promotion
from understudy.registry.run_folder import RunFolder

SIZES, REPEATS, STARTS = (100, 10_000), 300, 5
_NEVER = 10**9
OPEN_END = {
    "harm": 1e300,
    "alpha": 1e-300,
    "hopeless": 0.0,
    "misfit": 1e300,
    "long": _NEVER,
    "longest": _NEVER,
}
"""One test that goes on for as long as the benchmark does."""


class _Unsynced(Disk):
    """Fills a log quickly: what is measured is synced."""

    def sync(self, path: Path) -> None:
        pass

    def sync_folder(self, path: Path) -> None:
        pass


def measure() -> dict[str, object]:
    """Milliseconds, by matches in the log where that matters."""
    with tempfile.TemporaryDirectory(dir=".") as root:
        found = {str(size): _of_log(Path(root) / str(size), size) for size in SIZES}
        peers = {"two_syncs": _two_syncs(Path(root)), "sqlite": _sqlite(Path(root))}
    return {"logs": found, "peers": peers, "machine": machine.describe("numpy", "msgspec")}


def _of_log(root: Path, matches: int) -> dict[str, dict[str, float]]:
    folder = RunFolder.open(
        root,
        spec=PolicySpec(("a",), Discrete(("left", "right")), Mlp(widths=(2,))),
        config=with_values(Config(), {"promotion.match_timeout_s": 1e9}),
        clock=SystemClock(),
    )
    with files.using(_Unsynced()):
        _fill(folder, matches)
    starts = [_timed(lambda: Promotion(folder)) for _ in range(STARTS)]
    bot = Promotion(folder)
    assign, resolve = _play(bot, "synced")
    with files.using(_Unsynced()):
        assign_unsynced, resolve_unsynced = _play(bot, "unsynced")
    if bot.state.test is None or bot.state.open:
        raise SystemExit("the test ended, or a match was not counted: this measures nothing")
    return {
        "assign": assign,
        "resolve": resolve,
        "assign without syncs": assign_unsynced,
        "resolve without syncs": resolve_unsynced,
        "start": _summary(starts),
    }


def _play(bot: Promotion, name: str) -> tuple[dict[str, float], dict[str, float]]:
    """What the assignments and the results of some matches take."""
    rng = np.random.default_rng(1)
    assigned, resolved = [], []
    for number in range(REPEATS):
        uniform = float(rng.random())
        began = time.perf_counter()
        order, _ = bot.assign(f"{name} {number}", {"opponent": "o"}, uniform)
        between = time.perf_counter()
        bot.resolve(order, 1.0, "finished")
        assigned.append(1e3 * (between - began))
        resolved.append(1e3 * (time.perf_counter() - between))
    return _summary(assigned), _summary(resolved)


def _fill(folder: RunFolder, matches: int) -> None:
    """A log with one test and so many matches, half of them the canary's."""
    Promotion(folder).declare(rules="benchmark", score=None)
    log = PromotionLog(folder.promotion)
    log.new()
    test = log.create(Nominated(version=1, settings=TrialSettings(**OPEN_END)))  # type: ignore[arg-type]
    rng = np.random.default_rng(0)
    for number in range(matches):
        coin, won = rng.random(2)
        order = log.create(
            Assigned(
                match=f"{number:032x}",
                arm="canary" if coin < 0.5 else "incumbent",
                version=int(coin < 0.5),
                test=test,
                share=0.5,
                uniform=float(coin),
                stratum="opponent=o",
                session="elsewhere/1/abcd",
            )
        )
        log.create(Resolved(order=order, result=float(won < 0.5), session="elsewhere/1/abcd"))
    log.compact()


def _two_syncs(root: Path) -> dict[str, float]:
    """A file of a record's size, under its name for good."""
    took = [
        _timed(lambda number=number: files.create_exclusive(root / f"{number}.json", b"x" * 400))  # type: ignore[misc]
        for number in range(REPEATS)
    ]
    return _summary(took)


def _sqlite(root: Path) -> dict[str, float]:
    """A row of a record's size, committed to a write-ahead log that is synced."""
    database = sqlite3.connect(root / "peer.sqlite", isolation_level=None)
    try:
        for line in ("journal_mode=WAL", "synchronous=FULL"):
            database.execute(f"PRAGMA {line}")
        database.execute("CREATE TABLE log (number INTEGER PRIMARY KEY, record BLOB)")
        row = "INSERT INTO log (record) VALUES (?)"
        return _summary(
            [_timed(lambda: database.execute(row, (b"x" * 400,))) for _ in range(REPEATS)]
        )
    finally:
        database.close()


def _timed(work: Callable[[], object]) -> float:
    """Milliseconds."""
    began = time.perf_counter()
    work()
    return 1e3 * (time.perf_counter() - began)


def _summary(took: list[float]) -> dict[str, float]:
    return {"median_ms": float(np.median(took)), "p99_ms": float(np.percentile(took, 99))}


def words(
    logs: dict[str, dict[str, dict[str, float]]], peers: dict[str, dict[str, float]], machine: str
) -> str:
    lines = [f"{'':49} {'median':>9} {'p99':>9}"]
    rows = [
        (f"{what}, {int(size):,} matches in the log", took)
        for size, log in logs.items()
        for what, took in log.items()
    ]
    rows += [("two syncs alone", peers["two_syncs"]), ("a row in SQLite", peers["sqlite"])]
    lines += [
        f"{name:49} {took['median_ms']:6.2f} ms {took['p99_ms']:6.2f} ms" for name, took in rows
    ]
    return "\n".join([*lines, "goal: an assignment in 2 ms on a quiet machine, in the median"])


if __name__ == "__main__":
    machine.tell(__doc__, measure, words)
