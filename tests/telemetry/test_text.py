from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.telemetry.text import complain, duration, plain, say, say_json, size, stamp


class Broken(io.StringIO):
    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number

    def flush(self) -> None:
        raise OSError(self._number, os.strerror(self._number))


def console(encoding: str) -> tuple[io.TextIOWrapper, io.BytesIO]:
    raw = io.BytesIO()
    return io.TextIOWrapper(raw, encoding=encoding, errors="strict", newline="\n"), raw


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("swarm 1", "swarm 1"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("a\nb\tc\r\x7f\x00", r"a\nb\tc\r\x7f\x00"),
        ("abc\u202egpj", r"abc\u202egpj"),
        ("\u2066x\u2069\u200f\u2028\x9b", r"\u2066x\u2069\u200f\u2028\x9b"),
        ("\udc80", r"\udc80"),
        ("한국어 é", "한국어 é"),
        ("[bold]x", "[bold]x"),
    ],
)
def test_plain_shows_what_would_act(text: str, expected: str) -> None:
    assert plain(text) == expected


@given(st.text(max_size=300))
def test_plain_is_one_visible_line(text: str) -> None:
    shown = plain(text)
    assert not [c for c in shown if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"}]
    shown.encode("utf-8")  # no lone surrogates
    assert plain(shown, limit=10_000) == shown


def test_plain_is_short() -> None:
    assert plain("x" * 1000) == "x" * 197 + "..."
    assert plain("x" * 200) == "x" * 200


@given(st.text(alphabet="\\[]ab/#@ =", max_size=30))
def test_markup_is_escaped_as_rich_does(text: str) -> None:
    markup = pytest.importorskip("rich.markup")
    assert plain(text, markup=True) == markup.escape(text)


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [
        ("utf-8", "✓ 승리".encode()),
        ("cp949", b"\\u2713 " + "승리".encode("cp949")),
        ("ascii", rb"\u2713 \uc2b9\ub9ac"),
    ],
)
def test_say_never_crashes_on_an_encoding(encoding: str, expected: bytes) -> None:
    stream, raw = console(encoding)
    say("✓ 승리", stream)
    say("next", stream)
    assert raw.getvalue() == expected + b"\nnext\n"


@given(st.text(st.characters(), max_size=50), st.sampled_from(["ascii", "cp949", "utf-8"]))
def test_say_prints_any_text(text: str, encoding: str) -> None:
    stream, raw = console(encoding)
    say(text, stream)
    assert raw.getvalue().endswith(b"\n")


def test_say_uses_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert say("hello")
    assert capsys.readouterr().out == "hello\n"


def test_say_without_a_console_is_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    assert not say("x", closed)
    assert not say("x", Broken(errno.EPIPE))
    monkeypatch.setattr(sys, "stdout", None)
    assert not say("x")


def test_say_raises_what_is_not_a_missing_reader() -> None:
    with pytest.raises(OSError, match="No space"):
        say("x", Broken(errno.ENOSPC))


def test_a_complaint_is_never_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Broken(errno.ENOSPC))
    complain("the disk is full")
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    complain("nobody is there")


@pytest.mark.parametrize("encoding", ["ascii", "cp949", "latin-1"])
def test_json_is_json_on_every_console(monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    stream, raw = console(encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    value = {"run": "runs/é ✓ 승리 \\ \x1b", "none": None, "list": [1, 0.5]}
    say_json(value)
    assert json.loads(raw.getvalue()) == value


@pytest.mark.skipif(os.name != "posix", reason="pipes break differently")
def test_a_reader_that_left_leaves_no_trace_at_exit() -> None:
    code = "from understudy.telemetry.text import say\nfor _ in range(3): say('x' * 100000)"
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-c", code], stdout=writing, stderr=subprocess.PIPE, check=False
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "0s"), (0.44, "0.4s"), (9.99, "9.9s"), (42.9, "42s"), (60, "1m 0s"), (322, "5m 22s"),
        (3599.9, "59m 59s"), (11_220, "3h 7m"), (187_200, "2d 4h"), (-5, "0s"),
        (float("nan"), "0s"), (float("inf"), "0s"),
    ],
)  # fmt: skip
def test_duration(seconds: float, expected: str) -> None:
    assert duration(seconds) == expected


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (0, "0 B"), (1023, "1023 B"), (1024, "1.0 KB"), (159_949, "156.2 KB"),
        (2**20 - 1, "1.0 MB"), (3 * 2**29, "1.5 GB"), (2**50, "1024.0 TB"),
    ],
)  # fmt: skip
def test_size(count: int, expected: str) -> None:
    assert size(count) == expected


def test_stamp_takes_any_number() -> None:
    assert stamp(1e300) == stamp(float("nan")) == "at an unknown time"
