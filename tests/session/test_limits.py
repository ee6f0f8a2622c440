"""Rates and quotas: each client has its own, and nobody is remembered for ever."""

from __future__ import annotations

from understudy.session.limits import Rate, Rates


def test_a_burst_of_one_seconds_worth_and_no_more() -> None:
    rate = Rate(3.0)
    assert [rate.allow("a", 0.0) for _ in range(5)] == [True] * 3 + [False] * 2


def test_an_allowance_comes_back_with_time_and_no_further_than_full() -> None:
    rate = Rate(2.0)
    for _ in range(2):
        rate.allow("a", 0.0)
    assert [rate.allow("a", 0.25), rate.allow("a", 0.5), rate.allow("a", 0.75)] == [
        False,
        True,
        False,
    ]
    assert [rate.allow("a", 1_000.0) for _ in range(3)] == [True, True, False]


def test_a_refused_message_costs_nothing() -> None:
    rate = Rate(1.0)
    rate.allow("a", 0.0)
    for step in range(10):
        rate.allow("a", step / 100)
    assert rate.allow("a", 1.0)


def test_clients_do_not_share_an_allowance() -> None:
    rate = Rate(1.0)
    assert rate.allow("a", 0.0)
    assert not rate.allow("a", 0.0)
    assert rate.allow("b", 0.0)


def test_less_than_one_a_second_is_still_something() -> None:
    rate = Rate(0.5)
    assert [rate.allow("a", at) for at in (0.0, 1.0, 2.0)] == [True, False, True]


def test_a_clock_that_was_set_back_takes_nothing_away() -> None:
    rate = Rate(2.0)
    assert rate.allow("a", 100.0)
    assert rate.allow("a", 50.0)


def test_whoever_went_quiet_is_forgotten() -> None:
    rate = Rate(10.0)
    for number in range(10_000):
        rate.allow(f"client-{number}", float(number))
    assert len(rate) < 10


def test_asking_what_is_left_takes_nothing() -> None:
    rates = Rates(each=2.0, address=9.0, total=3.0)
    assert rates.allowance(0.0) == 3
    assert rates.wait_s("a", 2, 0.0) == 0.0
    assert rates.wait_s("a", 3, 0.0) == 0.5
    assert [rates.take("a", None, 0.0) for _ in range(2)] == [None, None]
    assert rates.allowance(0.0) == 1
    assert rates.wait_s("a", 1, 0.25) == 0.25
    assert rates.wait_s("b", 1, 0.25) == 0.0


def test_rates_name_the_limit_that_is_reached() -> None:
    rates = Rates(each=2.0, address=3.0, total=4.0)
    assert [rates.take("a", "x", 0.0) for _ in range(4)] == [None, None, "each", "each"]
    assert [rates.take(sender, "x", 0.0) for sender in "bcd"] == [None, "address", "address"]
    assert [rates.take(sender, None, 0.0) for sender in "ef"] == [None, "total"]
    assert rates.take("c", "x", 0.5) is None
