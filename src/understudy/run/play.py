"""A session of play on a built-in game, with the learner in the background.

It plays matches one after the other through the facade that custom bots use. In mode `learn` the
bot learns by playing; in the modes `shadow`, `auto` and `play` a scripted bot of the game is the
rules. Frozen matches at the end compare the newest version with the bot of the start, with the
champion and with the rules.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from understudy.bot.match import Match
from understudy.bot.pace import PACES, PaceName
from understudy.bot.understudy import LEARNERS, MODES, RESULT_REWARDS, Mode, Understudy
from understudy.core.clock import LogicalClock, SystemClock
from understudy.core.config import Config, changes
from understudy.core.errors import ConfigError, nearest
from understudy.core.pause import read_pause
from understudy.games import catalog
from understudy.games.base import Bot, Game
from understudy.judging.simulator import Simulator
from understudy.match.evaluate import evaluate
from understudy.match.live_match import EVALUATION, TRAINING, LiveMatch, match_seeds
from understudy.match.players import BotPlayer, PolicyPlayer
from understudy.match.replaying import replay_tags
from understudy.match.tally import Tally
from understudy.policy.policy import Policy
from understudy.policy.spec import AnyNetwork, PolicySpec
from understudy.registry.run_folder import RunFolder, remember
from understudy.run.status import with_versions
from understudy.supervise.budget import Budget
from understudy.supervise.interrupts import Interrupts
from understudy.supervise.lock import learner_lock
from understudy.supervise.process import SupervisedProcess
from understudy.supervise.sessions import SessionProgress, SessionSummary
from understudy.supervise.simulator import start_simulator
from understudy.telemetry import events
from understudy.telemetry.journal import Journal
from understudy.telemetry.promotion_lines import player_name, playing_text, why_text
from understudy.telemetry.promotion_status import PromotionStatus
from understudy.telemetry.status import Status
from understudy.telemetry.status_reader import StatusReader
from understudy.telemetry.summary import FoldedJournal
from understudy.telemetry.text import complain
from understudy.telemetry.verdicts import verdict_line
from understudy.training.learning import evaluated

ADAPTIVE = "adaptive"
PRACTICE = "practice"
"""The player that all versions which practise are counted as: another one every few matches."""
_RECENT = 40
_PATIENCE_S = 10.0
"""How long a simulator may take to end: the pairs at hand."""


@dataclass(frozen=True, kw_only=True)
class PlaySession:
    """What to play, for how long, and where."""

    game: str
    run: Path
    difficulty: str
    matches: int | None = None
    minutes: float | None = None
    evaluate: int = 0
    seed: int = 0
    mode: Mode = "learn"
    rules: str = ""
    """The scripted bot that is the rules; default: the game's own choice. Mode `learn` has none."""
    learner: Literal["process", "thread", "off"] = "process"
    pace: PaceName = "free"
    lockstep: bool = False
    network: AnyNetwork
    config: Config

    @property
    def budget(self) -> Budget:
        """How long it is."""
        return Budget(self.matches, self.minutes, "--matches")

    def __post_init__(self) -> None:
        _ = self.budget, self.rules_name  # an error where one cannot be
        for name, known in (("mode", MODES), ("learner", LEARNERS), ("pace", PACES)):
            if (value := getattr(self, name)) not in known:
                raise ConfigError(
                    f"--{name}: expected one of {', '.join(known)}, got {value!r}."
                    f"{nearest(value, known)}"
                )
        if self.mode == "learn" and self.rules:
            raise ConfigError(
                "--rules: in mode learn the newest version plays every match; "
                "leave it out, or choose --mode shadow, auto or play"
            )
        if self.evaluate < 0:
            raise ConfigError(f"--eval: expected 0 or more, got {self.evaluate}")

    @property
    def rules_name(self) -> str:
        """The bot that is the rules; empty in mode `learn`."""
        return "" if self.mode == "learn" else catalog.rules_named(self.game, self.rules)

    @property
    def simulated(self) -> bool:
        """Whether versions are tested by simulated matches."""
        return self.mode == "auto" and self.config.promotion.evidence == "simulator"

    @property
    def rules_bot(self) -> Bot | None:
        """None in mode `learn`."""
        return catalog.bots(self.game)[self.rules_name] if self.rules_name else None


@dataclass
class PlayProgress(SessionProgress[PlaySession]):
    """How far a session of play is."""

    earlier: int = 0
    """Matches of earlier sessions in this run folder."""
    played: int = 0
    recent: deque[bool] = field(default_factory=lambda: deque(maxlen=_RECENT))
    by_player: dict[str, Tally] = field(default_factory=dict)
    """Results of this session by who played: `the rules`, `version 12`, or `practice` for all the
    versions that practised; empty in mode `learn`."""
    promotion: PromotionStatus | None = None
    """Who plays and what is tested, as after the last match; of mode `auto`."""
    news: list[str] = field(default_factory=list)
    """Verdicts for the screen, which empties the list."""

    @property
    def done(self) -> int:
        """Matches of this session."""
        return self.played

    @property
    def win_rate(self) -> float:
        """Of the recent matches."""
        return sum(self.recent) / max(len(self.recent), 1)


@dataclass(frozen=True, kw_only=True)
class PlaySummary(SessionSummary):
    """The result of a session of play."""

    status: Status
    before: Tally | None
    after: Tally | None
    rules: Tally | None
    champion: Tally | None = None
    """None where no version is the champion by evidence."""
    mode: Mode = "learn"
    by_player: Mapping[str, Tally] = field(default_factory=dict)
    promotion: PromotionStatus | None = None
    """As at the end; of mode `auto`."""

    def as_dict(self) -> dict[str, object]:
        """For `--json`; the same numbers as `understudy status --json`."""
        s = self.status
        result: dict[str, object] = {
            "run": s.run,
            "matches": s.matches,
            "win_rate_first": s.win_rate_first,
            "win_rate_last": s.win_rate_last,
            "versions": s.versions,
            "episodes": msgspec.to_builtins(s.episodes),
            "decision_ms": msgspec.to_builtins(s.decision_ms),
            "interrupted": self.interrupted,
        }
        for name, tally in (
            ("eval", self.after),
            ("start", self.before),
            ("champion", self.champion),
            ("rules", self.rules),
        ):
            if tally is not None:
                result[name] = tally.as_dict()
        if self.mode != "learn":
            result["mode"] = self.mode
            result["by_player"] = {name: one.as_dict() for name, one in self.by_player.items()}
        if self.promotion is not None:
            version = self.promotion.plays
            result["playing"] = "the newest version" if version is None else player_name(version)
            result["why"] = why_text(self.promotion)
            result["stage"] = self.promotion.stage
            result["line"] = self.promotion.line
        return result


def play(
    session: PlaySession,
    *,
    show: Callable[[PlayProgress], None],
    show_frozen: Callable[[float], None] = lambda share: None,
) -> PlaySummary:
    """Play the whole session. Ctrl-C or SIGTERM ends it early and keeps everything.

    `show` is called after each match, `show_frozen` with the share of the frozen matches at the end
    that is over, 0 to 1.
    """
    game = catalog.make(session.game, difficulty=first_difficulty(session.difficulty))
    spec = PolicySpec(game.features, game.actions, session.network)
    progress = PlayProgress(session, earlier=_earlier(session.run))
    champion: Tally | None = None
    with Interrupts() as interrupts:
        mind = _open(session, game, spec)
        remember(session.run)
        at_start = mind.policy
        judged: list[Tally] = []
        tests = _Tests(mind, session)
        follower = _RolesFollower(mind, progress)
        # Pressed again, or while it is judged: everything is kept by then.
        with contextlib.suppress(KeyboardInterrupt):
            with mind, tests:
                for _ in progress.turns(interrupts):
                    _one_match(mind, session, progress, interrupts)
                    tests.match_finished()
                    follower.follow()
                    show(progress)
            mind.refresh()
            follower.follow()
            if session.evaluate and not interrupts.asked:
                interrupts.gentle = False
                version = progress.promotion.plays if progress.promotion else None
                parts = 4 if version else 3
                judged = [
                    frozen(session, one, show=_share_of(show_frozen, part, parts))
                    for part, one in enumerate((at_start, mind.policy, None))
                ]
                _journal_evaluation(mind, session, judged[1])
                if version:
                    policy = mind.folder.versions.policy(version)
                    champion = frozen(session, policy, show=_share_of(show_frozen, 3, parts))
    numbers = mind.folder.versions.numbers()
    told = StatusReader(session.run, mind.folder.clock).read()
    status = with_versions(told, max(numbers, default=0), len(numbers))
    before, after, rules = judged if len(judged) == 3 else (None, None, None)
    return PlaySummary(
        code=interrupts.code,
        status=status,
        before=before,
        after=after,
        rules=rules,
        champion=champion,
        mode=session.mode,
        by_player=progress.by_player,
        promotion=progress.promotion,
    )


def _earlier(run: Path) -> int:
    """Matches of earlier sessions in this run folder: their seeds are used."""
    return StatusReader(run, LogicalClock()).read().matches if run.is_dir() else 0


def _clock_after(run: Path) -> LogicalClock:
    """A clock that continues after the newest journal entry: journals are read in order of time."""
    folded = FoldedJournal(run / "journal")
    folded.follow()
    return LogicalClock(folded.folds.last) if folded.folds.entries else LogicalClock()


def _journal_evaluation(mind: Understudy, session: PlaySession, tally: Tally) -> None:
    opponent = judging_difficulty(session.difficulty)
    Journal(mind.folder.journal, "eval", mind.folder.clock).write(
        evaluated(tally, version=mind.version, opponent=opponent)
    )


def _share_of(show: Callable[[float], None], part: int, parts: int) -> Callable[[float], None]:
    """Shows a share of one of several equal parts as the share of all."""
    return lambda share: show((part + share) / parts)


def frozen(
    session: PlaySession,
    policy: Policy | None,
    *,
    show: Callable[[float], None] = lambda share: None,
) -> Tally:
    """Matches on seeds that nothing was learned from; None plays the rules."""
    game = catalog.make(session.game, difficulty=judging_difficulty(session.difficulty))
    seeds = match_seeds(session.seed, np.arange(session.evaluate), purpose=EVALUATION)
    if policy is None:
        rules = catalog.bots(session.game)[catalog.rules_named(session.game, session.rules)]
        return evaluate(game, BotPlayer(rules), seeds, show=show)
    # Untrained, all actions are about equally likely: the likeliest one would be an accident.
    player = PolicyPlayer(policy, sampled=policy.version == 0)
    return evaluate(game, player, seeds, show=show)


def adapted(win_rate: float) -> str:
    """The difficulty that suits a bot with this win rate."""
    if win_rate < 0.10:
        return "easy"
    if win_rate < 0.30:
        return "medium"
    return "hard" if win_rate < 0.70 else "very_hard"


def first_difficulty(difficulty: str) -> str:
    """The difficulty that a session starts with."""
    return adapted(0.0) if difficulty == ADAPTIVE else difficulty


def judging_difficulty(difficulty: str) -> str:
    """The difficulty of the frozen matches."""
    return "hard" if difficulty == ADAPTIVE else difficulty


def _open(session: PlaySession, game: Game, spec: PolicySpec) -> Understudy:
    lockstep = session.lockstep and session.mode != "play"  # where nothing is learned, all repeats
    clock = _clock_after(session.run) if lockstep else SystemClock()
    kept = RunFolder.kept(session.run, clock)
    folder = RunFolder.open(
        session.run,
        spec=spec,
        config=session.config,
        clock=clock,
        game=f"{game.name} {game.version}",
    )
    if kept is not None and (changed := changes(kept.config, folder.config)):
        complain(f"{session.run}: settings changed: {', '.join(changed)}")
    learner = LockstepLearner(folder) if lockstep else None
    # Not by `Understudy.open`: a bot has no simulator, and a session of play may have one.
    mind = Understudy(
        folder,
        mode=session.mode,
        learner=learner or session.learner,
        pace="free" if lockstep else session.pace,
        # The game's own reward has the result in it.
        result_rewards=dict.fromkeys(RESULT_REWARDS, 0.0),
        rules=session.rules_name,
        seed=session.seed,
    )
    if learner is not None:
        learner.mind = mind
    return mind


class LockstepLearner:
    """A learner inside the bot's process, which makes a session bit for bit reproducible: play,
    learn, publish and adopt take turns. It learns in `finish`, when a batch is full."""

    def __init__(self, folder: RunFolder) -> None:
        from understudy.learner.ring import RingLearner
        from understudy.learner.trainer import Trainer

        self._lock = contextlib.ExitStack()
        self._lock.enter_context(learner_lock(folder.root))
        self._root = folder.root
        self._batch = folder.config.learner.batch_matches
        self._learner = RingLearner(
            folder,
            Trainer(folder.spec, folder.config.learner, bounds=folder.config.features.bounds),
            Journal(folder.journal, "learner", folder.clock),
        )
        self.mind: Understudy | None = None

    @property
    def alive(self) -> bool:
        return True

    def wake(self) -> None:
        if self._learner.pending() >= self._batch:
            self._learn()

    def stop(self, timeout_s: float) -> bool:
        with self._lock:
            self._learn()
        return True

    def _learn(self) -> None:
        if read_pause(self._root).paused:
            return
        while self._learner.work(hurry=True):
            pass
        self._learner.publish_rest()
        if self.mind is not None:
            self.mind.refresh()


def _one_match(
    mind: Understudy, session: PlaySession, progress: PlayProgress, interrupts: Interrupts
) -> None:
    difficulty = session.difficulty
    if difficulty == ADAPTIVE:
        difficulty = adapted(progress.win_rate)
    game = catalog.make(session.game, difficulty=difficulty)
    index = np.array([progress.earlier + progress.played])
    seed = int(match_seeds(session.seed, index, purpose=TRAINING)[0])
    live_match = LiveMatch(game, seed)
    names: tuple[str, ...] = game.actions.names  # type: ignore[union-attr]
    codes = {name: code for code, name in enumerate(names)}
    rules = session.rules_bot
    with mind.match(**live_match.tags, **replay_tags(game, seed)) as match:
        while not live_match.over:
            if interrupts.asked:
                return  # leaving without a result: the match is kept as aborted
            seen = live_match.observe()
            scripted = None if rules is None else names[live_match.scripted(rules, seen)[0]]
            action = match.decide(seen, fallback=scripted, legal=live_match.legal())
            match.reward(live_match.act(codes[action]))
        outcome = live_match.outcome()
        match.finish(outcome)
    progress.played += 1
    progress.version = mind.version
    progress.recent.append(outcome == "victory")
    if rules is not None:
        _count(progress.by_player, match, outcome)


def _count(by_player: dict[str, Tally], match: Match, outcome: str) -> None:
    """A match that a version gave to the rules by a fault is its loss."""
    player = PRACTICE if match.role == "practice" else player_name(match.version)
    won, drawn = (outcome == one and not match.fault for one in ("victory", "tie"))
    one = Tally(int(won), int(drawn), int(not won and not drawn))
    by_player[player] = by_player.get(player, Tally(0, 0, 0)) + one


class _Tests(contextlib.AbstractContextManager[None]):
    """The tests by simulated matches beside a session of mode `auto` that asks for them.

    In lockstep they run in this process, a step after each match; else in a process of their own.
    """

    def __init__(self, mind: Understudy, session: PlaySession) -> None:
        self._process: SupervisedProcess | None = None
        self._simulator: Simulator | None = None
        if mind.promotion is None or not session.simulated:
            return
        folder, rules = mind.folder, session.rules_name
        options = {"difficulty": judging_difficulty(session.difficulty)}
        journal = Journal(folder.journal, "play", folder.clock)
        if session.lockstep:
            self._simulator = Simulator(
                folder,
                mind.promotion,
                rules=rules,
                options=options,
                problem=lambda text: journal.write(events.Problem(where="simulator", message=text)),
                practises=True,
            )
        else:
            self._process = start_simulator(
                folder, journal, rules=rules, options=options, practises=True
            )

    def match_finished(self) -> None:
        if self._simulator is not None:
            self._simulator.step()

    def __exit__(self, *error: object) -> None:
        if self._process is not None:
            self._process.stop(_PATIENCE_S)


class _RolesFollower:
    """Reads who plays and the new verdicts from a bot in mode `auto`, after each match."""

    def __init__(self, mind: Understudy, progress: PlayProgress) -> None:
        self._mind = mind
        self._promotion = mind.promotion if mind.mode == "auto" else None
        self._folder = mind.folder
        self._progress = progress
        self._told = len(self._promotion.verdicts) if self._promotion else 0
        self.follow()

    def follow(self) -> None:
        if self._promotion is None:
            return
        self._promotion.follow()
        verdicts = self._promotion.verdicts
        news = [verdict_line(verdict, self._folder.root) for verdict in verdicts[self._told :]]
        self._told = len(verdicts)
        before = self._progress.promotion
        now = self._progress.promotion = self._mind.promotion_status()
        assert now is not None
        if before is not None and (before.pinned, before.policy) != (now.pinned, now.policy):
            news.append(f"from now on {playing_text(now)}")
        self._progress.news += news
