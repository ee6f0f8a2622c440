"""The page of all runs: what each is, whether it learns, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from understudy.core.errors import UnderstudyError
from understudy.screens.dashboard.answers import (
    RunAnswer,
    answers,
    health,
    learning,
    notes_of,
    playing,
)
from understudy.screens.dashboard.layout import run_path
from understudy.screens.dashboard.page import PagePart, RunReading, empty
from understudy.screens.html.elements import Element, HtmlNode, tag
from understudy.screens.html.spark_line import spark_line
from understudy.screens.monitor.run_table import last_heard

_KINDS = {"ring": "a bot beside its game", "server": "a live game", "training": "training"}


class RunRow(NamedTuple):
    """One run, or why it cannot be read."""

    name: str
    reading: RunReading | None = None
    error: str = ""


def row(name: str, read: Callable[[], RunReading]) -> RunRow:
    """One reading of a run."""
    try:
        return RunRow(name, read())
    except (UnderstudyError, OSError) as error:
        return RunRow(name, error=str(error))


def parts(rows: Sequence[RunRow]) -> Iterator[PagePart]:
    """A card for each run."""
    if not rows:
        words = "There is no run yet. The first bot, server or training that starts will be here."
        yield empty("runs", "Runs", words)
        return
    yield PagePart("runs", tag("div", *(_card(one) for one in rows), class_="runs"))
    if len(rows) == 1 and (only := rows[0].reading) is not None:
        yield answer_cards(only)
    if len(rows) > 1:
        link = tag("a", "Compare runs", href="/compare")
        yield PagePart("compare", tag("p", link, ": their curves in the same charts."))


def _card(one: RunRow) -> Element:
    heading = tag("h2", tag("a", one.name, href=run_path(one.name)))
    if one.reading is None:
        words = f"It cannot be read: {one.error}"
        return tag("article", heading, tag("p", words), class_="run-card problem")
    reading = one.reading
    learns = learning(reading)
    healthy = health(reading.findings, notes_of(reading.status))
    trend = reading.trends.get("win_rate") or reading.trends.get("return")
    drawn = None if trend is None else spark_line(trend, share="win_rate" in reading.trends)
    told = [_told("Learning", learns), _told("Healthy", healthy), _told("Plays", playing(reading))]
    return tag(
        "article",
        heading,
        tag("p", *about(reading), class_="soft"),
        *([] if drawn is None else [drawn]),
        tag("dl", *told, class_="told"),
        class_=f"run-card {healthy.tone}",
    )


def answer_cards(reading: RunReading) -> PagePart:
    """The first questions with their answers, a card each."""
    cards = [_answer(one) for one in answers(reading)]
    return PagePart("answers", tag("div", *cards, class_="answers"))


def _answer(answer: RunAnswer) -> Element:
    return tag(
        "article",
        tag("h2", answer.question),
        tag("p", answer.short, class_="short"),
        tag("p", answer.words),
        *([tag("p", answer.why, class_="soft")] if answer.why else []),
        class_=f"answer {answer.tone}",
    )


def about(reading: RunReading) -> list[HtmlNode]:
    """What the run is, how much there is of it, and when anything happened last."""
    status = reading.status
    game = reading.folder.identity.game or "a game of its own"
    count = status.ledger.opened if status.ledger is not None else status.matches
    unit = "decisions" if status.ledger is not None else "matches"
    words = f"{game}, {_KINDS[reading.kind]}. {count:,} {unit}, {status.versions:,} versions."
    heard = last_heard(reading.view)
    if heard is None:
        return [words]
    what = "Its last session ended" if reading.ended_at is not None else "Last heard of"
    return [f"{words} {what} ", tag("time", "", **{"data-at": f"{heard:.0f}"}), "."]


def _told(name: str, answer: RunAnswer) -> Element:
    return tag("div", tag("dt", name), tag("dd", answer.short, class_=answer.tone))
