"""Seals: a checksum on the line before the content, so that a reader sees all or nothing."""

from __future__ import annotations

import hashlib


def seal(body: bytes) -> bytes:
    """The body behind its checksum."""
    return _checksum(body) + b"\n" + body


def unseal(data: bytes) -> bytes | None:
    """The body, or None where it is not what was sealed."""
    digest, _, body = data.partition(b"\n")
    return body if fits(digest, body) else None


def fits(digest: bytes, body: bytes) -> bool:
    """Whether the first line of a seal is that of a body."""
    return _checksum(body) == digest


def _checksum(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode()
