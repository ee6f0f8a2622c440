"""A console is asked for escape codes where it has to be, and gets its flags back."""

from __future__ import annotations

import io

import pytest

from understudy.screens.console import escapes

_ESCAPES = 4


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


class Old:
    """A console of Windows: flags that can be read and, perhaps, set."""

    def __init__(self, flags: int | None, *, willing: bool = True) -> None:
        self.flags = flags
        self.willing = willing

    def mode(self) -> int | None:
        return self.flags

    def change(self, mode: int) -> bool:
        if mode & _ESCAPES and not self.willing:
            return False
        self.flags = mode
        return True


@pytest.fixture(autouse=True)
def _term(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")


def behind(monkeypatch: pytest.MonkeyPatch, console: Old | None) -> None:
    monkeypatch.setattr("understudy.screens.console.console_of", lambda stream: console)


@pytest.mark.parametrize("flags", [3, 3 | _ESCAPES])
def test_flags_are_set_meanwhile_and_come_back(monkeypatch: pytest.MonkeyPatch, flags: int) -> None:
    console = Old(flags)
    behind(monkeypatch, console)
    with pytest.raises(KeyboardInterrupt), escapes(Tty()) as able:
        assert able and console.flags == 3 | _ESCAPES
        raise KeyboardInterrupt
    assert console.flags == flags


@pytest.mark.parametrize("console", [Old(3, willing=False), Old(None)])
def test_a_console_that_cannot_is_told_apart(monkeypatch: pytest.MonkeyPatch, console: Old) -> None:
    behind(monkeypatch, console)
    before = console.flags
    with escapes(Tty()) as able:
        assert not able
    assert console.flags == before


def test_pipes_and_dumb_terminals_are_not_even_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    console = Old(3)
    behind(monkeypatch, console)
    with escapes(io.StringIO()) as able:
        assert not able and console.flags == 3
    monkeypatch.setenv("TERM", "dumb")
    with escapes(Tty()) as able:
        assert not able and console.flags == 3


def test_elsewhere_a_terminal_is_taken_at_its_word(monkeypatch: pytest.MonkeyPatch) -> None:
    behind(monkeypatch, None)
    with escapes(Tty()) as able:
        assert able
