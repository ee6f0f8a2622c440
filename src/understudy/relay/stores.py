"""Object stores: named bytes that are created once, read, listed by prefix and deleted.

Nothing else is asked of a store: there is no rename, no append and no lock. Whatever must happen
once happens by `create`, of which one of several succeeds. `check` tries that on a real object, and
refuses a store that overwrites.

Credentials come from the environment, or from where the provider's own library keeps them. They are
never part of an address, so no command line, log or run folder holds them.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import urlsplit
from urllib.request import url2pathname

from understudy.core import files
from understudy.core.dependencies import needs
from understudy.core.errors import ConfigError, StoreUnavailable

if TYPE_CHECKING:
    from obstore.store import ObjectStore as _Library

_SCHEMES = ("s3", "gs", "az", "file")
_EXPECTED = "expected s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX, "\
    "file:///FOLDER or a folder"  # fmt: skip
_PROBE = "probe"
_CONNECT_S = 5
_REQUEST_S = 120
_RETRIES = 2
_CONFLICTS = 6
"""Tries of a create that another create of the same name disturbs (409)."""
_CONFLICT_S = 0.05
_SECRET_NAMES = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}
"""Where people set credentials first; the libraries read more of them."""
_CONFLICT = re.compile(r"\b409\b|ConditionalRequestConflict")


class StoredObject(NamedTuple):
    """An object in a listing."""

    key: str
    bytes: int
    modified_at: float
    """Seconds since 1970, by the clock of the store"""


class ObjectStore(Protocol):
    """Named bytes. Every method raises `StoreUnavailable` where the store does not answer."""

    name: str
    """The address, as a person gave it."""

    def create(self, key: str, data: bytes) -> bool:
        """Make an object, whole and durable; False if the name is taken."""

    def get(self, key: str) -> bytes:
        """All bytes of an object; FileNotFoundError where there is none."""

    def list(self, prefix: str, *, most: int | None = None) -> list[StoredObject]:
        """Objects whose names begin with `prefix` (a folder, with its slash), by name; the first
        `most` of them."""

    def delete(self, keys: Iterable[str]) -> None:
        """Remove objects; those that are gone already are no error."""


def open_store(address: str) -> ObjectStore:
    """The store at an address. Nothing is read or written yet: see `check`.

    Raises:
        ConfigError: The address is of no kind that is known, or holds credentials.
    """
    if "://" not in address:
        return FolderStore(address, Path(address))
    parts = urlsplit(address)
    if parts.scheme not in _SCHEMES:
        raise ConfigError(f"URL: {_EXPECTED}, got the kind {parts.scheme!r}")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        where = f"set {_SECRET_NAMES[parts.scheme]}" if parts.scheme != "file" else "leave them out"
        raise ConfigError(
            f"URL: expected an address without a user, a password or anything after `?` or `#`: "
            f"credentials come from the environment ({where})"
        )
    if parts.scheme == "file":
        return FolderStore(address, Path(url2pathname(parts.path)))
    if not parts.netloc:
        raise ConfigError(f"URL: {_EXPECTED}, got {address!r}")
    return CloudStore(address, parts.scheme)


def check(store: ObjectStore) -> None:
    """Try the store: write a probe twice, read it and delete it.

    Raises:
        ConfigError: The store overwrites, or it refuses us.
        StoreUnavailable: It does not answer.
    """
    key, data = f"{_PROBE}/{secrets.token_hex(8)}", b"understudy"
    try:
        store.create(key, data)  # False, too, where the answer to a first try was lost
        overwrites = store.create(key, data + b" again")
        kept = store.get(key)
        store.delete([key])
    except StoreUnavailable as error:
        if error.denied:
            raise ConfigError(str(error)) from error
        raise
    except FileNotFoundError as error:
        raise ConfigError(f"{store.name}: an object that was created is not found") from error
    if overwrites or kept != data:
        raise ConfigError(
            f"{store.name}: this store overwrites objects that exist, so of two machines neither "
            "would notice the other. A relay needs one that creates only if absent: Amazon S3, "
            "Google Cloud Storage, Azure Blob Storage, MinIO or a shared folder can "
            "(rclone's and s3rver's S3 cannot)"
        )


class FolderStore:
    """A folder, on this machine or shared; the writes are those of `core.files`."""

    def __init__(self, name: str, root: Path) -> None:
        self.name = name
        self._root = root

    def create(self, key: str, data: bytes) -> bool:
        path = self._path(key)
        with self._answers():
            files.make_folders(path.parent)
            try:
                files.create_exclusive(path, data)
            except FileExistsError:
                return False
        return True

    def get(self, key: str) -> bytes:
        with self._answers():
            return self._path(key).read_bytes()

    def list(self, prefix: str, *, most: int | None = None) -> list[StoredObject]:
        with self._answers():
            found = sorted(self._walk(self._root / prefix, prefix))
        return found[:most]

    def delete(self, keys: Iterable[str]) -> None:
        with self._answers():
            for key in keys:
                with contextlib.suppress(FileNotFoundError):
                    files.remove(self._path(key))
                if key.count("/") > 1:  # a folder that is used once
                    with contextlib.suppress(OSError):  # not empty, or gone
                        self._path(key).parent.rmdir()

    def _path(self, key: str) -> Path:
        return self._root / key

    def _walk(self, folder: Path, prefix: str) -> Iterator[StoredObject]:
        try:
            entries = list(os.scandir(folder))
        except (FileNotFoundError, NotADirectoryError):
            return
        for entry in entries:
            if entry.name.startswith(files.TEMPORARY):
                continue
            if entry.is_dir():
                yield from self._walk(folder / entry.name, f"{prefix}{entry.name}/")
                continue
            with contextlib.suppress(FileNotFoundError):  # deleted since
                stat = entry.stat()
                yield StoredObject(f"{prefix}{entry.name}", stat.st_size, stat.st_mtime)

    @contextlib.contextmanager
    def _answers(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            words = error.strerror or str(error)
            denied = isinstance(error, PermissionError | NotADirectoryError)
            raise StoreUnavailable(f"{self.name}: {words}", denied=denied) from error


class CloudStore:
    """Amazon S3 and what speaks like it, Google Cloud Storage or Azure Blob Storage."""

    def __init__(self, name: str, scheme: str) -> None:
        self.name = name
        self._scheme = scheme
        with needs("an object store needs {}", extra="scale"):
            import obstore
            from obstore.store import from_url
        self._errors = obstore.exceptions
        try:
            self._store: _Library = from_url(
                name,
                client_options={
                    "connect_timeout": f"{_CONNECT_S}s",
                    "timeout": f"{_REQUEST_S}s",
                    "allow_http": _plain_http(os.environ),
                },
                retry_config={
                    "max_retries": _RETRIES,
                    "retry_timeout": timedelta(seconds=_REQUEST_S),
                },
                **_provider(scheme),
            )
        except obstore.exceptions.BaseError as error:
            raise ConfigError(
                f"URL: {name}: {_first_line(error)}; accounts and credentials come from the "
                f"environment: {_SECRET_NAMES[scheme]}"
            ) from error

    def create(self, key: str, data: bytes) -> bool:
        for attempt in range(_CONFLICTS):
            with self._answers():
                try:
                    self._store.put(key, data, mode="create", use_multipart=False)
                    return True
                except self._errors.BaseError as error:
                    if not self._undecided(error):
                        if isinstance(error, self._errors.AlreadyExistsError):
                            return False
                        raise
            time.sleep(_CONFLICT_S * 2**attempt)
        raise StoreUnavailable(f"{self.name}: {key} is being created by another machine (409)")

    def _undecided(self, error: Exception) -> bool:
        """S3 answers 409 while another create of the same name is under way, which may yet fail;
        the library takes that for an object that exists. Azure means that by it."""
        return self._scheme == "s3" and bool(_CONFLICT.search(_first_line(error)))

    def get(self, key: str) -> bytes:
        with self._answers(missing=True):
            return bytes(self._store.get(key).bytes())

    def list(self, prefix: str, *, most: int | None = None) -> list[StoredObject]:
        found: list[StoredObject] = []
        with self._answers():
            for chunk in self._store.list(prefix, chunk_size=min(most or 1000, 1000)):
                for one in chunk:
                    modified_at = one["last_modified"].timestamp()
                    found.append(StoredObject(one["path"], one["size"], modified_at))
                if most is not None and len(found) >= most:
                    break
        return sorted(found)[:most]

    def delete(self, keys: Iterable[str]) -> None:
        with self._answers():
            for key in keys:
                with contextlib.suppress(FileNotFoundError):
                    self._store.delete(key)

    @contextlib.contextmanager
    def _answers(self, *, missing: bool = False) -> Iterator[None]:
        """Turns the errors of the library into ours. `missing`: that an object is not there is an
        answer; elsewhere it means that there is no such bucket."""
        errors = self._errors
        try:
            yield
        except FileNotFoundError as error:
            if missing:
                raise
            words = f"{self.name}: {_first_line(error)}; is there such a bucket?"
            raise StoreUnavailable(words, denied=True) from error
        except (
            PermissionError,
            errors.PermissionDeniedError,
            errors.UnauthenticatedError,
        ) as error:
            words = (
                f"{self.name}: access denied ({_first_line(error)}); credentials come from the "
                f"environment: {_SECRET_NAMES[self._scheme]}"
            )
            raise StoreUnavailable(words, denied=True) from error
        except (errors.BaseError, OSError) as error:
            words = f"{self.name}: {_first_line(error)}"
            raise StoreUnavailable(words + _hint(self._scheme, os.environ)) from error


def _plain_http(environment: Mapping[str, str]) -> bool:
    """Whether the user asked for an endpoint without TLS, as emulators have."""
    endpoints = (environment.get(name, "") for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT"))
    asked = ("AWS_ALLOW_HTTP", "GOOGLE_ALLOW_HTTP", "AZURE_STORAGE_USE_EMULATOR")
    return any(environment.get(name, "").lower() in ("1", "true") for name in asked) or any(
        one.startswith("http://") for one in endpoints
    )


def _provider(scheme: str) -> dict[str, Any]:
    """Profiles of AWS (`~/.aws`), where boto3 is installed and the environment has no key."""
    if scheme != "s3" or "AWS_ACCESS_KEY_ID" in os.environ:
        return {}
    try:
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ImportError:
        return {}
    errors: Any = sys.modules["botocore.exceptions"]  # boto3 is there, but is none of our extras
    try:
        return {"credential_provider": Boto3CredentialProvider()}
    except ValueError:  # it has found none
        return {}
    except errors.BotoCoreError as error:
        raise ConfigError(f"URL: the profile of AWS cannot be used: {error}") from error


def _hint(scheme: str, environment: Mapping[str, str]) -> str:
    """Without credentials the library asks the machine's metadata service, and times out."""
    first = _SECRET_NAMES[scheme].split()[0]
    return (
        f" (the environment has no {first})" if scheme == "s3" and first not in environment else ""
    )


def _first_line(error: BaseException) -> str:
    """What the library says, without its debug output and the answer of the server."""
    line = str(error).partition("\n")[0]
    return line.partition("<?xml")[0].strip().rstrip(":")
