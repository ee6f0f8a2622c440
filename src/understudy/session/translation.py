"""The translator between a game's messages and a policy: features in, actions out, rewards.

A translator is made for one game: from a schema file (`session.schema`) or in Python
(`adapters.territory.translator`). It has no state, and takes many messages at once, since a busy
server gets them so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from understudy.core.arrays import NDArray
from understudy.core.spaces import ActionSpace
from understudy.session.protocol import Decision, Error, ObservationRequest


class Sight(NamedTuple):
    """One observation: what the policy takes, and what the reward and the rules need."""

    features: NDArray
    """float32 [F], finite, raw"""
    legal: NDArray | None
    """bool [options], something in every part; None: everything"""
    reward_inputs: Any = None
    """What else the reward needs, if anything; `read` makes it and `rewards` alone uses it"""
    proposed: tuple[int, ...] | None = None
    """The action of the client's own rules, one option a part, legal; None: it sent none"""


class TranslatedObservation(NamedTuple):
    """A valid message: which territory, when, and what is seen."""

    territory: str
    tick: int | None
    """None: one more than the last"""
    sight: Sight


class Step(NamedTuple):
    """A decision, with the observations before and after it."""

    before: Sight
    action: tuple[int, ...]
    """One option a part, as proposed"""
    sent: bool
    """Whether it was executed"""
    after: Sight


class Translator(Protocol):
    """One game, as a live session sees it."""

    @property
    def name(self) -> str: ...

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the numbers that the policy sees, in order."""

    @property
    def actions(self) -> ActionSpace: ...

    @property
    def rewards_by_observation(self) -> bool:
        """Whether the next observation tells the reward of a decision; else the client sends it."""

    @property
    def tick_length(self) -> int:
        """From one tick to the next: 1 where ticks are counted, in ms where they are time."""

    @property
    def territory_field(self) -> str:
        """The message field of the territory, for errors."""

    @property
    def tick_field(self) -> str:
        """The message field of the tick, for errors."""

    def read(self, requests: Sequence[ObservationRequest]) -> list[TranslatedObservation | Error]:
        """Each message translated, or what is wrong with it."""

    def rewards(self, steps: Sequence[Step]) -> list[float | None]:
        """The reward of each step; None: unknown, its `reward_inputs` were lost in a restart."""

    def fallback(self, sights: Sequence[Sight]) -> NDArray:
        """Actions of the rules int32 [B, parts], legal: what the client proposed, else the game's
        safe action. They answer where the rules play, and where there is no time for a policy."""

    def label(self, action: Sequence[int]) -> Any:
        """An action (one option a part) in the game's terms, as plain JSON."""

    @property
    def choices(self) -> Any:
        """The actions as a `welcome` lists them, as plain JSON."""

    def answer(self, decision: Decision) -> msgspec.Struct:
        """A decision as a message of the game."""
