"""The thread between a session and the promotion log: assigns segments of play, notes how they
ended, follows the log, and holds the policies that may play.

The event loop calls `ask`, `take`, `resolve` and reads `incumbent`: none of them touches the disk.
All work is in `work`, which the thread calls at once when there is something to write, and ten
times a second otherwise. So what any process writes into the log (a stop by a person, say) holds
here within a fraction of a second.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from uuid import uuid4

import numpy as np

from understudy.bot.match import MatchPlayer
from understudy.bot.roster import Roster, declared_promotion
from understudy.core.clock import Clock
from understudy.core.config import PromotionConfig
from understudy.experience.episode import Episode
from understudy.gates.promotion.coin import practice_refused
from understudy.gates.promotion.practice import UNAGREED_DECISIONS, PracticeArm
from understudy.gates.promotion.records import RULES
from understudy.policy.policy import Policy, untrained
from understudy.promotion.candidates import RecentMatch, likeliest
from understudy.promotion.promotion import Promotion
from understudy.promotion.report import read_brief
from understudy.promotion.served import HARM_SPREAD, LEAST_LEAD
from understudy.registry.run_folder import RunFolder
from understudy.session.limits import Rate
from understudy.session.segments import (
    AssignedSegment,
    SegmentEnding,
    SegmentPlayer,
    score_scale,
)
from understudy.session.shards import Shard
from understudy.telemetry.journal import Journal
from understudy.telemetry.promotion_status import PromotionStatus, in_units

_LOOK_EVERY_S = 0.1
_REMEMBERED = 32
"""Episodes that wait to be looked at; older ones are let go, since only recent ones are of use."""
_COMPARED_AT_ONCE = 4
"""Episodes of the rules that are compared with the newest version at each look, at most."""
_STATUS_EVERY_S = 0.5
_PATIENCE_S = 10.0
"""How long ending may take: the records at hand."""


class ServedAgreement:
    """How far versions of a served game have come with its rules, and which of them failed."""

    def __init__(self, config: PromotionConfig) -> None:
        self._share = config.practice_share
        self._compared = 0
        self.failed: set[int] = set()
        """Versions that lost a segment by an error."""

    def wanted(self, practice: PracticeArm) -> bool:
        """Whether it still matters: practice that has begun stays."""
        return self._share > 0.0 and not practice.begun

    def compare(self, newest: Policy, episode: Episode) -> int | None:
        """Decisions of the rules in an episode that the newest version would have made as well;
        None: it is untrained."""
        if newest.version == RULES:
            return None
        legal = episode.legal
        if legal is None:
            legal = np.ones((len(episode), newest.spec.actions.options), np.bool_)
        with np.errstate(all="ignore"):  # weights that are not finite agree nowhere
            actions = likeliest(newest, RecentMatch(episode.observations, legal))
        self._compared += len(episode)
        return int((actions == episode.actions).all(1).sum())

    def compared_enough(self) -> bool:
        """Whether practice begins without agreement."""
        return self._compared >= UNAGREED_DECISIONS

    def usable(self, policy: Policy) -> bool:
        """Whether a policy may practise."""
        return policy.version not in self.failed


class SegmentWriter:
    """A `SegmentSource` of one run folder.

    Args:
        untrained: Named where the rules are the incumbent; it decides nothing.
        newest: The newest policy, as it is adopted.
        agreement: What the policy and the rules had in common.
        per_s: Segments that are assigned at most.
        tags: By which segments are compared like with like, of those that `promotion.strata` names.
        rest_s: How long none is assigned after the champion could not be loaded.
        read_status: What a person is shown, read in this thread.
        background: False: only calls of `work` do anything, for tests and simulated time.
    """

    def __init__(
        self,
        roster: Roster,
        promotion: Promotion,
        *,
        newest: Callable[[], Policy],
        untrained: Policy,
        agreement: ServedAgreement,
        clock: Clock,
        per_s: float,
        rest_s: float,
        read_status: Callable[[], PromotionStatus],
        problem: Callable[[str, Exception], None],
        tags: Mapping[str, str] | None = None,
        seed: int | None = None,
        background: bool = True,
    ) -> None:
        self._roster = roster
        self._tags = tags or {}
        self.promotion = promotion
        self._newest = newest
        self._untrained = untrained
        self._agreement = agreement
        self._clock = clock
        self._rate = Rate(per_s)
        self._rest_s = rest_s
        self._rests_until = -np.inf
        self._read_status = read_status
        self._problem = problem
        # Not the draws of actions, and not those of the start before. Coins of several servers must
        # be independent, and these may have been given one seed.
        entropy = None
        if seed is not None and promotion.judges:
            entropy = seed, promotion.state.sequence, 1
        self._rng = np.random.default_rng(entropy)
        self._lock = threading.Lock()
        """Never held while something is read or written."""
        self._wanted: set[str] = set()
        """Territories that asked, until they take their assignment."""
        self._asked: deque[str] = deque()
        self._ready: dict[str, AssignedSegment] = {}
        self._versions: dict[int, int] = {}
        """Of assigned segments, by order, until they are resolved."""
        self._ended: deque[tuple[int, float, SegmentEnding, str]] = deque()
        self._episodes: deque[Episode] = deque(maxlen=_REMEMBERED)
        self.looked = self._told = -np.inf
        self.status = read_status()
        """A fraction of a second old."""
        self.incumbent = SegmentPlayer("rules", RULES, None)
        self._allowed: frozenset[int] = frozenset()
        self._pinned = False
        self._read_roles()
        self._wake = threading.Event()
        self._stop = threading.Event()
        self.background = background
        self._thread = threading.Thread(target=self._run, name="understudy-segments", daemon=True)

    def start(self) -> None:
        if self.background:
            self._thread.start()

    def close(self) -> None:
        """Write what is left, and end this session."""
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout=_PATIENCE_S)
        if not self._thread.is_alive():
            self.work()
        self.promotion.close()

    # --- for the event loop ----------------------------------------------------------------------

    @property
    def policy(self) -> Policy:
        """Of the incumbent; where that is the rules, an untrained one with version 0."""
        return self.incumbent.policy or self._untrained

    @property
    def is_testing(self) -> bool:
        """Whether a version is being tested or rechecked."""
        state = self.promotion.state
        return state.test is not None or state.recheck is not None

    def may_play(self, player: SegmentPlayer) -> bool:
        if self._pinned:
            return player.version == self.incumbent.version
        if player.role == "practice":
            return not practice_refused(self.promotion.state, player.version)
        return player.version == RULES or player.role == "newest" or player.version in self._allowed

    def ask(self, territory: str) -> None:
        now = self._clock.monotonic()
        if territory in self._wanted or now < self._rests_until or not self._rate.allow("", now):
            return
        with self._lock:
            self._wanted.add(territory)
            self._asked.append(territory)
        self._wake.set()

    def take(self, territory: str) -> AssignedSegment | None:
        if territory not in self._ready:
            return None
        with self._lock:
            self._wanted.discard(territory)
            return self._ready.pop(territory)

    def cancel(self, territory: str) -> None:
        with self._lock:
            self._wanted.discard(territory)
            assigned = self._ready.pop(territory, None)
        if assigned is not None:
            self.resolve(assigned.order, 0.0, "void", "its territory is gone")

    def resolve(self, order: int, result: float, ending: SegmentEnding, words: str = "") -> None:
        self._ended.append((order, result, ending, words))
        self._wake.set()

    # --- for other threads -----------------------------------------------------------------------

    def remember(self, episode: Episode) -> None:
        """Keeps an episode, by which versions are looked at."""
        self._episodes.append(episode)

    def work(self) -> None:
        """Write what waits, in order, and follow the log if it is time."""
        self._write_endings()
        for _ in range(len(self._asked)):
            self._assign(self._asked.popleft())
            self._write_endings()  # a version that has just been stopped must not wait
        now = self._clock.monotonic()
        if now - self.looked >= _LOOK_EVERY_S:
            self.looked = now
            self._look_at_episodes()
            self._roster.look()
            self._read_roles()
        if now - self._told >= _STATUS_EVERY_S:
            self._told = now
            self.status = self._read_status()

    def _look_at_episodes(self) -> None:
        """Of those that the rules played a few are compared with the newest version: a forward pass
        takes time from decisions."""
        wanted = self._agreement.wanted(self.promotion.state.practice)
        left = _COMPARED_AT_ONCE if wanted else 0
        for _ in range(len(self._episodes)):
            episode = self._episodes.popleft()
            by_rules, agreed = episode.sent is None, None
            if by_rules and left:
                agreed, left = self._agreement.compare(self._newest(), episode), left - 1
            self._roster.remember(episode, role="rules" if by_rules else "newest", agreed=agreed)

    def _write_endings(self) -> None:
        for _ in range(len(self._ended)):
            order, result, ending, words = self._ended.popleft()
            version = self._versions.pop(order, RULES)
            if ending == "fault":
                self._agreement.failed.add(version)
            self._roster.resolve(order, result, ending, words)
            self._read_roles()

    def _assign(self, territory: str) -> None:
        with self._lock:  # it may have ended, returned and asked twice
            if territory not in self._wanted or territory in self._ready:
                return
        try:
            assigned = self._roster.assign(uuid4().hex, self._tags, float(self._rng.random()))
        except BaseException:
            with self._lock:
                self._wanted.discard(territory)  # it may ask again
            raise
        with self._lock:
            wanted = territory in self._wanted
            if wanted and assigned.order and not assigned.fault:
                segment = AssignedSegment(assigned.order, _player(assigned))
                self._ready[territory] = segment
                self._versions[assigned.order] = assigned.version
                return
            self._wanted.discard(territory)  # it may ask again
        if not assigned.order:  # it could not be written, or counts for nothing
            return
        if assigned.fault and assigned.arm == "incumbent":
            # The rules play, so it counts for no arm; nothing is assigned until it may be loaded.
            self._rests_until = self._clock.monotonic() + self._rest_s
            self._roster.resolve(assigned.order, 0.0, "void", assigned.fault)
        elif assigned.fault:
            self._roster.resolve(assigned.order, 0.0, "fault", assigned.fault)
        else:
            self._roster.resolve(assigned.order, 0.0, "void", "its territory is gone")

    def _read_roles(self) -> None:
        incumbent = _player(self._roster.incumbent())
        self._allowed = frozenset({*self.promotion.state.needed, incumbent.version})
        self.incumbent = incumbent
        self._pinned = self.promotion.is_pinned

    def _run(self) -> None:
        while not self._stop.is_set():
            self._wake.wait(_LOOK_EVERY_S)
            self._wake.clear()
            try:
                self.work()
            except Exception as error:  # noqa: BLE001  a thread without supervisor
                self._problem("assigning segments failed, and goes on", error)


def open_segments(
    folder: RunFolder,
    *,
    newest: Callable[[], Policy],
    journal: Journal,
    say: Callable[[str], None],
    problem: Callable[..., None],
    shard: Shard | None = None,
    seed: int | None = None,
    background: bool = True,
) -> SegmentWriter:
    """The promotion of a served run, declared with the scale of its rewards.

    `newest` is the newest policy, as it is adopted; `say` gets verdicts in words, `problem` what a
    person must know, and what was raised. `shard`: which of several servers this is. Their
    territories differ, so results are compared by shard.
    """

    def say_segments(words: str) -> None:
        say(in_units(words, served=True))

    live = folder.config.live
    promotion = declared_promotion(
        folder,
        rules=None,
        score=score_scale(live),
        journal=journal,
        say=say_segments,
        problem=problem,
        lost="void",
        harm_spread=HARM_SPREAD,
        alone=True,
    )
    agreement = ServedAgreement(folder.config.promotion)
    # Servers that are judged together have one log, so they share what it takes.
    servers = 1 if shard is None or promotion.judges else shard.servers
    roster = Roster(
        folder,
        promotion,
        newest=newest,
        usable=agreement.usable,
        journal=journal,
        say=say_segments,
        problem=problem,
        learned_enough=agreement.compared_enough,
        least_lead=LEAST_LEAD,
    )
    return SegmentWriter(
        roster,
        promotion,
        newest=newest,
        agreement=agreement,
        untrained=untrained(folder.spec, folder.config.learner.seed),
        clock=folder.clock,
        per_s=live.promotion_segments_per_s / servers,
        tags=None if shard is None else {"shard": str(shard)},
        rest_s=live.promotion_segment_s,
        read_status=lambda: read_brief(
            folder, promotion, agreement=roster.agreement, waits=roster.waits
        ),
        problem=problem,
        seed=seed,
        background=background,
    )


def segments_line(status: PromotionStatus) -> str:
    """Who decides and what is tested: `rules play, canary 7 at 50%, E+ 3.2 E- 0.4`."""
    plays = status.plays
    line = "newest plays" if plays is None else f"version {plays} plays" if plays else "rules play"
    for one in status.tests:
        what = "recheck" if one.recheck else "canary"
        line += f", {what} {one.version} at {one.share:.0%}, E+ {one.better:.1f} E- {one.worse:.1f}"
    return line


def _player(assigned: MatchPlayer) -> SegmentPlayer:
    return SegmentPlayer(assigned.role, assigned.version, assigned.policy)
