from __future__ import annotations

import time

from understudy.core.clock import LogicalClock, SystemClock


def test_a_logical_clock_reads_the_same_in_equal_runs() -> None:
    one, two = LogicalClock(), LogicalClock()
    read = [one.time(), one.monotonic(), one.time()]
    assert read == [two.time(), two.monotonic(), two.time()]
    assert read == sorted(set(read))


def test_the_system_clock_is_the_machines() -> None:
    clock = SystemClock()
    assert abs(clock.time() - time.time()) < 5.0
    assert clock.monotonic() <= clock.monotonic()
