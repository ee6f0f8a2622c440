"""The roster of a bot in mode `auto`: who plays the next match, with its policy at hand.

Versions are loaded by `follow`, off the decision path, so that `assign` only writes its record. A
disk that fails costs no match: the rules play, and results wait in memory for the next `follow`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from understudy.core.errors import FileFormatError, RunFolderError
from understudy.gates.promotion.records import RULES, Ending
from understudy.policy.policy import Policy
from understudy.promotion.promotion import Promotion
from understudy.registry.run_folder import RunFolder

PlayerRole: TypeAlias = Literal["rules", "holdout", "canary", "champion", "newest"]
"""`holdout`: the rules play beside a champion, so that both can be compared."""
UNREADABLE = (FileFormatError, RunFolderError, msgspec.MsgspecError, OSError)
"""What reading a version may raise."""


class MatchPlayer(NamedTuple):
    """Who plays one match."""

    role: PlayerRole
    version: int = RULES
    """0: the rules, or an untrained policy in the role `newest`."""
    policy: Policy | None = None
    """Decides the whole match; None: the newest policy decides or is measured, as it is adopted."""
    order: int = 0
    """The number of the assignment in the promotion log; 0: the match is no evidence."""
    id: str = ""
    fault: str = ""
    """Why the version cannot play: the rules do, and its result is 0."""


class _Result(NamedTuple):
    order: int
    result: float
    ending: Ending
    words: str


class Roster:
    """Assigns matches by the promotion log. Threads may share it."""

    def __init__(
        self,
        folder: RunFolder,
        promotion: Promotion,
        *,
        rules: str,
        score: tuple[float, float] | None,
        newest: Callable[[], Policy],
        say: Callable[[str], None],
        problem: Callable[[str], None],
    ) -> None:
        self._folder = folder
        self._promotion = promotion
        self._declared = (rules, score)
        self._newest = newest
        self._say = say
        self._problem = problem
        self._lock = threading.Lock()
        self._policies: dict[int, Policy | str] = {}
        """Versions that may play next; text: why a version cannot be loaded."""
        self._waiting: list[_Result] = []
        self._exception = ""
        """Why matches are not assigned by evidence at present; empty: they are."""
        self._complained = ""

    def assign(self, match: str, tags: Mapping[str, str], uniform: float) -> MatchPlayer:
        """Decides who plays the match with this id; durable when this returns.

        `uniform`, in [0, 1), is the coin.
        """
        try:
            player = self._exceptional(match)
            if player is not None:
                return player
            order, assigned = self._promotion.assign(match, tags, uniform)
        except (OSError, FileFormatError) as error:
            self._complain(f"a match could not be assigned, the rules play it: {error}")
            return MatchPlayer("rules", id=match)
        self._complained = ""
        if assigned.version == RULES:
            role: PlayerRole = "holdout" if assigned.arm == "holdout" else "rules"
            return MatchPlayer(role, order=order, id=match)
        # In a recheck the champion has the arm of a canary.
        champion = assigned.version == self._promotion.state.incumbent
        return self._player("champion" if champion else "canary", assigned.version, match, order)

    def resolve(self, order: int, result: float, ending: Ending, words: str = "") -> None:
        """Notes how an assigned match ended, and loads what plays next if that changed roles."""
        with self._lock:
            self._waiting.append(_Result(order, result, ending, words))
        self.follow()

    def follow(self) -> None:
        """Writes results that wait, reads what other processes wrote, and loads who plays next."""
        with self._lock:
            try:
                while self._waiting:
                    self._promotion.resolve(*self._waiting[0])
                    del self._waiting[0]
                state = self._promotion.follow()
            except (OSError, FileFormatError) as error:
                self._complain(
                    f"the promotion log cannot be used ({len(self._waiting)} results wait in "
                    f"memory): {error}"
                )
                return
            self._complained = ""
            # A rollback returns to the champion before this one.
            wanted = {reign.version for reign in state.reigns[-2:]}
            if state.test is not None:
                wanted.add(state.test.version)
            held = self._policies
            self._policies = {
                version: one
                if isinstance(one := held.get(version), Policy)
                else self._load(version)
                for version in wanted - {RULES}
            }

    def _exceptional(self, match: str) -> MatchPlayer | None:
        """Who plays where the promotion log does not decide; None: it does."""
        champion = self._folder.pointers.read("champion")
        state = self._promotion.state
        player: MatchPlayer | None = None
        why = ""
        if champion is not None and champion.pinned:
            pinned = f"version {champion.version} plays" if champion.version else "the rules play"
            why = f"{pinned} every match: pinned with `understudy models rollback`"
            player = self._player("champion", champion.version, match)
        elif (state.rules, state.score) != self._declared:
            why = (
                f"the rules play, and their matches do not count: another bot of this run declared "
                f"rules {state.rules!r} and score {state.score}, this one {self._declared[0]!r} "
                f"and {self._declared[1]}"
            )
            player = MatchPlayer("rules", id=match)
        elif state.policy == "latest":
            why = 'the newest version plays every match, untested: promotion.policy is "latest"'
            player = self._player("newest", self._newest().version, match)
        if why != self._exception:
            self._exception = why
            self._say(why or f"evidence decides who plays again: now {_name(state.incumbent)}")
        return player

    def _player(self, role: PlayerRole, version: int, match: str, order: int = 0) -> MatchPlayer:
        if version == RULES:
            return MatchPlayer("rules", id=match)
        newest = self._newest()
        policy = newest if newest.version == version else self._policies.get(version)
        if policy is None:  # another process changed roles since the last `follow`
            policy = self._load(version)
        if isinstance(policy, str):
            return MatchPlayer(role, version, order=order, id=match, fault=policy)
        return MatchPlayer(role, version, policy, order=order, id=match)

    def _load(self, version: int) -> Policy | str:
        try:
            policy = self._folder.versions.policy(version)
            if policy.spec != self._folder.spec:
                raise RunFolderError(f"version {version} was made for another run")
        except UNREADABLE as error:
            return f"it cannot be loaded: {error}"
        return policy

    def _complain(self, words: str) -> None:
        if words != self._complained:  # once, not twenty times a second
            self._complained = words
            self._problem(words)


def _name(version: int) -> str:
    return f"version {version}" if version else "the rules"
