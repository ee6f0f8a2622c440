"""The monitor on a terminal: keys, windows and redrawing around `RunState` and `FolderState`.

Reading happens in threads. The app writes nothing: pointers and pauses move through the controls
that it was given.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widget import Widget

from understudy.core.clock import Clock
from understudy.screens.monitor.canvas import Canvas
from understudy.screens.monitor.questions import HelpBox, RollbackBox
from understudy.screens.monitor.rows import Line, TonedText
from understudy.screens.monitor.sources import (
    READER,
    FolderSource,
    Poller,
    Reading,
    RollbackChoice,
    RunControls,
    RunLine,
    RunSource,
    taken,
)
from understudy.screens.monitor.sparkline import UNICODE, Glyphs
from understudy.screens.monitor.state import FolderState, RunState
from understudy.screens.monitor.tabs import Tab
from understudy.telemetry.run_view import RunView

if TYPE_CHECKING:
    from understudy.screens.monitor.filter_line import FilterLine

_TICK_S = 1.0
_PAGE = 10

R = TypeVar("R")


class Done(Message):
    """A thread has something to show: `show` runs in the thread of the app."""

    def __init__(self, show: Callable[[], None]) -> None:
        super().__init__()
        self.show = show


class MonitorApp(App[None]):
    """Shows a run, or the runs of a folder and the one that is opened."""

    CSS = "Screen { overflow: hidden; }"
    TITLE = "understudy monitor"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,ctrl+c", "quit", "quit"),
        Binding("question_mark,h", "help", "help"),
        Binding("slash", "filter", "filter"),
        Binding("p", "pause", "pause"),
        Binding("b", "rollback", "rollback"),
        Binding("tab,right", "turn(1)", "next", priority=True),
        Binding("shift+tab,left", "turn(-1)", "previous", priority=True),
        *(Binding(str(number), f"number({number})", f"tab {number}") for number in range(1, 6)),
        Binding("down,j", "move(1)", "down"),
        Binding("up,k", "move(-1)", "up"),
        Binding("pagedown", f"move({_PAGE})", "page down"),
        Binding("pageup", f"move({-_PAGE})", "page up"),
        Binding("enter", "open", "open"),
        Binding("escape,backspace", "leave", "back"),
    ]

    def __init__(
        self,
        source: RunSource | FolderSource,
        *,
        clock: Clock,
        interval_s: float = 1.0,
        glyphs: Glyphs = UNICODE,
    ) -> None:
        super().__init__()
        self.theme = "ansi-dark"
        self._clock = clock
        self._interval_s = interval_s
        self._glyphs = glyphs
        self._source = source
        self._run_source: RunSource | None = None
        self._folder: FolderState | None = None
        self._run: RunState | None = None
        self._stop: Callable[[], None] = lambda: None
        self._wake: Callable[[], None] = lambda: None
        """Of what is read now."""
        self._canvas = Canvas()
        self._restore_signals: Callable[[], None] = _nothing

    # --- what is shown ---------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        yield self._canvas

    def on_mount(self) -> None:
        if isinstance(self._source, FolderSource):
            self._open_folder(self._source)
        else:
            self._open_run(self._source)
        self.set_interval(_TICK_S, self.draw)
        self._restore_signals = _end_on_term(self)

    def on_resize(self) -> None:
        self.call_after_refresh(self.draw)

    def on_unmount(self) -> None:
        self._restore_signals()
        self._stop()

    def draw(self) -> None:
        """Redraw the lines that changed."""
        size, shown = self.size, self._run or self._folder
        if shown is None or not size.width or not size.height:
            return
        height = size.height - (1 if self._filter_input() is not None else 0)
        now = self._clock.time()
        self._canvas.show(shown.lines(width=size.width, height=height, now=now, keys=self._keys()))

    def _keys(self) -> Line:
        """The keys that do something now."""
        keys = [("q", "quit", "quit"), ("?", "help", "help"), ("/", "filter", "filter")]
        if self._run is None:
            keys += [("Enter", "open", "open"), ("up/down", "choose", "")]
        else:
            if self._folder is not None:
                keys.append(("Esc", "all runs", "leave"))
            if self._run_source is not None and self._run_source.controls is not None:
                keys += [("p", f"{self._pause_word()} learning", "pause")]
                keys += [("b", "rollback", "rollback")]
            keys.append(("tab", "next tab", "turn(1)"))
        spans = [TonedText(" ")]
        for key, word, action in keys:
            spans += [TonedText(key, "key", action), TonedText(f" {word}  ", "muted", action)]
        return tuple(spans)

    def _pause_word(self) -> str:
        view = None if self._run is None else self._run.view
        return "resume" if view is not None and view.status.paused_since is not None else "pause"

    # --- reading ---------------------------------------------------------------------------------

    def _open_run(self, source: RunSource) -> None:
        state = RunState(source.name, self._clock.time(), self._glyphs)
        self._run, self._run_source = state, source

        def show(reading: Reading[RunView]) -> None:
            state.take(reading)
            if state is self._run:
                self.draw()
                if reading.value is not None and reading.value.promotion_unread:
                    self._wake()

        self._poll(source.read, show)

    def _open_folder(self, source: FolderSource) -> None:
        state = self._folder or FolderState(source.name, self._clock.time(), self._glyphs)
        self._folder = state

        def show(reading: Reading[Sequence[RunLine]]) -> None:
            state.take(reading)
            if self._run is None:
                self.draw()

        self._poll(source.read, show)

    def _poll(self, read: Callable[[], R], show: Callable[[Reading[R]], None]) -> None:
        poller = Poller(read, lambda reading: self._later(lambda: show(reading)), self._interval_s)
        self._stop()  # the table is not read while one of its runs is open
        self._stop, self._wake = poller.stop, poller.wake
        poller.start()
        self.draw()

    def progressed(self, share: float) -> None:
        """So much of a long first reading is over; any thread may say so."""

        def show() -> None:
            if self._run is not None:
                self._run.progress = share
                self.draw()

        self._later(show)

    def _later(self, show: Callable[[], None]) -> None:
        """Called in any thread, also where the app has ended meanwhile."""
        if self.is_running:
            self.post_message(Done(show))

    def on_done(self, message: Done) -> None:
        message.show()

    def _in_thread(self, work: Callable[[], R], show: Callable[[Reading[R]], None]) -> None:
        def go() -> None:
            reading = taken(work)
            self._later(lambda: show(reading))

        threading.Thread(target=go, name=READER, daemon=True).start()

    # --- keys ------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Arrows and Tab belong to a box or to the filter while there is one."""
        alone = len(self.screen_stack) == 1 and self._filter_input() is None
        return alone or action != "turn"

    def action_help(self) -> None:
        self.push_screen(HelpBox(self._glyphs))

    def action_turn(self, by: int) -> None:
        if self._run is not None:
            self._run.turn(by)
            self.draw()

    def action_number(self, number: int) -> None:
        if self._run is not None and number <= len(self._run.tabs):
            self.action_tab(self._run.tabs[number - 1])

    def action_tab(self, tab: Tab) -> None:
        if self._run is not None:
            self._run.chosen = tab
            self.draw()

    def action_move(self, by: int) -> None:
        if self._run is not None:
            self._run.scroll(-by)
        elif self._folder is not None:
            self._folder.move(by)
        self.draw()

    def action_open(self) -> None:
        if self._run is None and self._folder is not None and self._folder.chosen:
            assert isinstance(self._source, FolderSource)
            self._open_run(self._source.open(self._folder.chosen))

    def action_pick(self, place: int) -> None:
        """A click on a line of the table."""
        if self._run is None and self._folder is not None:
            self._folder.choose(place)
            self.draw()

    def action_leave(self) -> None:
        """Show everything again, or go back to the table of runs."""
        shown = self._run or self._folder
        if shown is not None and shown.words:
            shown.filter_by("")
        elif self._run is not None and isinstance(self._source, FolderSource):
            self._run, self._run_source = None, None
            self._open_folder(self._source)
        self.draw()

    # --- filter ----------------------------------------------------------------------------------

    def _filter_input(self) -> Widget | None:
        found = self.screen_stack[0].query("#filter") if self.screen_stack else None
        return found.first() if found else None

    async def action_filter(self) -> None:
        """Ask for words; lines without them are hidden as they are typed."""
        from understudy.screens.monitor.filter_line import FilterLine

        shown = self._run or self._folder
        if shown is None or self._filter_input() is not None:
            return
        box = FilterLine(shown.words)
        await self.screen.mount(box)
        box.focus()
        self.draw()

    def on_filter_line_typed(self, message: FilterLine.Typed) -> None:
        if (shown := self._run or self._folder) is not None:
            shown.filter_by(message.words)
            self.draw()

    async def on_filter_line_kept(self) -> None:
        await self.action_end_filter(keep=True)

    async def action_end_filter(self, keep: bool = False) -> None:
        """Close the line in which words are typed; Escape shows everything again."""
        shown, box = self._run or self._folder, self._filter_input()
        if shown is not None and not keep:
            shown.filter_by("")
        if box is not None:
            await box.remove()
        self.draw()

    # --- changes ---------------------------------------------------------------------------------

    def action_pause(self) -> None:
        """Pause learning, or let it go on."""
        controls, run = self._controls(), self._run
        if controls is not None and run is not None and run.view is not None:
            paused = run.view.status.paused_since is None
            self._do(lambda: controls.switch_pause(paused), run)

    def action_rollback(self) -> None:
        """Ask which version, then pin it."""
        controls, run = self._controls(), self._run
        if controls is None or run is None:
            return

        def ask(reading: Reading[RollbackChoice]) -> None:
            if reading.value is None:
                self._note(run, reading.error)
            else:
                self.push_screen(RollbackBox(reading.value, self._glyphs), answered)

        def answered(version: int | None) -> None:
            if version is None:
                self._note(run, "nothing was rolled back")
            else:
                self._do(lambda: controls.roll_back(version), run)

        self._in_thread(controls.rollback_choice, ask)

    def _controls(self) -> RunControls | None:
        controls = None if self._run_source is None else self._run_source.controls
        if controls is None and self._run is not None:
            self._note(self._run, "nothing can be changed over --url: open the run folder itself")
        return controls

    def _do(self, work: Callable[[], str], run: RunState) -> None:
        """Change something in a thread, say what came of it, and read again."""

        def show(reading: Reading[str]) -> None:
            self._note(run, reading.value or f"NOT DONE: {reading.error}")
            self._wake()

        self._in_thread(work, show)

    def _note(self, run: RunState, words: str) -> None:
        run.note, run.noted = words, self._clock.time()
        self.draw()


def _nothing() -> None:
    pass


def _end_on_term(app: MonitorApp) -> Callable[[], None]:
    """SIGTERM and a closed terminal end the app in good order, so that the terminal is restored.

    Returns what puts the former handlers back.
    """
    former: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                former[number] = signal.signal(number, lambda *_: app.call_later(app.exit))

    def restore() -> None:
        for number, handler in former.items():
            signal.signal(number, handler)

    return restore
