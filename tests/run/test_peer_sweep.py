"""The sweep of the benchmark's peer: it climbs until the peer stops gaining, and hides nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

SECOND = 1.0


class Machine:
    """A peer whose speed is a function of its configuration, on a clock of its own."""

    def __init__(self, sweep: Any, speed: Callable[[Any], float], memory: int = 10**9) -> None:
        self._sweep, self._speed, self._memory = sweep, speed, memory
        self.now = 0.0

    def measure(self, point: Any) -> dict[str, float]:
        if point.batch > self._memory:
            raise self._sweep.DoesNotFit("CUDA out of memory")
        self.now += point.steps * SECOND / 1000
        return {"steps_s": self._speed(point)}

    def climb(self, starts: str, *, seconds: float, switches: Any) -> list[dict[str, Any]]:
        points = list(self._sweep.configurations(starts))
        return list(
            self._sweep.climb(
                points, self.measure, switches=switches, seconds=seconds, clock=lambda: self.now
            )
        )


def saturating(point: Any) -> float:
    """Gains up to 256 environments in minibatches of 16,384, half as much again with TF32."""
    return float(min(point.envs, 256) * min(point.batch, 16384) * (3 if point.tf32 else 2))


@pytest.fixture
def sweep(benchmark: Any) -> Any:
    return benchmark("peer_sweep")


def test_it_climbs_until_the_peer_stops_gaining(sweep: Any) -> None:
    gpu = sweep.Switches(tf32=(True, False))
    rows = Machine(sweep, saturating).climb("16x512x256", seconds=10**6, switches=gpu)
    best = sweep.fastest(rows)
    assert best["steps_s"] == saturating(sweep.Configuration(256, 128, 16384, tf32=True))
    assert any(row["batch"] > 16384 for row in rows), "it looked beyond the best"
    assert sweep.stopped_gaining(rows)


def test_a_configuration_that_does_not_fit_is_a_row_and_no_larger_batch_is_tried(
    sweep: Any,
) -> None:
    gpu = sweep.Switches(tf32=(True, False))
    machine = Machine(sweep, lambda point: float(point.batch), memory=8192)
    rows = machine.climb("64x512x4096", seconds=10**6, switches=gpu)
    best = sweep.fastest(rows)
    assert best["batch"] == 8192
    unmeasured = [row for row in rows if "failed" in row]
    assert unmeasured[0]["failed"] == "does not fit: CUDA out of memory"
    assert all("16,384 does not fit" in row["failed"] for row in unmeasured[1:])
    assert sweep.stopped_gaining(rows)


def test_the_climb_ends_in_time_and_says_that_it_did_not_reach_the_end(sweep: Any) -> None:
    machine = Machine(sweep, lambda point: float(point.envs))
    rows = machine.climb("1x512x64", seconds=30.0, switches=sweep.Switches())
    assert machine.now <= 30.0
    assert not sweep.stopped_gaining(rows)
    assert any("left out: about" in row.get("failed", "") for row in rows)


def test_fewer_threads_are_tried_and_without_time_the_starts_alone(sweep: Any) -> None:
    cpu = sweep.Switches(threads=(2, 1))
    machine = Machine(sweep, lambda point: 10.0 if point.threads == 1 else 5.0)
    assert sweep.fastest(machine.climb("1x512x64", seconds=1e6, switches=cpu))["threads"] == 1
    starts = machine.climb("1x512x64,8x64x256", seconds=0.0, switches=cpu)
    assert [(row["envs"], row["batch"]) for row in starts] == [(1, 64), (8, 256)]


def test_a_wrong_starting_point_is_refused(sweep: Any) -> None:
    [point] = sweep.configurations("256x128x16384+tf32")
    assert point == sweep.Configuration(256, 128, 16384, tf32=True)
    for wrong in ("1x2", "1x0x64", "1x2x3+bf16", "axbxc"):
        with pytest.raises(SystemExit, match="--sweep: expected"):
            list(sweep.configurations(wrong))


def test_the_gpu_starts_hold_the_configurations_that_were_seen_to_be_fast(benchmark: Any) -> None:
    sweep, throughput = benchmark("peer_sweep"), benchmark("train_throughput")
    starts = list(sweep.configurations(throughput.SWEEPS["gpu"]))
    assert sweep.Configuration(256, 128, 16384) in starts
    assert sweep.Configuration(256, 128, 16384, tf32=True) in starts
