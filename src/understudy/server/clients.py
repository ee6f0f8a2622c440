"""Who is who: names of clients, and the keys with which they come back under them.

A resume key is an HMAC of the name under a secret of the run, so the server keeps no keys and a key
still fits after a restart. A name that was given out once is only ever given again for its key.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import os
import secrets
from pathlib import Path

from understudy.core import files
from understudy.core.errors import RunFolderError
from understudy.server.refusal import Refusal

_SECRET_BYTES = 32
_ANONYMOUS = "anonymous-"
_MOST_NAMES = 100_000


class Clients:
    """The names of one run. Kept in a folder that only its owner can read."""

    def __init__(self, folder: Path) -> None:
        self._names_path = folder / "clients"
        self._secret = _secret(folder)
        self._names = set(_lines(self._names_path))

    def resume_key(self, client: str) -> str:
        """What this client sends to be itself again."""
        digest = hmac.digest(self._secret, client.encode(), hashlib.sha256)
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")

    def enter(self, client: str | None, resume: str | None) -> str | Refusal:
        """The name that a client goes by from now on, or why it cannot have the one it wants."""
        if client is None:
            if resume is not None:
                return Refusal("name_taken", "a resume key goes with its client", "client")
            return f"{_ANONYMOUS}{secrets.token_hex(12)}"
        if resume is not None:
            if hmac.compare_digest(
                self.resume_key(client).encode(), resume.encode("utf-8", "surrogatepass")
            ):
                return client
            return Refusal("name_taken", "the resume key does not fit this client", "resume")
        if client in self._names or client.startswith(_ANONYMOUS):
            return Refusal(
                "name_taken", "this name is taken: send its resume key, or another name", "client"
            )
        if len(self._names) >= _MOST_NAMES:
            return Refusal("full", "no more names are given out: connect without one", "client")
        # Written first: once somebody was told a name, it stays theirs, whatever kills the server.
        # Not synced: a power cut may forget the newest names, and their keys fit all the same.
        try:
            # On a line of its own, even after one that a full disk cut short.
            files.append(self._names_path, f"\n{client}\n".encode())
        except OSError:  # a full disk; where that matters more, the ledger says so
            words = "the name could not be written down: connect without one, or later"
            return Refusal("unavailable", words, "client")
        self._names.add(client)
        return client


def _secret(folder: Path) -> bytes:
    path = folder / "secret"
    try:
        files.make_folders(folder)
        with contextlib.suppress(NotImplementedError):
            folder.chmod(0o700)  # before the secret is in it; on Windows the user's folder is
        with contextlib.suppress(FileExistsError):
            if not path.exists():
                files.create_exclusive(path, os.urandom(_SECRET_BYTES))
        secret = path.read_bytes()
    except OSError as error:
        raise RunFolderError(f"{path}: cannot be used ({error.strerror or error})") from error
    if len(secret) != _SECRET_BYTES:
        raise RunFolderError(
            f"{path}: expected {_SECRET_BYTES} bytes, got {len(secret)}; remove it for a new one "
            "(clients then have to come under new names)"
        )
    return secret


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").split()
    except FileNotFoundError:
        return []
    except UnicodeDecodeError as error:
        raise RunFolderError(f"{path}: expected names of clients, one a line") from error
