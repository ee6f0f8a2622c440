"""The roster of a bot in mode `auto`: who plays the next match, with its policy at hand.

Versions are loaded by `follow`, off the decision path, so that `assign` only writes its record. A
version that cannot be loaded has lost the match; the rules play it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from understudy.core.arrays import NDArray
from understudy.core.errors import FileFormatError, RunFolderError
from understudy.gates.promotion.records import RULES, Ending
from understudy.gates.promotion.roles import PromotionVerdict
from understudy.policy.policy import Policy
from understudy.promotion.candidates import CandidateSearch
from understudy.promotion.promotion import Promotion
from understudy.registry.pointers import PointerRecord
from understudy.registry.run_folder import RunFolder
from understudy.telemetry import events
from understudy.telemetry.journal import Journal

PlayerRole: TypeAlias = Literal["rules", "holdout", "canary", "champion", "newest"]
"""`holdout`: the rules play beside a champion, so that both can be compared."""


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


class Roster:
    """Assigns matches by the promotion log. Threads may share it.

    Args:
        rules, score: What this bot declared.
        newest: The newest policy, which the watcher holds.
        say: Prints a line on the console.
    """

    def __init__(
        self,
        folder: RunFolder,
        promotion: Promotion,
        *,
        rules: str,
        score: tuple[float, float] | None,
        newest: Callable[[], Policy],
        journal: Journal,
        say: Callable[[str], None],
        problem: Callable[[str], None],
    ) -> None:
        self._folder = folder
        self._promotion = promotion
        self._declared = (rules, score)
        self._newest = newest
        self._journal = journal
        self._say = say
        self._problem = problem
        self._told = len(promotion.verdicts)
        """How many of the log's verdicts are no news."""
        self._candidates = CandidateSearch(folder, promotion, refused=self._tell_refusal)
        self._exception = ""
        """Why something else than evidence decides who plays; empty: evidence does."""
        self._complained = ""
        self._lock = threading.Lock()
        self._policies: dict[int, Policy | str] = {}
        """Versions that may play next; text: why a version cannot be loaded."""
        self.follow()

    def assign(self, match: str, tags: Mapping[str, str], uniform: float) -> MatchPlayer:
        """Decides who plays the match with this id; durable when this returns.

        `uniform`, in [0, 1), is the coin.
        """
        order, assigned = self._promotion.assign(match, tags, uniform)
        version, state = assigned.version, self._promotion.state
        if version == RULES:
            role: PlayerRole = "holdout" if assigned.arm == "holdout" else "rules"
            return MatchPlayer(role, order=order, id=match)
        role = "canary" if assigned.arm == "canary" else "champion"
        if version == state.incumbent:
            role = "champion"  # in a recheck it has the arm of a canary
        elif role == "champion" and state.policy == "latest":
            role = "newest"
        policy = self._policy(version)
        if isinstance(policy, str):
            return MatchPlayer(role, version, order=order, id=match, fault=policy)
        return MatchPlayer(role, version, policy, order=order, id=match)

    def resolve(self, order: int, result: float, ending: Ending, words: str = "") -> None:
        """Notes how an assigned match ended, and loads what plays next if that changed roles."""
        self._promotion.resolve(order, result, ending, words)
        self.follow()

    def remember(self, observations: NDArray, legal: NDArray | None) -> None:
        """Keeps the observations [N, F] of a match, by which candidates are looked at."""
        self._candidates.remember(observations, legal)

    def look(self) -> None:
        """Follows the log, and nominates the newest version if it is time to try it."""
        self.follow()
        if self._candidates.look(self._newest()):
            self.follow()

    def follow(self) -> None:
        """Reads what other processes wrote, tells it, and loads the versions that play next."""
        with self._lock:
            self._promotion.flush()
            try:
                state = self._promotion.follow()
                champion = self._folder.pointers.read("champion")
            except (OSError, FileFormatError) as error:
                if str(error) != self._complained:  # once, not twenty times a second
                    self._complained = str(error)
                    self._problem(f"who plays cannot be read: {error}")
                return
            self._complained = ""
            # A rollback returns to the champion before this one.
            wanted = {reign.version for reign in state.reigns[-2:]}
            if state.test is not None:
                wanted.add(state.test.version)
            if champion is not None:
                wanted.add(champion.version)
            wanted -= {RULES, self._newest().version}
            held = self._policies
            self._policies = {
                version: one
                if isinstance(one := held.get(version), Policy)
                else self._load(version)
                for version in wanted
            }
            self._tell(champion)

    def _tell(self, champion: PointerRecord | None) -> None:
        """Says what changed in who plays, and why."""
        news = self._promotion.verdicts[self._told :]
        self._told += len(news)
        for verdict in news:
            if verdict.kind != "refused":
                self._say(verdict_line(verdict, self._folder.root))
        exception = self._why_not_evidence(champion)
        if exception != self._exception:
            self._exception = exception
            incumbent = self._promotion.state.incumbent
            self._say(exception or f"evidence decides who plays: at present {_plays(incumbent)}")

    def _why_not_evidence(self, champion: PointerRecord | None) -> str:
        state = self._promotion.state
        if self._others_rules():
            return (
                "the rules play, and their matches do not count: another bot of this run declared "
                f"rules {state.rules!r} and score {state.score}, this one {self._declared[0]!r} "
                f"and {self._declared[1]}"
            )
        if champion is not None and champion.pinned:
            return f"{_plays(champion.version)} every match: pinned by `understudy models rollback`"
        if state.policy == "latest":
            return "the newest version plays every match, untested: promotion.policy is 'latest'"
        return ""

    def _tell_refusal(self, version: int, words: str) -> None:
        self._say(f"version {version} is not tried: {words}")
        self._journal.write(events.RoleChanged(version=version, kind="refused", words=words))

    def _others_rules(self) -> bool:
        """Whether another bot declared other rules, so that results cannot be compared."""
        state = self._promotion.state
        return state.rules is not None and (state.rules, state.score) != self._declared

    def _policy(self, version: int) -> Policy | str:
        newest = self._newest()
        if newest.version == version:
            return newest
        # Not there: another process changed roles since the last `follow`.
        return self._policies.get(version) or self._load(version)

    def _load(self, version: int) -> Policy | str:
        try:
            policy = self._folder.versions.policy(version)
            if policy.spec != self._folder.spec:
                raise RunFolderError(f"version {version} was made for another run")
        except (FileFormatError, RunFolderError, msgspec.MsgspecError, OSError) as error:
            return f"it cannot be loaded: {error}"
        return policy


def declared_promotion(
    folder: RunFolder,
    *,
    rules: str,
    score: tuple[float, float] | None,
    journal: Journal,
    say: Callable[[str], None],
    problem: Callable[[str], None],
) -> Promotion:
    """The promotion of a run, after this bot has declared its rules and its scale."""

    def tell(verdict: PromotionVerdict) -> None:
        if verdict.kind not in ("nominated", "refused"):
            journal.write(
                events.RoleChanged(
                    version=verdict.version,
                    kind=verdict.kind,
                    words=verdict.words,
                    test=verdict.test,
                )
            )

    promotion = Promotion(folder, tell=tell, problem=problem)
    before = promotion.state
    if before.rules is not None and (before.rules, before.score) != (rules, score):
        say(
            f"rules {rules!r} and score {score} instead of {before.rules!r} and "
            f"{before.score}: a running test ends, and the rules are measured anew"
        )
    promotion.declare(rules=rules, score=score)
    return promotion


def _plays(version: int) -> str:
    return f"version {version} plays" if version else "the rules play"


_VERDICT_LINES = {
    "nominated": "version {version} is tried",
    "promoted": "version {version} plays from now on",
    "asks": "version {version} is better; `understudy promotion approve {version} --run {run}` lets"
    " it play",
    "continued": "version {version} is tried on, before it plays every match",
    "harmful": "version {version} is no longer tried, it is worse",
    "undecided": "version {version} is no longer tried, no difference was found",
    "hopeless": "version {version} is no longer tried, it would hardly be promoted",
    "misfit": "version {version} is no longer tried, its matches do not fit the coin",
    "stopped": "version {version} is no longer tried",
    "closed": "version {version} is no longer tried",
    "alarm": "version {version} plays half as often, and is tested again",
    "kept": "version {version} keeps its place",
    "rolled back": "version {version} plays no longer",
    "paused": "no version is tried or promoted",
    "resumed": "versions are tried and promoted again",
}


def verdict_line(verdict: PromotionVerdict, run: Path) -> str:
    """A verdict in one line: what changes in who plays, and why."""
    line = _VERDICT_LINES.get(verdict.kind, f"version {{version}}: {verdict.kind}")
    line = line.format(version=verdict.version, run=run)
    return f"{line}: {verdict.words}" if verdict.words else line
