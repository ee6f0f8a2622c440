"""Settings of `understudy relay`: `[relay]`."""

from __future__ import annotations

from understudy.core.config.section import Section, positive


class RelayConfig(Section, frozen=True, kw_only=True):
    """How a run folder and an object store are kept alike (`[relay]`)."""

    poll_s: float = 1.0
    """Seconds from one look at the store to the next."""
    bundle_matches: int = 200
    """Matches that are sent as one object at most."""
    bundle_bytes: int = 8 * 2**20
    """Bytes of such an object; a single match may be larger."""
    waiting_matches: int = 100_000
    """Matches that wait in `buffer/` at most. Beside a bot: while the store cannot be reached;
    beyond it the oldest are archived without being sent. Beside a learner: beyond it no more are
    fetched, and the others wait in the store."""
    waiting_bytes: int = 2 * 2**30
    """The same in bytes."""

    def __post_init__(self) -> None:
        positive(self, "relay", "poll_s", "bundle_matches", "bundle_bytes")
        positive(self, "relay", "waiting_matches", "waiting_bytes")
