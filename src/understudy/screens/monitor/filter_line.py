"""The line in which the words of a filter are typed. Imported when it is first asked for."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Input


class FilterLine(Input):
    """At the bottom of the screen, until Enter keeps its words or Escape drops them."""

    DEFAULT_CSS = "FilterLine { dock: bottom; padding: 0 1; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "app.end_filter", "show all"),
        Binding("tab,shift+tab", "stay", "no tab", priority=True),
        Binding("ctrl+c", "app.quit", "quit", priority=True),
    ]

    class Typed(Message):
        """The words have changed."""

        def __init__(self, words: str) -> None:
            super().__init__()
            self.words = words

    class Kept(Message):
        """Enter: the words stay."""

    def __init__(self, words: str) -> None:
        super().__init__(
            words,
            placeholder="only what has these words; Enter keeps, Esc drops",
            id="filter",
            compact=True,
        )

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.Typed(event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.post_message(self.Kept())

    def action_stay(self) -> None:
        """Tab turns no page while words are typed."""
