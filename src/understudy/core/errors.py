"""Every error that Understudy raises on purpose.

    UnderstudyError
    ├── ConfigError          a setting, flag or argument is wrong
    ├── InputError           features, actions, rewards or masks that do not fit
    ├── RunFolderError       a run folder that cannot be used as asked
    ├── FileFormatError      a file that is damaged or not what it should be
    ├── ReplayDiverged       a replayed match is not the one that was recorded
    ├── LearnerBusy          another learner already works on this run folder
    ├── Fenced               another learner committed the version we were about to commit
    ├── StoreUnavailable     an object store that cannot be reached or used just now
    ├── NotFinite            training produced a number that is not finite
    └── MissingDependency    an optional library is not installed

A message says what happened, to which file, field or flag, and what to do about it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UnderstudyError(Exception):
    """The root: catch this to catch everything that Understudy raises on purpose."""


class ConfigError(UnderstudyError):
    """A setting, flag or argument is wrong."""


class InputError(UnderstudyError, ValueError):
    """Features, actions, rewards or masks that do not fit what was declared."""


class RunFolderError(UnderstudyError):
    """A run folder that cannot be used as asked."""


class FileFormatError(UnderstudyError):
    """A file that is damaged, or not what it should be."""


class ReplayDiverged(UnderstudyError):
    """A replayed match is not the one that was recorded."""


class LearnerBusy(UnderstudyError):
    """Another learner already works on this run folder."""


class Fenced(UnderstudyError):
    """Another learner committed the version that this one was about to commit."""


class StoreUnavailable(UnderstudyError):
    """An object store cannot be reached or used just now; a relay tries again."""

    def __init__(self, message: str, *, denied: bool = False) -> None:
        super().__init__(message)
        self.denied = denied
        """It answers, and refuses: wrong credentials, or no such bucket."""


class NotFinite(UnderstudyError):
    """Training produced a loss or a parameter that is not finite."""


class MissingDependency(UnderstudyError):
    """An optional library is not installed; the message has the install line."""


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint such as ` Did you mean 'swarm'?`, or nothing where no known word is close."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""
