"""Windows over the monitor: its help, and the question before a rollback."""

from __future__ import annotations

from typing import ClassVar, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from understudy.screens.monitor.canvas import Canvas
from understudy.screens.monitor.drawing import boxed
from understudy.screens.monitor.growth import WINDOW_S
from understudy.screens.monitor.rows import Panel, Row
from understudy.screens.monitor.sources import RollbackChoice
from understudy.screens.monitor.sparkline import UNICODE, Glyphs
from understudy.telemetry.text import plain

_WIDTH = 72

R = TypeVar("R")

_HELP = (
    Row("q, Ctrl-C", "quit; what is watched goes on"),
    Row("1 to 5, Tab", "open a tab; only those with content are offered"),
    Row("/", "filter the log, or the runs; Esc shows all again"),
    Row("up, down", "scroll the log, or choose a run (PgUp, PgDn)"),
    Row("Enter, Esc", "open the chosen run; back to all runs"),
    Row("p", "pause or resume learning: `learner pause`"),
    Row("b", "back to an earlier version: `models rollback`"),
    Row("", ""),
    Row("+2 new", f"came in the last {WINDOW_S:.0f} seconds"),
    Row("53% (36 to 70%)", "with its 95% interval; a tie is no win"),
    Row("Canary 86%", "mean result: a win counts 1, a tie half, or its score"),
    Row("E 1.1 of 20", "evidence, and how much of it decides"),
    Row("QUIET", "nothing has happened for half a minute or more"),
    Row("", ""),
    Row("", "Esc closes this. More: docs/monitoring.md", "muted"),
)


class _Box(ModalScreen[R]):
    """A box in the middle of the screen; what is below stays in sight."""

    DEFAULT_CSS = """
    _Box { align: center middle; background: transparent; }
    _Box Canvas { width: auto; height: auto; }
    """

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__()
        self._glyphs = glyphs

    def compose(self) -> ComposeResult:
        yield Canvas()

    def on_mount(self) -> None:
        self.draw()

    def on_resize(self) -> None:
        self.draw()

    def panel(self) -> Panel:
        raise NotImplementedError

    def draw(self) -> None:
        """The canvas takes the size of the box."""
        width, panel = min(_WIDTH, self.app.size.width), self.panel()
        label = max(len(row.label) for row in panel.rows) + 2
        lines = boxed(panel, width, glyphs=self._glyphs, label=label)
        canvas = self.query_one(Canvas)
        canvas.styles.width, canvas.styles.height = width, len(lines)
        canvas.show(lines)


class HelpBox(_Box[None]):
    """What the keys do, until a key closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter,question_mark,h,space,ctrl+c", "close", "close")
    ]

    def panel(self) -> Panel:
        return Panel("Help", _HELP)

    def action_close(self) -> None:
        self.dismiss(None)


class RollbackBox(_Box[int | None]):
    """Where to roll back to; the answer is a version, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "yes"),
        Binding("n,escape,q,ctrl+c", "answer(False)", "no"),
        Binding("left,down,minus", "other(-1)", "earlier", priority=True),
        Binding("right,up,plus", "other(1)", "later", priority=True),
    ]

    def __init__(self, choice: RollbackChoice, glyphs: Glyphs = UNICODE) -> None:
        super().__init__(glyphs)
        self._choice = choice
        self._version = choice.version

    def panel(self) -> Panel:
        proposed = self._version == self._choice.version
        why = self._choice.why.lstrip(": ") if proposed else "you chose it"
        rows = (
            Row("Go back to", f"version {self._version}", "title"),
            Row("Because", plain(why, limit=300) or "you chose it", wraps=True),
            Row(
                "Then",
                "it plays, pinned until `models release`; the learner goes on from it",
                wraps=True,
            ),
            Row("", ""),
            Row("y", "yes, roll back"),
            Row("n, Esc", "no"),
            Row("left, right", f"another of the {len(self._choice.versions):,} versions kept"),
        )
        return Panel("Roll back?", rows, tone="warning")

    def action_answer(self, yes: bool) -> None:
        self.dismiss(self._version if yes else None)

    def action_other(self, by: int) -> None:
        """The next version that is kept, or the one before."""
        kept = sorted({*self._choice.versions, self._choice.version})
        place = min(max(kept.index(self._version) + by, 0), len(kept) - 1)
        self._version = kept[place]
        self.draw()
