"""A session of play on a built-in game, with the learner in the background.

The bot learns by playing: it plays matches one after the other through the facade that custom bots
use. Frozen matches at the end compare it with the bot of the start and with the rules.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from understudy.bot.pace import PaceName
from understudy.bot.understudy import RESULT_REWARDS, Understudy
from understudy.core.clock import LogicalClock
from understudy.core.config import Config
from understudy.core.errors import ConfigError
from understudy.core.pause import read_pause
from understudy.games import catalog
from understudy.games.base import Game
from understudy.match.evaluate import evaluate
from understudy.match.live_match import EVALUATION, TRAINING, LiveMatch, match_seeds
from understudy.match.players import BotPlayer, PolicyPlayer
from understudy.match.replaying import replay_tags
from understudy.match.tally import Tally
from understudy.policy.policy import Policy
from understudy.policy.spec import AnyNetwork, PolicySpec
from understudy.registry.run_folder import RunFolder, remember
from understudy.supervise.budget import Budget
from understudy.supervise.interrupts import Interrupts
from understudy.supervise.lock import learner_lock
from understudy.supervise.sessions import SessionProgress, SessionSummary
from understudy.telemetry.fold import StatusReader
from understudy.telemetry.journal import Journal, Reader
from understudy.telemetry.status import Status
from understudy.training.learning import evaluated

ADAPTIVE = "adaptive"
_RECENT = 40
_RULES = "rules"


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
        _ = self.budget  # an error where it cannot be
        if self.evaluate < 0:
            raise ConfigError(f"--eval: expected 0 or more, got {self.evaluate}")


@dataclass
class PlayProgress(SessionProgress[PlaySession]):
    """How far a session of play is."""

    earlier: int = 0
    """Matches of earlier sessions in this run folder."""
    played: int = 0
    recent: deque[bool] = field(default_factory=lambda: deque(maxlen=_RECENT))

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
        for name, tally in (("eval", self.after), ("start", self.before), ("rules", self.rules)):
            if tally is not None:
                result[name] = tally.as_dict()
        return result


def play(session: PlaySession, *, show: Callable[[PlayProgress], None]) -> PlaySummary:
    """Play the whole session. Ctrl-C or SIGTERM ends it early and keeps everything."""
    game = catalog.make(session.game, difficulty=first_difficulty(session.difficulty))
    spec = PolicySpec(game.features, game.actions, session.network)
    progress = PlayProgress(session, earlier=_earlier(session.run))
    with Interrupts() as interrupts:
        mind = _open(session, game, spec)
        remember(session.run)
        at_start = mind.policy
        judged: list[Tally] = []
        # Pressed again, or while it is judged: everything is kept by then.
        with contextlib.suppress(KeyboardInterrupt):
            with mind:
                for _ in progress.turns(interrupts):
                    _one_match(mind, session, progress, interrupts)
                    show(progress)
            mind.refresh()
            if session.evaluate and not interrupts.asked:
                interrupts.gentle = False
                judged = [frozen(session, one) for one in (at_start, mind.policy, None)]
                _journal_evaluation(mind, session, judged[1])
    status = StatusReader(session.run, mind.folder.clock).read()
    before, after, rules = judged if len(judged) == 3 else (None, None, None)
    return PlaySummary(code=interrupts.code, status=status, before=before, after=after, rules=rules)


def _earlier(run: Path) -> int:
    """Matches of earlier sessions in this run folder: their seeds are used."""
    return StatusReader(run, LogicalClock()).read().matches if run.is_dir() else 0


def _clock_after(run: Path) -> LogicalClock:
    """A clock that continues after the newest journal entry: journals are read in order of time."""
    times = [entry.t for entry in Reader(run / "journal").new()]
    return LogicalClock(max(times)) if times else LogicalClock()


def _journal_evaluation(mind: Understudy, session: PlaySession, tally: Tally) -> None:
    opponent = judging_difficulty(session.difficulty)
    Journal(mind.folder.journal, "eval", mind.folder.clock).write(
        evaluated(tally, version=mind.version, opponent=opponent)
    )


def frozen(session: PlaySession, policy: Policy | None) -> Tally:
    """Matches on seeds that nothing was learned from; None plays the game's own rules."""
    game = catalog.make(session.game, difficulty=judging_difficulty(session.difficulty))
    seeds = match_seeds(session.seed, np.arange(session.evaluate), purpose=EVALUATION)
    if policy is None:
        return evaluate(game, BotPlayer(catalog.bots(session.game)[_RULES]), seeds)
    # Untrained, all actions are about equally likely: the likeliest one would be an accident.
    return evaluate(game, PolicyPlayer(policy, sampled=policy.version == 0), seeds)


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
    nothing = dict.fromkeys(RESULT_REWARDS, 0.0)  # the game's own reward has the result in it
    label = f"{game.name} {game.version}"
    if not session.lockstep:
        return Understudy.open(
            session.run,
            features=spec.features,
            actions=spec.actions,
            network=spec.network,
            config=session.config,
            mode="learn",
            learner=session.learner,
            pace=session.pace,
            result_rewards=nothing,
            seed=session.seed,
            game=label,
        )
    clock = _clock_after(session.run)
    folder = RunFolder.open(session.run, spec=spec, config=session.config, clock=clock, game=label)
    learner = LockstepLearner(folder)
    mind = Understudy(
        folder, mode="learn", learner=learner, result_rewards=nothing, seed=session.seed
    )
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
            Trainer(folder.spec, folder.config.learner),
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
    codes = {name: code for code, name in enumerate(game.actions.names)}  # type: ignore[union-attr]
    with mind.match(**live_match.tags, **replay_tags(game, seed)) as match:
        while not live_match.over:
            if interrupts.asked:
                return  # leaving without a result: the match is kept as aborted
            action = match.decide(live_match.observe(), legal=live_match.legal())
            match.reward(live_match.act(codes[action]))
        outcome = live_match.outcome()
        match.finish(outcome)
    progress.played += 1
    progress.version = mind.version
    progress.recent.append(outcome == "victory")
