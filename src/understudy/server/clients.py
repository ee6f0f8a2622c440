"""Names of clients, and the resume keys that prove a name.

A resume key is an HMAC of the name and a nonce under a secret of the run, and contains the nonce:
the server stores no keys, and a key is valid after a restart. A stored name is given only to its
key. A limited number of names is stored; beyond it the name that has been idle longest is freed,
never one whose client is connected or has territories. A freed name can be had again with its key,
unless another client has taken it meanwhile, with another nonce.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import os
import secrets
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

from understudy.core import files
from understudy.core.errors import RunFolderError
from understudy.web.refusal import Refusal

_SECRET_BYTES = 32
_NONCE_BYTES = 8
_ANONYMOUS = "anonymous-"
_MOST_NAMES = 10_000
_LOOKED_AT = 64
"""Names that are checked for an idle one, each time that a name is wanted."""


class Clients:
    """The names of one run, in a folder that only its owner can read.

    `holds` says whether a client has a connection or a territory.
    """

    def __init__(self, folder: Path, holds: Callable[[str], bool]) -> None:
        self._names_path = folder / "clients"
        self._secret = _secret(folder)
        self._holds = holds
        self._names = OrderedDict(_read(self._names_path))
        """Nonces by name, the name that has been idle longest first."""
        self._written = len(self._names)
        """Lines in the file, including those of freed names."""

    def __len__(self) -> int:
        return len(self._names)

    def resume_key(self, client: str) -> str:
        """The key that this client sends when it comes back."""
        return self._key(client, self._names.get(client, ""))

    def enter(self, client: str | None, resume: str | None) -> str | Refusal:
        """The name of a client from now on, or why it cannot have the one it asks for."""
        if client is None:
            if resume is not None:
                return Refusal("name_taken", "a resume key goes with its client", "client")
            return f"{_ANONYMOUS}{secrets.token_hex(12)}"
        if resume is not None:
            return self._come_back(client, resume)
        if client in self._names or client.startswith(_ANONYMOUS):
            return Refusal(
                "name_taken", "this name is taken: send its resume key, or another name", "client"
            )
        return self._keep(client, secrets.token_hex(_NONCE_BYTES))

    def _come_back(self, client: str, resume: str) -> str | Refusal:
        nonce = resume.rpartition(".")[0]
        fits = hmac.compare_digest(
            self._key(client, nonce).encode("utf-8", "surrogatepass"),
            resume.encode("utf-8", "surrogatepass"),
        )
        if not fits or self._names.get(client, nonce) != nonce:
            return Refusal("name_taken", "the resume key does not fit this client", "resume")
        if client in self._names:
            self._names.move_to_end(client)
            return client
        # Generated names are not stored: they are never given again.
        return client if client.startswith(_ANONYMOUS) else self._keep(client, nonce)

    def _key(self, client: str, nonce: str) -> str:
        """Without a nonce: for a generated name, or as earlier versions made them."""
        signed = f"{client}:{nonce}" if nonce else client
        digest = hmac.digest(self._secret, signed.encode("utf-8", "surrogatepass"), hashlib.sha256)
        key = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        return f"{nonce}.{key}" if nonce else key

    def _keep(self, client: str, nonce: str) -> str | Refusal:
        while len(self._names) >= _MOST_NAMES:
            if not self._free_idle():
                return Refusal("full", "no more names are given out: connect without one", "client")
        # Written first: a client keeps the name that it was told if the server is killed.
        # Not synced: a power cut may lose the newest names, but their keys are still valid.
        try:
            # With a line break before it, in case a full disk cut the last line short.
            files.append(self._names_path, f"\n{client}:{nonce}\n".encode())
        except OSError:  # a full disk, which the ledger reports
            words = "the name could not be written down: connect without one, or later"
            return Refusal("unavailable", words, "client")
        self._names[client] = nonce
        self._written += 1
        if self._written > 2 * max(_MOST_NAMES, len(self._names)):
            self._write_anew()
        return client

    def _free_idle(self) -> bool:
        """Free the idle name nearest to the front, if one of the first names is idle."""
        for _ in range(min(_LOOKED_AT, len(self._names))):
            client = next(iter(self._names))
            if not self._holds(client):
                del self._names[client]
                return True
            self._names.move_to_end(client)
        return False

    def _write_anew(self) -> None:
        """Rewrite the file without the freed names."""
        lines = [f"{client}:{nonce}\n" for client, nonce in self._names.items()]
        with contextlib.suppress(OSError):  # a full disk: the file stays longer
            files.write_atomic(self._names_path, "".join(lines).encode())
            self._written = len(self._names)


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


def _read(path: Path) -> dict[str, str]:
    """Nonces by name, the last one of each; earlier versions wrote names without a nonce."""
    try:
        lines = path.read_text(encoding="utf-8").split()
    except FileNotFoundError:
        return {}
    except UnicodeDecodeError as error:
        raise RunFolderError(f"{path}: expected names of clients, one a line") from error
    kept: dict[str, str] = {}
    for name, colon, nonce in (line.partition(":") for line in lines):
        if not colon:  # from an earlier version, or cut short by a full disk
            kept.setdefault(name, "")
        elif len(nonce) == 2 * _NONCE_BYTES:  # else it was cut short, and its client was refused
            kept[name] = nonce
    return kept
