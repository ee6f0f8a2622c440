"""What stands between a game's own messages and a policy: features in, an action out, rewards.

A translator is made for one game: from a schema file (`live.schema`) or in Python (`live.queen` for
the territory game). It keeps nothing between calls, and takes many messages at once, since that is
how a busy server gets them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from understudy.core.arrays import NDArray
from understudy.core.spaces import ActionSpace
from understudy.session.protocol import Decision, Error, ObservationRequest


class Sight(NamedTuple):
    """One observation as the policy takes it."""

    features: NDArray
    """float32 [F], finite, raw"""
    legal: NDArray | None
    """bool [options], something in every part; None: everything"""
    told: Any = None
    """What the reward needs besides, if anything; made by `read`, only ever given to `rewards`"""


class TranslatedObservation(NamedTuple):
    """A message that was understood: whose it is, when, and what is seen."""

    territory: str
    tick: int | None
    """None: one more than the last"""
    sight: Sight


class Step(NamedTuple):
    """A decision, and what was seen before it and after."""

    before: Sight
    action: tuple[int, ...]
    """One option a part, as proposed"""
    sent: bool
    """Whether it was executed"""
    after: Sight


class Translator(Protocol):
    """One game, as a live session sees it."""

    @property
    def name(self) -> str:
        """Of the game."""

    @property
    def features(self) -> tuple[str, ...]:
        """The name of each number that the policy sees."""

    @property
    def actions(self) -> ActionSpace:
        """What the policy chooses from."""

    @property
    def rewards_by_observation(self) -> bool:
        """True: the next observation tells what a decision was worth; False: the client does."""

    @property
    def tick_length(self) -> int:
        """From one tick to the next: 1 where they are counted, milliseconds where they are time."""

    @property
    def territory_field(self) -> str:
        """Where in a message the territory stands, for errors."""

    @property
    def tick_field(self) -> str:
        """Where in a message the tick stands, for errors."""

    def read(self, requests: Sequence[ObservationRequest]) -> list[TranslatedObservation | Error]:
        """What each message of a client says, or what is wrong with it."""

    def rewards(self, steps: Sequence[Step]) -> list[float | None]:
        """What each step was worth.

        None: nobody can say, since what `before.told` would have told was lost in a restart.
        """

    def fallback(self, sights: Sequence[Sight]) -> NDArray:
        """Safe actions int32 [B, parts], legal, for when there is no time for a policy."""

    def label(self, action: Sequence[int]) -> Any:
        """An action, one option a part, as the game knows it, as plain JSON."""

    @property
    def choices(self) -> Any:
        """The actions as a welcome tells of them, as plain JSON."""

    def answer(self, decision: Decision) -> msgspec.Struct:
        """A decision as the game wants to hear it."""
