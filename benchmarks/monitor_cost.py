"""What the terminal monitor costs: its start, a quiet minute, and the decisions of a bot beside it.

The monitor runs in a pseudo-terminal of 80 x 24, as a person starts it; POSIX alone. Goals: the
first screen with the run's data within 0.7 s of starting the process, under 2% of a core while
nothing happens, and decisions of a bot whose p50 is within 5% and whose p99 is at most 1.15 times
that without a monitor, in interleaved rounds. Modules are compiled before, as those of an installed
program are; the start that compiles them is printed as well.

python benchmarks/monitor_cost.py [--run RUN] [--json]
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import machine
import numpy as np
import psutil
from decision_latency import play

from understudy import Config, Understudy
from understudy.core.config import with_values
from understudy.games import catalog

_SHOWN = b"Archive"
"""A word that the screen of a ring has once it has read the run."""
_CHECK = "--bot"


class OpenMonitor:
    """`understudy monitor RUN` in a pseudo-terminal, whose output a thread reads."""

    def __init__(self, run: Path, *, columns: int = 80, rows: int = 24) -> None:
        ours, its = pty.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._began = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "understudy", "monitor", str(run)],
            stdin=its, stdout=its, stderr=its, close_fds=True, start_new_session=True,
            env={**os.environ, "TERM": "xterm-256color"},
        )  # fmt: skip
        os.close(its)
        self._ours = ours
        self.written = 0
        self.first_screen_s: float | None = None
        self.first_screen_cpu_s = 0.0
        self.shown = threading.Event()
        self._ended = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        seen = b""
        while not self._ended.is_set():
            if not select.select([self._ours], [], [], 0.2)[0]:
                continue
            try:
                data = os.read(self._ours, 65536)
            except OSError:  # the process has ended
                return
            self.written += len(data)
            if self.first_screen_s is None:
                seen += data
                if _SHOWN in seen:
                    self.first_screen_s = time.perf_counter() - self._began
                    times = psutil.Process(self.process.pid).cpu_times()
                    self.first_screen_cpu_s = times.user + times.system
                    self.shown.set()

    def close(self) -> None:
        """Press q; the process must end by itself."""
        os.write(self._ours, b"q")
        code = self.process.wait(10)
        self._ended.set()
        self._reader.join()
        os.close(self._ours)
        assert code == 0, code


@contextlib.contextmanager
def opened(run: Path) -> Iterator[OpenMonitor]:
    monitor = OpenMonitor(run)
    try:
        assert monitor.shown.wait(30), "no screen within 30 s"
        yield monitor
    finally:
        monitor.close()


def starts(run: Path, count: int) -> dict[str, list[float]]:
    """Seconds from starting the process to the first screen with data, and of CPU time in them."""
    took, cpu = [], []
    for _ in range(count):
        with opened(run) as monitor:
            assert monitor.first_screen_s is not None
            took.append(monitor.first_screen_s)
            cpu.append(monitor.first_screen_cpu_s)
    return {"wall_s": took, "cpu_s": cpu}


def quiet(run: Path, seconds: float) -> dict[str, float]:
    """The share of a core, and the bytes a second, while nothing happens in the run."""
    with opened(run) as monitor:
        time.sleep(3.0)
        process = psutil.Process(monitor.process.pid)
        before, written = process.cpu_times(), monitor.written
        began = time.perf_counter()
        time.sleep(seconds)
        after, wall_s = process.cpu_times(), time.perf_counter() - began
        used = after.user + after.system - before.user - before.system
        return {
            "core_share": used / wall_s,
            "bytes_s": (monitor.written - written) / wall_s,
            "resident_mb": process.memory_info().rss / 2**20,
        }


# --- a bot, with and without a screen ------------------------------------------------------------


def bot(run: Path) -> None:
    """The other process: a bot that plays for as long as each line on stdin says."""
    game = catalog.make("swarm")
    config = with_values(
        Config(), {"report.status_every_s": 0, "report.statistics_every_matches": 0}
    )
    with Understudy.open(
        run, features=game.features, actions=game.actions, mode="learn", learner="off",
        config=config, seed=1,
    ) as mind:  # fmt: skip
        play(mind, 2.0)
        print("ready", flush=True)
        for line in sys.stdin:
            took = play(mind, float(line))
            p50, p99 = np.percentile(took, (50, 99))
            print(json.dumps({"p50_us": p50, "p99_us": p99, "decisions": len(took)}), flush=True)


def beside_a_bot(
    screen: Callable[[Path], AbstractContextManager[object]], *, rounds: int, seconds: float
) -> dict[str, float]:
    """Medians over rounds of a bot's p50 and p99, by turns without and with a screen of its run."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        with subprocess.Popen(
            [sys.executable, __file__, _CHECK, str(run)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        ) as child:  # fmt: skip
            assert child.stdin is not None and child.stdout is not None
            assert child.stdout.readline() == "ready\n"

            def one_round() -> dict[str, float]:
                assert child.stdin is not None and child.stdout is not None
                child.stdin.write(f"{seconds}\n")
                child.stdin.flush()
                told: dict[str, float] = json.loads(child.stdout.readline())
                return told

            alone, beside = [], []
            for _ in range(rounds):
                alone.append(one_round())
                with screen(run):
                    beside.append(one_round())
            child.stdin.close()
            assert child.wait(30) == 0
    result = {}
    for name, told in (("alone", alone), ("beside", beside)):
        for key in ("p50_us", "p99_us"):
            result[f"{name}_{key}"] = float(np.median([one[key] for one in told]))
    for key in ("p50", "p99"):
        ratios = [b[f"{key}_us"] / a[f"{key}_us"] for a, b in zip(alone, beside, strict=True)]
        result[f"{key}_ratio"] = float(np.median(ratios))
    return result


def small_run(folder: Path) -> Path:
    """A ring of a few dozen matches."""
    run = folder / "run"
    game = catalog.make("swarm")
    with Understudy.open(
        run, features=game.features, actions=game.actions, mode="learn", learner="off", seed=1
    ) as mind:
        play(mind, 5.0)
    return run


def measure(run: Path, *, seconds: float, rounds: int) -> dict[str, object]:
    compiling = starts(run, 1)
    took = starts(run, 7)
    return {
        "compiling_cpu_s": compiling["cpu_s"][0],
        "first_screen_s": float(np.median(took["wall_s"])),
        "first_screen_cpu_s": float(np.median(took["cpu_s"])),
        "starts": took,
        "quiet": quiet(run, seconds),
        "bot": beside_a_bot(opened, rounds=rounds, seconds=4.0),
        "machine": machine.describe("textual", "rich"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, help="a ring that is quiet (default: a new one)")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    parser.add_argument(_CHECK, type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.bot is not None:
        bot(arguments.bot)
        return
    with tempfile.TemporaryDirectory() as folder:
        machine.keep_bytecode(Path(folder) / "bytecode")
        run = arguments.run or small_run(Path(folder))
        result = measure(run, seconds=arguments.seconds, rounds=arguments.rounds)
    if arguments.json:
        print(json.dumps(result))
        return
    still, bot_ = result["quiet"], result["bot"]
    assert isinstance(still, dict) and isinstance(bot_, dict)
    print(result["machine"])
    first = f"{result['first_screen_s']:.2f} s ({result['first_screen_cpu_s']:.2f} s of CPU time)"
    print(f"{'first screen, whole process':32} {first}   goal: under 0.7 s")
    print(f"{'the first start, which compiles':32} {result['compiling_cpu_s']:.2f} s of CPU time")
    share = f"{still['core_share']:.2%} of a core, {still['bytes_s']:.0f} bytes/s"
    print(f"{'while nothing happens':32} {share}, {still['resident_mb']:.0f} MB   goal: under 2%")
    for name in ("alone", "beside"):
        label = "a decision of a bot" if name == "alone" else "the same beside a monitor"
        figures = f"p50 {bot_[f'{name}_p50_us']:.1f} us   p99 {bot_[f'{name}_p99_us']:.1f} us"
        print(f"{label:32} {figures}")
    ratios = f"p50 {bot_['p50_ratio']:.3f}   p99 {bot_['p99_ratio']:.3f}"
    print(f"{'ratio, median of rounds':32} {ratios}   goal: within 5%, at most 1.15")


if __name__ == "__main__":
    main()
