from __future__ import annotations

import threading

import pytest

from understudy.core.locks import BoundedLock


def test_one_at_a_time_and_the_same_thread_again() -> None:
    lock, inside, most = BoundedLock("the book"), [0], [0]

    def work() -> None:
        for _ in range(200):
            with lock, lock:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]


def test_nobody_waits_without_end() -> None:
    lock, held, enough = (
        BoundedLock("the book", timeout_s=0.01),
        threading.Event(),
        threading.Event(),
    )

    def hang() -> None:
        with lock:
            held.set()
            enough.wait(10)

    thread = threading.Thread(target=hang)
    thread.start()
    held.wait(10)
    with pytest.raises(OSError, match="the book was busy"), lock:
        pass
    enough.set()
    thread.join()
    with lock:
        pass  # free again
