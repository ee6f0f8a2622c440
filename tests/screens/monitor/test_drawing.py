from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.screens.monitor.drawing import cut, drawn, fitted, line_width, text_width
from understudy.screens.monitor.growth import Growth, RecentGrowth
from understudy.screens.monitor.log_lines import log_lines
from understudy.screens.monitor.rows import Panel, Row, TonedText, plain_text
from understudy.screens.monitor.sources import Reading, RunLine
from understudy.screens.monitor.sparkline import ASCII, UNICODE, glyphs_for, meter, resampled
from understudy.screens.monitor.sparkline import sparkline as drawn_trend
from understudy.screens.monitor.state import FolderState, RunState
from understudy.screens.monitor.tabs import kind, panels, tabs
from understudy.telemetry.run_view import RunView
from understudy.telemetry.status import Episodes
from understudy.telemetry.trends import Trend

from . import views


def screen(view: RunView, width: int, height: int, tab: str = "") -> list[str]:
    state = RunState(view.status.run, views.NOW - 322.0)
    state.take(Reading(view))
    if tab:
        state.chosen = tab  # type: ignore[assignment]
    lines = state.lines(width=width, height=height, now=views.NOW, keys=(TonedText(" q quit"),))
    assert len(lines) == height
    assert all(line_width(line) <= width for line in lines)
    return [plain_text(line) for line in lines]


def test_everything_of_the_first_monitor_is_on_a_small_screen() -> None:
    text = "\n".join(screen(views.ring(), 80, 24))
    for part in (
        "watched 5m 22s", "Buffer      3 files, 156.2 KB", "Archive     57 files, 780.5 KB",
        "Version     12, the newest of 12, made 3m 17s ago", "State       training, process 4321",
        "Loss        0.0234", "version 12 published", "LIVE",
    ):  # fmt: skip
        assert part in text, part


def test_who_plays_and_why_is_on_a_small_screen() -> None:
    text = "\n".join(screen(views.ring(), 80, 24))
    for part in (
        "mode auto", "the rules play, version 12 in 20%", "v12 81% of 29 (64 to 91%)",
        "the rules 52% of 43 (38 to 66%)", "E better 5.8 of 20", "worse 0.14 of 4",
        "65% (43 to 82%) of 20", "50% (35 to 65%) of 40", "p50 0.04 ms, p99 0.10 ms",
    ):  # fmt: skip
        assert part in text, part


@pytest.mark.parametrize("make", [views.ring, views.empty, views.trouble, views.training,
                                  views.server])  # fmt: skip
@pytest.mark.parametrize("size", [(20, 5), (40, 10), (80, 24), (109, 30), (160, 45), (300, 100)])
def test_every_screen_fits_every_size(make: Callable[[], RunView], size: tuple[int, int]) -> None:
    view = make()
    for tab in tabs(view):
        screen(view, *size, tab)


def test_a_wide_screen_has_more_rows_than_a_small_one() -> None:
    small, wide = "\n".join(screen(views.ring(), 80, 24)), "\n".join(screen(views.ring(), 160, 45))
    for part in ("shadow -> cameos -> practice -> [canary] -> champion", "aa.npz", "Agreement"):
        assert part in wide and part not in small


def test_trouble_is_said_in_words() -> None:
    text = "\n".join(screen(views.trouble(), 80, 24))
    for part in ("STALLED", "Problems (4)", "no space left", "dead, died 3 times", "PINNED"):
        assert part in text, part


def test_text_of_outside_moves_no_cursor_and_is_no_markup() -> None:
    for tab in tabs(views.trouble()):
        for size in ((80, 24), (160, 45)):
            text = "\n".join(screen(views.trouble(), *size, tab))
            assert "\x1b" not in text and "\u202e" not in text
    assert "[bold red]x[/] \\x1b[31mred" in "\n".join(screen(views.trouble(), 160, 45))


def test_tabs_have_content_and_the_kind_of_the_run_comes_first() -> None:
    assert tabs(views.ring()) == ("ring", "training", "league", "log")
    assert tabs(views.training()) == ("training", "league", "log")
    assert tabs(views.server()) == ("server",)
    assert tabs(views.empty()) == ("ring",)
    assert kind(views.trouble()) == "ring"
    for view in (views.ring(), views.training(), views.server()):
        for tab in tabs(view):
            assert tab == "log" or any(panel.rows for panel in panels(view, tab, Growth()))


def test_a_view_that_cannot_be_read_any_more_stays_with_the_reason() -> None:
    state = RunState("run", views.NOW)
    state.take(Reading(error="run: the run folder is gone"))
    lines = state.lines(width=80, height=24, now=views.NOW, keys=())
    assert "LOST, tried again: run: the run folder is gone" in plain_text(lines[-2])
    state.take(Reading(views.ring()))
    state.take(Reading(error="run: the run folder is gone"))
    text = "\n".join(map(plain_text, state.lines(width=80, height=24, now=views.NOW, keys=())))
    assert "LOST" in text and "60: 33 won" in text
    state.take(Reading(views.ring()))
    lines = state.lines(width=80, height=24, now=views.NOW, keys=())
    assert "LOST" not in "\n".join(map(plain_text, lines))


def test_what_is_new_is_counted_over_ten_seconds() -> None:
    growth, view = RecentGrowth(), views.ring()
    assert growth.add(view) == Growth()
    written = Episodes(written=62, ingested=57, archived=60)
    later = views.changed(view, at=views.NOW + 4.0, matches=62, episodes=written)
    assert growth.add(later) == Growth(experience=2, archived=3, matches=2)
    assert growth.add(views.changed(later, at=views.NOW + 20.0)) == Growth()


def test_the_filter_shows_lines_with_the_words_alone() -> None:
    recent = views.ring().recent
    assert {line.by for line in log_lines(recent)} == {"bot", "learner"}
    found = log_lines(recent, words="PUBLISHED")
    assert found and all("published" in line.text for line in found)


def test_after_scrolling_the_filtered_log_shows_its_newest_lines() -> None:
    state = RunState("runs/1", views.NOW)
    state.take(Reading(views.ring()))

    def log() -> str:
        lines = state.lines(width=80, height=60, now=views.NOW, keys=(TonedText(" q quit"),))
        return "\n".join(map(plain_text, lines)).partition("Log")[2]

    state.scroll(4)
    assert "4 newer below" in log()
    state.filter_by("published")
    assert "newer below" not in log() and "version 12 published" in log()
    state.filter_by("")
    state.scroll(4)
    shorter = views.ring()
    state.take(Reading(msgspec.structs.replace(shorter, recent=shorter.recent[:1])))
    assert "newer below" not in log() and "matches:" not in log() and "bot" in log()


def test_matches_that_follow_each_other_are_one_line() -> None:
    found = log_lines(views.ring().recent)
    assert sum("matches:" in line.text for line in found) == 2
    assert "3 matches: 1 won, 2 lost, mean reward 2" in "\n".join(line.text for line in found)


def test_the_table_of_runs_drops_columns_that_do_not_fit() -> None:
    runs = (
        RunLine("swarm-1", views.ring()),
        RunLine("brawl-1", views.training()),
        RunLine("bad", error="run.json: damaged"),
    )
    state = FolderState("runs", views.NOW)
    state.take(Reading(runs))
    narrow, wide = (
        "\n".join(plain_text(line) for line in lines)
        for lines in (
            state.lines(width=width, height=20, now=views.NOW, keys=()) for width in (80, 160)
        )
    )
    for text in (narrow, wide):
        for part in ("win rate", "55% (42 to 67%)", "cannot be read: run.json: damaged"):
            assert part in text
    assert "trend" in wide and "trend" not in narrow
    state.move(5)
    assert state.chosen == "bad"
    state.filter_by("SWARM")
    assert state.chosen == "swarm-1" and len(state.shown) == 1


# --- sparklines and widths -----------------------------------------------------------------------


def test_a_sparkline_goes_from_the_least_to_the_greatest() -> None:
    assert drawn_trend([0.0, 0.5, 1.0]) == "▁▅█"
    assert drawn_trend([0.5, 0.5], bounds=(0.0, 1.0)) == "▅▅"
    assert drawn_trend([3.0, 3.0]) == "▄▄"
    assert drawn_trend([]) == "" == drawn_trend([float("nan")])
    assert drawn_trend([0.0, 1.0], glyphs=ASCII) == "_#"
    assert meter(0.25, 8) == "██░░░░░░" and meter(float("nan"), 2) == "░░"


@settings(max_examples=25)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=700), st.integers(1, 60))
def test_a_resampled_trend_keeps_its_mean(values: list[float], count: int) -> None:
    trend = Trend()
    for value in values:
        trend.add(0.0, value, version=0)
    assert 1 <= len(resampled(trend, count)) <= max(count, 1)
    assert all(trend_ok(trend, one) for one in resampled(trend, count))


def trend_ok(trend: Trend, mean: float) -> bool:
    slack = 1e-6 * max(abs(mean), 1.0)
    least, most = (f(getattr(b, n) for b in trend.bins) for f, n in ((min, "least"), (max, "most")))
    return bool(least - slack <= mean <= most + slack)


def test_a_console_that_cannot_show_blocks_gets_ascii() -> None:
    assert glyphs_for("utf-8") is UNICODE
    assert glyphs_for("cp1252") is ASCII and glyphs_for(None) is ASCII
    lines = drawn([Panel("P", (Row("a", "b"),))], [], width=120, height=9, glyphs=ASCII)
    assert all(plain_text(line).isascii() for line in lines)


@settings(max_examples=40)
@given(st.text(max_size=60), st.integers(0, 40))
def test_a_line_has_exactly_its_columns(text: str, width: int) -> None:
    assert text_width(cut(text, width)) <= width
    assert line_width(fitted((TonedText(text),), width)) == width
