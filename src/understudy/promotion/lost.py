"""Lost matches: assigned ones that get no result any more, because their session ended.

A session is one opening of a run by one process: a `Promotion` until it is closed. A match is lost
when its session was on this machine and has ended, with its process or earlier in this one, or when
it has no result `promotion.match_timeout_s` after its assignment. Clocks of two machines are never
compared: the time counts from the first record that *this* machine wrote after the assignment, by
its own clock. A match of a session that goes on is never lost before that; other processes take a
session to go on as long as its process. A server holds the lock of its run, so it is alone: all
sessions before it have ended, also those of a machine with another name. Two machines
that share a run folder must have two names: the process numbers of one say nothing about the other.
"""

from __future__ import annotations

import os
import platform
import sys
import weakref
from dataclasses import dataclass
from uuid import uuid4

from understudy.gates.promotion.records import Assigned, Record, Resolved

_sessions: weakref.WeakValueDictionary[str, object] = weakref.WeakValueDictionary()
"""Those of this process that go on, each with the object that it ends with."""


def new_session_name() -> str:
    """Machine/process/random."""
    return f"{platform.node()}/{os.getpid()}/{uuid4().hex[:8]}"


def begin_session(name: str, owner: object) -> None:
    """A session of this process goes on until `end_session`, or until its owner is gone."""
    _sessions[name] = owner


def end_session(name: str) -> None:
    """Its open matches are lost once this process looks; a result that comes before that counts."""
    _sessions.pop(name, None)


@dataclass
class _Open:
    session: str
    since: float | None = None
    """When this machine first wrote a record after the assignment, by its clock."""


class OpenMatches:
    """Assigned matches without a result, as `session` sees them. `alone`: no other session that
    assigns matches goes on, on any machine."""

    def __init__(self, session: str, *, timeout_s: float, alone: bool = False) -> None:
        self._session = session
        self._alone = alone
        self._machine = _machine(session)
        self._timeout_s = timeout_s
        self._open: dict[int, _Open] = {}
        self._unseen: list[int] = []
        """Open matches after which this machine has written nothing yet."""

    def note(self, number: int, record: Record) -> None:
        """Take in the next record of the log. A match that a relay brought is never lost here: the
        relay brings its result."""
        if record.origin:
            return
        if isinstance(record, Assigned):
            self._open[number] = _Open(record.session)
            self._unseen.append(number)
        elif isinstance(record, Resolved):
            self._open.pop(record.order, None)
        if self._unseen and _machine(record.session) == self._machine:
            for order in self._unseen:
                if order in self._open:
                    self._open[order].since = record.at
            self._unseen.clear()

    def is_open(self, order: int) -> bool:
        return order in self._open

    def lost(self, now: float) -> list[tuple[int, str]]:
        """The matches that are lost at this time of this machine's clock, each with why."""
        found = []
        for order, match in self._open.items():
            if match.since is not None:
                match.since = min(match.since, now)  # the clock was set back
            if self._ended(match.session):
                found.append((order, "its session ended without a result"))
            elif match.since is not None and now - match.since >= self._timeout_s:
                found.append((order, f"no result within {self._timeout_s:g} s"))
        return found

    def _ended(self, session: str) -> bool:
        """Whether a session, other than this one, is known to have ended."""
        if session == self._session:
            return False
        if self._alone:
            return True
        if _machine(session) != self._machine:
            return False
        pid = session.rsplit("/", 2)[1]
        if not pid.isdecimal():
            return False
        if int(pid) == os.getpid():  # of this process, or of one that had its number before
            return session not in _sessions
        return not process_lives(int(pid))


def _machine(session: str) -> str | None:
    """The machine of a session; None: it names none."""
    parts = session.rsplit("/", 2)
    return parts[0] if len(parts) == 3 else None


if sys.platform == "win32":

    def process_lives(pid: int) -> bool:
        """Whether a process of this machine runs. Where that cannot be told: yes."""
        import ctypes
        from ctypes import wintypes

        query_limited_information, access_denied, still_active = 0x1000, 5, 259
        kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        kernel.OpenProcess.restype = wintypes.HANDLE
        kernel.OpenProcess.argtypes = (wintypes.DWORD, wintypes.BOOL, wintypes.DWORD)
        kernel.GetExitCodeProcess.argtypes = (wintypes.HANDLE, ctypes.POINTER(wintypes.DWORD))
        kernel.CloseHandle.argtypes = (wintypes.HANDLE,)
        handle = kernel.OpenProcess(query_limited_information, False, pid)
        if not handle:
            return ctypes.get_last_error() == access_denied
        try:
            code = wintypes.DWORD()
            told = kernel.GetExitCodeProcess(handle, ctypes.byref(code))
            return not told or code.value == still_active
        finally:
            kernel.CloseHandle(handle)

else:

    def process_lives(pid: int) -> bool:
        """Whether a process of this machine runs. Where that cannot be told: yes."""
        if pid <= 0:
            return False
        try:
            os.kill(pid, 0)  # sends nothing
        except (ProcessLookupError, OverflowError):
            return False
        except PermissionError:  # it runs for another user
            return True
        return True
