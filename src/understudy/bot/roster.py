"""The roster of a bot in mode `auto`: who plays the next match, with its policy at hand.

Versions are loaded by `follow`, off the decision path, so that `assign` only writes its record. A
version that cannot be loaded has lost the match; the rules play it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping

import msgspec

from understudy.bot.match import MatchPlayer, PlayerRole
from understudy.bot.practice import may_practise
from understudy.core.errors import FileFormatError, RunFolderError
from understudy.experience.episode import Episode
from understudy.gates.promotion.practice import LEARNED_MATCHES
from understudy.gates.promotion.records import RULES, Ending
from understudy.gates.promotion.roles import PromotionVerdict
from understudy.policy.policy import Policy
from understudy.promotion.candidates import CandidateSearch, stop_other_test
from understudy.promotion.promotion import Promotion, role_changed
from understudy.registry.checkpoints import TRAIN
from understudy.registry.pointers import PROMOTION, PointerRecord
from understudy.registry.run_folder import RunFolder
from understudy.telemetry import events
from understudy.telemetry.agreement import RulesAgreement
from understudy.telemetry.journal import Journal
from understudy.telemetry.verdicts import verdict_line

_LOAD_AGAIN_S = 5.0


class Roster:
    """Assigns matches by the promotion log. Threads may share it.

    Args:
        newest: The newest policy, which the watcher holds.
        usable: Whether a policy may decide in matches that it is given to learn.
        learned_enough: Whether the newest version may practise without agreement with the rules;
            None: once it has learned from `LEARNED_MATCHES`.
        least_lead: Standard errors by which practice must be above the incumbent before a version
            is tried.
        say: Prints a line on the console.
    """

    def __init__(
        self,
        folder: RunFolder,
        promotion: Promotion,
        *,
        newest: Callable[[], Policy],
        usable: Callable[[Policy], bool],
        journal: Journal,
        say: Callable[[str], None],
        problem: Callable[[str], None],
        learned_enough: Callable[[], bool] | None = None,
        least_lead: float = 0.0,
    ) -> None:
        told = len(promotion.verdicts)
        self._folder = folder
        self._promotion = promotion
        self._newest = newest
        self._usable = usable
        self._learned_enough = learned_enough or self._has_learned
        self._journal = journal
        self._say = say
        self._problem = problem
        judged_by = folder.config.promotion.evidence
        if promotion.judges:
            stop_other_test(promotion, simulator=judged_by == "simulator", problem=problem)
        self._told = told
        """How many of the log's verdicts are no news."""
        self._candidates = CandidateSearch(
            folder, promotion, refused=self._tell_refusal, least_lead=least_lead
        )
        self._exception = ""
        """Why something else than evidence decides who plays; empty: evidence does."""
        self._complained = ""
        self._lock = threading.Lock()
        self._policies: dict[int, Policy | str] = {}
        """Versions that may play next; text: why a version cannot be loaded."""
        self._load_again_at = 0.0
        self._agreement = RulesAgreement()
        self._may_practise = False
        self.follow()

    def assign(self, match: str, tags: Mapping[str, str], uniform: float) -> MatchPlayer:
        """Decides who plays the match with this id; durable when this returns.

        `uniform`, in [0, 1), is the coin.
        """
        newest = self._newest()
        practice = newest.version if self._may_practise and self._usable(newest) else 0
        order, assigned = self._promotion.assign(match, tags, uniform, practice=practice)
        version, state = assigned.version, self._promotion.state
        if assigned.arm == "practice":
            return MatchPlayer("practice", version, newest, order=order, id=match, arm="practice")
        if version == RULES:
            role: PlayerRole = "holdout" if assigned.arm == "holdout" else "rules"
            counts = assigned.test or assigned.forced or state.is_paused or not order
            cameos = role == "rules" and not counts
            return MatchPlayer(role, order=order, id=match, cameos=cameos, arm=assigned.arm)
        role = "canary" if assigned.arm == "canary" else "champion"
        if version == state.incumbent:
            role = "champion"  # in a recheck it has the arm of a canary
        elif role == "champion" and state.policy == "latest":
            role = "newest"
        player = MatchPlayer(role, version, order=order, id=match, arm=assigned.arm)
        policy = self._policy(version)
        if isinstance(policy, str):
            return player._replace(fault=policy)
        return player._replace(policy=policy)

    def incumbent(self) -> MatchPlayer:
        """Who plays outside of any test: what a person pinned, or the newest by policy `latest`,
        else the champion or the rules. The rules, where a version cannot be loaded."""
        version = self._promotion.plays
        policy = self._policy(version) if version else ""
        if isinstance(policy, str):
            return MatchPlayer("rules")
        role: PlayerRole = "newest" if self._promotion.state.policy == "latest" else "champion"
        return MatchPlayer(role, version, policy)

    def resolve(self, order: int, result: float, ending: Ending, words: str = "") -> None:
        """Notes how an assigned match ended, and loads what plays next if that changed roles."""
        self._promotion.resolve(order, result, ending, words)
        self.follow()

    def void(self, orders: Iterable[int]) -> None:
        """Notes assigned matches in which nothing was decided: they count for no arm."""
        for order in orders:
            self._promotion.resolve(order, 0.0, "void")

    def remember(self, episode: Episode, *, role: PlayerRole, agreed: int | None) -> None:
        """Keeps what a match tells of the newest version: by its observations candidates are looked
        at, by its cameos they may be refused, and by `agreed`, the decisions of the rules that the
        policy would have made as well, practice begins. None: no trained policy was asked."""
        self._candidates.remember(episode)
        if role in ("rules", "holdout") and agreed is not None:
            self._agreement.add(agreed, int((~episode.sampled).sum()))

    @property
    def agreement(self) -> float | None:
        """Share of the rules' recent decisions that the newest version agrees with, if known."""
        return self._agreement.share

    @property
    def waits(self) -> str:
        """Why no version is tried at present; empty: not known, or nothing speaks against it."""
        return self._candidates.waits

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
            newest = self._newest()
            wanted -= {RULES, newest.version}
            self._policies = self._loaded(wanted)
            self._may_practise = newest.version != RULES and may_practise(
                begun=state.practice.begun,
                agreement=self._agreement.share,
                learned_enough=self._learned_enough,
                config=self._folder.config.promotion,
            )
            self._tell(champion)

    def _has_learned(self) -> bool:
        return (self._candidates.learned(self._newest().version) or 0) >= LEARNED_MATCHES

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
                f"rules {state.rules!r} and score {state.score}, this one "
                "{!r} and {}".format(*self._promotion.declared or ("", None))
            )
        if champion is not None and champion.pinned:
            return f"{_plays(champion.version)} every match: pinned until `models release`"
        if state.policy == "latest":
            return "the newest version plays every match, untested: promotion.policy is 'latest'"
        return ""

    def _tell_refusal(self, version: int, words: str) -> None:
        self._say(f"version {version} is not tried: {words}")
        self._journal.write(events.RoleChanged(version=version, kind="refused", words=words))

    def _others_rules(self) -> bool:
        """Whether another bot declared other rules, so that results cannot be compared."""
        state = self._promotion.state
        return state.rules is not None and (state.rules, state.score) != self._promotion.declared

    def _policy(self, version: int) -> Policy | str:
        newest = self._newest()
        if newest.version == version:
            return newest
        # Not there: another process changed roles since the last `follow`.
        return self._policies.get(version) or self._load(version)

    def _loaded(self, wanted: set[int]) -> dict[int, Policy | str]:
        """These versions. One that cannot be loaded is tried again when roles change, or after a
        while: reading large weights twenty times a second would slow the game down."""
        held, now = self._policies, self._folder.clock.monotonic()
        again = wanted != held.keys() or now >= self._load_again_at
        loaded = {
            version: one
            if isinstance(one := held.get(version), Policy) or (one is not None and not again)
            else self._load(version)
            for version in wanted
        }
        if again:
            self._load_again_at = now + _LOAD_AGAIN_S
        return loaded

    def _load(self, version: int) -> Policy | str:
        try:
            policy = self._folder.versions.policy(version)
            if policy.spec != self._folder.spec:
                raise RunFolderError(f"version {version} was made for another run")
        except (FileFormatError, RunFolderError, msgspec.MsgspecError, OSError) as error:
            return f"it cannot be loaded: {error}"
        return policy


def champion_without_evidence(folder: RunFolder) -> int:
    """The version that is the champion because it was the newest one; 0: there is none."""
    champion = folder.pointers.read("champion")
    if folder.by_evidence or champion is None or champion.by == PROMOTION:
        return RULES
    return champion.version


def keeps_champion(folder: RunFolder) -> bool:
    """Whether mode `shadow` leaves the champion alone: it is the newest version of a run that a
    person made in mode `learn` or trained, and only mode `auto` replaces that by evidence."""
    version = champion_without_evidence(folder)
    if version == RULES:
        return False
    try:
        return folder.versions.manifest(version).mode in ("learn", TRAIN)
    except (FileFormatError, OSError):  # damaged: it cannot play either
        return False


def declared_promotion(
    folder: RunFolder,
    *,
    rules: str | None,
    score: tuple[float, float] | None,
    journal: Journal,
    say: Callable[[str], None],
    problem: Callable[[str], None],
    lost: Ending = "vanished",
    harm_spread: float = 0.0,
    alone: bool = False,
) -> Promotion:
    """The promotion of a run, after this bot has declared its rules and its scale; None: those
    that the run has. `lost`, `harm_spread` and `alone`: see `Promotion`."""

    def tell(verdict: PromotionVerdict) -> None:
        if verdict.kind not in ("nominated", "refused"):
            journal.write(role_changed(verdict))

    unproven = champion_without_evidence(folder)
    promotion = Promotion(
        folder, tell=tell, problem=problem, lost=lost, harm_spread=harm_spread, alone=alone
    )
    before = promotion.state
    rules = before.rules or "" if rules is None else rules
    score = score or before.score
    if before.rules is not None and (before.rules, before.score) != (rules, score):
        say(
            f"rules {rules!r} and score {score} instead of {before.rules!r} and "
            f"{before.score}: a running test ends, and the rules are measured anew"
        )
    promotion.declare(rules=rules, score=score)
    champion = folder.pointers.read("champion")
    if unproven and champion is not None and champion.version == RULES:
        say(
            f"version {unproven} was the champion without evidence; the rules play until a "
            "version is better by evidence"
        )
    return promotion


def _plays(version: int) -> str:
    return f"version {version} plays" if version else "the rules play"
