"""Shards: several servers of one game, each with its own territories.

A territory belongs to the shard of its name: the first eight bytes of the SHA-256 of its UTF-8
bytes, as one number, modulo the number of shards. That is the same on every machine and in every
language, so a client can send a message to the right server at once; one that does not is told
which one it is. (CRC-32 would be shorter to say, but of linear codes the lowest bits of similar
names are alike.)
"""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

from understudy.core.errors import ConfigError

_WRITTEN = re.compile(r"(\d{1,6})/(\d{1,6})")


class Shard(NamedTuple):
    """One of several servers of a game, counted from 0."""

    number: int
    servers: int

    def __str__(self) -> str:
        return f"{self.number}/{self.servers}"

    def refusal(self, territory: str) -> str:
        """Why this shard does not decide for a territory; empty: it does."""
        owner = shard_of(territory, self.servers)
        if owner == self.number:
            return ""
        return f"this is shard {self}, and that territory belongs to shard {owner}/{self.servers}"


def shard_of(territory: str, servers: int) -> int:
    """The shard that a territory belongs to, of so many."""
    digest = hashlib.sha256(territory.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") % servers


def parse_shard(text: str, *, flag: str) -> Shard:
    """`0/3`: the first of three."""
    found = _WRITTEN.fullmatch(text)
    if found is None or not int(found[1]) < int(found[2]):
        raise ConfigError(
            f"{flag}: expected the number of this server and of all of them, from 0/N to (N-1)/N "
            f"(0/3, 1/3 and 2/3 of three), got {text!r}"
        )
    return Shard(int(found[1]), int(found[2]))
