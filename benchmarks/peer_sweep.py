"""The sweep of the peer's configurations: starting points, then a climb until it stops gaining.

A peer held at a poor setting makes a false claim, so every configuration appears in the result:
measured, too large for the memory, or left out for lack of time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

GAIN = 1.05
"""The climb goes on while a neighbour makes more than this multiple of the best steps/s."""

Row = dict[str, Any]
"""A configuration and its figures, or `failed`: why there are none."""


class Configuration(NamedTuple):
    """What the peer's users turn to make it faster."""

    envs: int
    n_steps: int
    batch: int
    tf32: bool = False
    threads: int = 0
    """Of PyTorch on the CPU; 0 is PyTorch's choice."""

    @property
    def steps(self) -> int:
        """Of one iteration."""
        return self.envs * self.n_steps

    def __str__(self) -> str:
        text = f"{self.envs} envs x {self.n_steps} steps, batch {self.batch:,}"
        text += ", TF32" if self.tf32 else ""
        threads = f", {self.threads} thread{'s' if self.threads > 1 else ''}"
        return text + (threads if self.threads else "")


class DoesNotFit(Exception):
    """The configuration needs more memory than there is."""


class Switches(NamedTuple):
    """What the climb may turn besides sizes: TF32 on a GPU, the number of threads on a CPU."""

    tf32: tuple[bool, ...] = (False,)
    threads: tuple[int, ...] = (0,)


def configurations(sweep: str) -> Iterator[Configuration]:
    """`1x512x64,256x128x16384+tf32` as configurations."""
    for one in sweep.split(","):
        sizes, *switches = one.strip().split("+")
        parts = sizes.split("x")
        whole = len(parts) == 3 and all(part.isdecimal() and int(part) for part in parts)
        if not whole or switches not in ([], ["tf32"]):
            raise SystemExit(f"--sweep: expected ENVSxSTEPSxBATCH or ...+tf32, got {one!r}")
        envs, n_steps, batch = map(int, parts)
        yield Configuration(envs, n_steps, batch, tf32=bool(switches))


def neighbours(at: Configuration, switches: Switches) -> Iterator[Configuration]:
    """One change away, the most promising first; a minibatch never exceeds the rollout."""
    for tf32 in switches.tf32:
        yield at._replace(tf32=tf32)
    for threads in switches.threads:
        yield at._replace(threads=threads)
    sized = (
        at._replace(envs=2 * at.envs, batch=2 * at.batch),
        at._replace(batch=2 * at.batch),
        at._replace(envs=2 * at.envs),
        at._replace(n_steps=2 * at.n_steps),
        at._replace(n_steps=at.n_steps // 2),
        at._replace(batch=at.batch // 2),
        at._replace(envs=at.envs // 2),
    )
    for one in sized:
        if 2 <= one.batch <= one.steps and one.n_steps >= 2:
            yield one


def climb(
    starts: Sequence[Configuration], measure: Callable[[Configuration], Row], *,
    switches: Switches, seconds: float, clock: Callable[[], float] = time.perf_counter,
) -> Iterator[Row]:  # fmt: skip
    """Measures every start, then neighbours of the best until none gains more than `GAIN`.

    Yields a row for each configuration. A neighbour that gains becomes the centre at once. Starts
    are always measured; a neighbour is left out (`failed`, `lacks_time`) where its estimate would
    pass `seconds` since the first start, and where a minibatch of its size has already not fitted.
    With 0 seconds there is no climb.
    """
    began = clock()
    tried: dict[Configuration, Row] = {}

    def attempt(point: Configuration) -> Row:
        start = clock()
        try:
            row = {**point._asdict(), **measure(point)}
        except DoesNotFit as error:
            row = {**point._asdict(), "failed": f"does not fit: {error}", "does_not_fit": True}
        row["spent_s"] = clock() - start
        tried[point] = row
        return row

    def refused(point: Configuration, nearby: Row) -> Row | None:
        full = min((one.batch for one, row in tried.items() if "does_not_fit" in row), default=None)
        if full is not None and point.batch >= full:
            return {"failed": f"left out: a batch of {full:,} does not fit"}
        left = seconds - (clock() - began)
        needed = nearby["spent_s"] * point.steps / (nearby["envs"] * nearby["n_steps"])
        if needed > left:
            words = f"left out: about {needed:.0f} s, and {max(left, 0.0):.0f} s are left"
            return {"failed": words, "lacks_time": True}
        return None

    for point in starts:
        if point not in tried:
            yield attempt(point)
    while seconds > 0.0 and (best := fastest(list(tried.values()))):
        for point in neighbours(_of(best), switches):
            if point in tried:
                continue
            reason = refused(point, best)
            row = attempt(point) if reason is None else {**point._asdict(), **reason}
            tried[point] = row
            yield row
            if row.get("steps_s", 0.0) > GAIN * best["steps_s"]:
                break
        else:
            return


def fastest(rows: Sequence[Row]) -> Row | None:
    """The row with the most steps/s, if any was measured."""
    return max(
        (row for row in rows if "steps_s" in row), key=lambda row: row["steps_s"], default=None
    )


def stopped_gaining(rows: Sequence[Row]) -> bool:
    """Whether the climb ended because no neighbour gained, rather than for lack of time."""
    return not any(row.get("lacks_time") or row.get("aborted") for row in rows)


def _of(row: Row) -> Configuration:
    return Configuration(*(row[name] for name in Configuration._fields))
