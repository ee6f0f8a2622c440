"""How long a run of a year takes to open: `status`, the first view of a screen, `doctor`, memory.

    python benchmarks/year_of_play.py [--events 1000000] [--kinds ring server arena] [--keep DIR]
                                      [--goals] [--json]

A short real run of each kind is played first: swarm in mode `auto`, territory behind a server with
promotion, brawl in the arena. Its journal is then repeated over a year, with other times, ids and
versions, and in proportion its promotion log (up to 300,000 matches), `pruned.jsonl` and archive.
Each command runs in a process of its own, once on the journal alone and once with the summaries
that a writer keeps, with compiled modules as an installed program has them. Seconds are of the
wall; those of the CPU tell what a busy machine adds.
`--keep` reuses the runs of an earlier call; `--goals` exits with 1 where a goal is missed.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import machine
import msgspec
import served

from understudy.core.clock import SystemClock
from understudy.core.seals import seal
from understudy.experience import episode as episodes
from understudy.experience.spool import files_of
from understudy.gates.promotion import roles
from understudy.gates.promotion.records import Ordered, Record, Resolved
from understudy.promotion.log import BLOCK, PromotionLog
from understudy.registry.run_folder import RunFolder
from understudy.telemetry import events as ev
from understudy.telemetry.journal import Entry, Reader

KINDS = ("ring", "server", "arena")
YEAR_S = 365 * 86_400.0
DAYS = 365
GOALS = {"status_s": 1.0, "view_s": 1.0, "doctor_s": 10.0, "memory_mb": 300.0, "fold_s": 15.0}
_VERSIONED = ("version", "parent", "previous", "assigned", "to", "published")
_TRAINED = (
    ev.MatchesTrained, ev.StrategyMeasured, ev.StageChanged, ev.SnapshotTaken, ev.CheckpointJudged,
    ev.LearnerRated,
)  # fmt: skip
_ARCHIVED = 5000
_RECORDS = 600_000
_PLAY_MINUTES = "0.5"
_VIEW = (
    "import sys, pathlib\n"
    "from understudy.core.clock import SystemClock\n"
    "from understudy.registry.run_folder import RunFolder\n"
    "from understudy.run.view import ViewReader\n"
    "folder = RunFolder.load(pathlib.Path(sys.argv[1]), SystemClock())\n"
    "print(len(ViewReader(folder).read().trends))\n"
)
_SUMMARISE = (
    "import sys, pathlib\n"
    "from understudy.core.clock import SystemClock\n"
    "from understudy.registry.run_folder import RunFolder\n"
    "from understudy.run.view import summarise\n"
    "summarise(RunFolder.load(pathlib.Path(sys.argv[1]), SystemClock()))\n"
)


# --- a short real run of each kind ---------------------------------------------------------------


def play_short(kind: str, run: Path) -> None:
    """Make a run folder by playing for half a minute."""
    if kind == "ring":
        _understudy("play", "swarm", "--mode", "auto", "--minutes", _PLAY_MINUTES, "--eval", "0",
                    "--run", str(run))  # fmt: skip
    elif kind == "arena":
        _understudy("train", "brawl", "--minutes", _PLAY_MINUTES, "--run", str(run))
    else:
        with served.understudy(run, "territory", "--promotion", "auto") as server:
            _understudy("play", "territory", "--url", server.url, "--minutes", _PLAY_MINUTES)


def _understudy(*arguments: str) -> None:
    command = [sys.executable, "-m", "understudy", *arguments]
    subprocess.run(command, check=True, capture_output=True)


# --- a year of it --------------------------------------------------------------------------------


def grow(source: Path, target: Path, *, count: int) -> dict[str, int]:
    """Copy a run folder and repeat its journal, promotion log and pruned versions up to `count`
    entries. The last repetition keeps its times and ids, so that the versions still fit."""
    shutil.copytree(source, target)
    folder = RunFolder.load(target, SystemClock())
    entries = Reader(folder.journal).new()
    copies = -(-count // len(entries))
    for path in folder.journal.iterdir():
        path.unlink() if path.is_file() else shutil.rmtree(path)
    versions = max(folder.versions.numbers(), default=0)
    steps = max((one.e.steps for one in entries if isinstance(one.e, _TRAINED)), default=0)
    matches = max((getattr(one.e, "total_matches", 0) for one in entries), default=0)
    records = _closed_log(folder)
    for day in range(DAYS):
        lines: dict[str, list[bytes]] = {}
        for copy in range(copies * day // DAYS, copies * (day + 1) // DAYS):
            for one in entries:
                moved = Entry(
                    t=one.t - _earlier(copy, copies),
                    by=one.by,
                    e=_moved(one.e, copy, copies, versions, steps, matches, len(records)),
                )
                lines.setdefault(one.by, []).append(msgspec.json.encode(moved) + b"\n")
        at = int(1e3 * (entries[0].t - _earlier(copies * day // DAYS, copies)))
        for by, told in lines.items():
            (folder.journal / f"{by}-{at:013d}-{day + 1}.jsonl").write_bytes(b"".join(told))
    grown = _grow_promotion(folder, records, copies, versions)
    _grow_spool(folder, entries, copies)
    return {"events": copies * len(entries), "records": grown}


def grown(kind: str, home: Path, *, count: int) -> tuple[Path, Path, dict[str, int]]:
    """A short run and the year that was made of it, of this call or of an earlier one."""
    source, run, told = (home / f"{kind}-{name}" for name in ("source", count, f"{count}.json"))
    if not source.exists():
        play_short(kind, source)
    if not run.exists():
        told.write_text(json.dumps(grow(source, run, count=count)), encoding="utf-8")
    return source, run, json.loads(told.read_text(encoding="utf-8"))


def summarise(run: Path) -> tuple[float, float, float]:
    """Fold the whole journal, as its writer does bit by bit; see `measured`."""
    return measured("-c", _SUMMARISE, str(run))


def _earlier(copy: int, copies: int) -> float:
    """Seconds by which a repetition lies before the last one."""
    return (copies - 1 - copy) * YEAR_S / copies


def _key(key: str, copy: int, copies: int) -> str:
    return key if copy == copies - 1 else f"{key}.{copy}"


def _moved(
    event: ev.Event,
    copy: int,
    copies: int,
    versions: int,
    steps: int,
    matches: int,
    records: int,
) -> ev.Event:
    changed: dict[str, Any] = {}
    for name in _VERSIONED:
        if getattr(event, name, None):
            changed[name] = getattr(event, name) + copy * versions
    if isinstance(event, _TRAINED):
        changed["steps"] = event.steps + copy * steps
    if getattr(event, "total_matches", 0):
        changed["total_matches"] = getattr(event, "total_matches", 0) + copy * matches
    if isinstance(event, ev.MatchFinished):
        changed["id"] = _key(event.id, copy, copies)
    if isinstance(event, ev.RoleChanged) and event.test:
        changed["test"] = event.test + copy * records
    return msgspec.structs.replace(event, **changed)


def _closed_log(folder: RunFolder) -> list[Record]:
    """The promotion log of the run, with an end for all that is open."""
    if not folder.by_evidence:
        return []
    told = PromotionLog(folder.promotion).new()
    state, _ = roles.fold(roles.PromotionState(), told)
    records: list[Record] = [record for _, record in told]
    last = records[-1].at
    records += [Resolved(order=order, ending="void", at=last) for order in sorted(state.open)]
    if state.test is not None:
        records.append(Ordered(order="stop", at=last))
    return records


def _grow_promotion(
    folder: RunFolder, records: Sequence[Record], copies: int, versions: int
) -> int:
    if not records:
        return 0
    for path in folder.promotion.glob("0*.json*"):
        path.unlink()
    block: list[bytes] = []
    kept = min(copies, -(-_RECORDS // len(records)))
    total = kept * len(records)
    number = 0
    for record in _moved_records(records, copies, kept, versions):
        number += 1
        data = seal(msgspec.json.encode(record))
        if number > total - total % BLOCK - BLOCK:
            (folder.promotion / f"{number:08d}.json").write_bytes(data)
            continue
        block.append(data + b"\n")
        if len(block) == BLOCK:
            name = f"{number - BLOCK + 1:08d}-{number:08d}.jsonl"
            (folder.promotion / name).write_bytes(b"".join(block))
            block = []
    return total


def _moved_records(
    records: Sequence[Record], copies: int, kept: int, versions: int
) -> Iterator[Record]:
    for place, copy in enumerate(range(copies - kept, copies)):
        shift = place * len(records)
        for record in records:
            changed: dict[str, Any] = {"at": record.at - _earlier(copy, copies)}
            for name in ("order", "test"):
                value = getattr(record, name, 0)
                if isinstance(value, int) and value:
                    changed[name] = value + shift
            if getattr(record, "version", 0):
                changed["version"] = getattr(record, "version", 0) + copy * versions
            if hasattr(record, "match"):
                changed["match"] = _key(record.match, copy, copies)
            yield msgspec.structs.replace(record, **changed)


def _grow_spool(folder: RunFolder, entries: Sequence[Entry], copies: int) -> None:
    """What earlier repetitions ingested, in `pruned.jsonl`, and the newest of it in the archive."""
    saved = [one for one in entries if isinstance(one.e, ev.MatchFinished) and one.e.saved]
    if not saved:
        return
    by_id = {}
    for path in files_of(folder.root).values():
        by_id[episodes.read_meta(path).id] = path
    left = _ARCHIVED
    lines: list[bytes] = []
    for copy in reversed(range(copies - 1)):
        ingested: dict[str, str] = {}
        for one in saved:
            assert isinstance(one.e, ev.MatchFinished)
            key = _key(one.e.id, copy, copies)
            at = one.t - _earlier(copy, copies)
            name = f"{int(at * 1e9):020d}-{len(ingested):016x}.npz"
            ingested[key] = name
            source = by_id.get(one.e.id)
            if left and source is not None:
                left -= 1
                told = episodes.decode(source.read_bytes(), folder.spec, what=source.name)
                meta = msgspec.structs.replace(told.meta, id=key, finished_at=at)
                data = episodes.encode(dataclasses.replace(told, meta=meta))
                (folder.root / "archive" / name).write_bytes(data)
        lines.append(b"\n" + msgspec.json.encode(ingested) + b"\n")
    (folder.versions.root / "pruned.jsonl").write_bytes(b"".join(reversed(lines)))


# --- measuring -----------------------------------------------------------------------------------


def measured(*command: str) -> tuple[float, float, float]:
    """Wall and CPU seconds of a process, and the most memory that it held, in MB."""
    began = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as child:
        assert child.stderr is not None
        said = child.stderr.read()
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - began
    found = 1 if "doctor" in command else 0  # the doctor found a problem
    if child.returncode not in (0, found):
        raise SystemExit(f"{command} failed: {said.decode()[-2000:]}")
    return seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def measure_run(run: Path, *, rounds: int) -> dict[str, float]:
    """The best of some rounds; memory is the worst of all commands."""
    commands = {
        "status_s": ("-m", "understudy", "status", "--run", str(run)),
        "view_s": ("-c", _VIEW, str(run)),
        "doctor_s": ("-m", "understudy", "doctor", "--run", str(run)),
    }
    found: dict[str, float] = {"memory_mb": 0.0}
    for name, command in commands.items():
        took = []
        for _ in range(rounds):
            seconds, cpu, memory = measured(*command)
            took.append((seconds, cpu))
            found["memory_mb"] = max(found["memory_mb"], memory)
        found[name], found[name.replace("_s", "_cpu_s")] = min(took)
    return found


def measure_kind(kind: str, home: Path, *, count: int) -> list[dict[str, Any]]:
    """A row without and a row with summaries."""
    source, run, sizes = grown(kind, home, count=count)
    measure_run(source, rounds=1)  # compiles all modules
    shutil.rmtree(run / "journal" / "summaries", ignore_errors=True)
    shutil.rmtree(run / "promotion" / "summaries", ignore_errors=True)
    rows = [{"kind": kind, "summaries": "no", **sizes, **measure_run(run, rounds=1)}]
    seconds, cpu, memory = summarise(run)
    row = {"kind": kind, "summaries": "yes", **sizes, **measure_run(run, rounds=3)}
    rows.append({**row, "fold_s": seconds, "fold_cpu_s": cpu, "fold_mb": memory})
    return rows


def missed(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The goals that are not reached."""
    found = []
    for row in rows:
        goals = GOALS if row["summaries"] == "yes" else {
            "status_s": GOALS["fold_s"], "view_s": GOALS["fold_s"], "memory_mb": GOALS["memory_mb"],
        }  # fmt: skip
        for name, goal in goals.items():
            if row.get(name, 0.0) > goal:
                found.append(f"{row['kind']}, summaries {row['summaries']}: {name} is "
                             f"{row[name]:.2f}, goal {goal:g}")  # fmt: skip
    return found


def table(rows: Sequence[dict[str, Any]]) -> str:
    """One line for each row."""
    columns = (
        "status_s", "status_cpu_s", "view_s", "view_cpu_s", "doctor_s", "doctor_cpu_s",
        "memory_mb", "fold_s", "fold_cpu_s", "fold_mb",
    )  # fmt: skip
    head = f"{'kind':<8}{'summaries':<11}{'events':>11}{'records':>11}"
    lines = [head + "".join(f"{name:>14}" for name in columns)]
    for row in rows:
        line = f"{row['kind']:<8}{row['summaries']:<11}{row['events']:>11,}{row['records']:>11,}"
        cells = (f"{row[name]:>14.2f}" if name in row else f"{'':>14}" for name in columns)
        lines.append(line + "".join(cells))
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--goals", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        compiled = stack.enter_context(tempfile.TemporaryDirectory())
        machine.keep_bytecode(Path(compiled))
        home = arguments.keep
        if home is None:
            home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        home.mkdir(parents=True, exist_ok=True)
        rows = []
        for kind in arguments.kinds:
            rows += measure_kind(kind, home, count=arguments.events)
    wrong = missed(rows)
    if arguments.json:
        about = machine.describe("numpy", "msgspec")
        print(json.dumps({"machine": about, "rows": rows, "missed": wrong}))
    else:
        print(machine.describe("numpy", "msgspec"), table(rows), *wrong, sep="\n")
    if arguments.goals and wrong:
        sys.exit(1)


if __name__ == "__main__":
    main()
