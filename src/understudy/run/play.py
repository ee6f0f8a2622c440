"""A session of play on a built-in game, with the learner in the background.

The bot learns by playing: matches one after the other through the same facade that a bot of one's
own uses, then frozen matches that say what came of it.
"""

from __future__ import annotations

import contextlib
import time
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
from understudy.supervise.budget import Length
from understudy.supervise.interrupts import Interrupts
from understudy.telemetry import events
from understudy.telemetry.fold import StatusReader
from understudy.telemetry.journal import Journal, Reader
from understudy.telemetry.status import Status

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
    def length(self) -> Length:
        """How long it goes on."""
        return Length("--matches", self.matches, self.minutes)

    def __post_init__(self) -> None:
        self.length.check()
        if self.evaluate < 0:
            raise ConfigError(f"--eval: expected 0 or more, got {self.evaluate}")


@dataclass
class PlayProgress:
    """How a session goes, for whoever shows it."""

    session: PlaySession
    earlier: int = 0
    """Matches that this run folder has from earlier sessions."""
    began: float = field(default_factory=time.monotonic)
    played: int = 0
    version: int = 0
    recent: deque[bool] = field(default_factory=lambda: deque(maxlen=_RECENT))

    @property
    def elapsed_s(self) -> float:
        """Since the first match."""
        return time.monotonic() - self.began

    @property
    def share(self) -> float:
        """How much of the session is over, 0 to 1."""
        return self.session.length.share(done=self.played, elapsed_s=self.elapsed_s)

    @property
    def left_s(self) -> float | None:
        """Estimated seconds until the end."""
        return self.session.length.left_s(done=self.played, elapsed_s=self.elapsed_s)

    @property
    def win_rate(self) -> float:
        """Of the recent matches."""
        return sum(self.recent) / max(len(self.recent), 1)


@dataclass(frozen=True)
class PlaySummary:
    """What came of a session."""

    status: Status
    code: int
    """How the process should end: 0, 130 after Ctrl-C, 143 after SIGTERM"""
    before: Tally | None
    after: Tally | None
    rules: Tally | None

    @property
    def interrupted(self) -> bool:
        """Whether a signal ended it early."""
        return self.code != 0

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
                while progress.share < 1.0 and not interrupts.asked:
                    _one_match(mind, session, progress, interrupts)
                    show(progress)
            mind.refresh()
            if session.evaluate and not interrupts.asked:
                interrupts.gentle = False
                judged = [frozen(session, one) for one in (at_start, mind.policy, None)]
                _journal_evaluation(mind, session, judged[1])
    status = StatusReader(session.run, mind.folder.clock).read()
    before, after, rules = judged if len(judged) == 3 else (None, None, None)
    return PlaySummary(status, interrupts.code, before, after, rules)


def _earlier(run: Path) -> int:
    """Matches that were played in this run folder before: their seeds are used up."""
    return StatusReader(run, LogicalClock()).read().matches if run.is_dir() else 0


def _clock_after(run: Path) -> LogicalClock:
    """A run that is continued goes on in time as well: its journals are read in that order."""
    times = [entry.t for entry in Reader(run / "journal").new()]
    return LogicalClock(max(times)) if times else LogicalClock()


def _journal_evaluation(mind: Understudy, session: PlaySession, tally: Tally) -> None:
    folder = mind.folder
    Journal(folder.journal, "eval", folder.clock).write(
        events.Evaluated(
            version=mind.version,
            matches=tally.matches,
            wins=tally.wins,
            draws=tally.draws,
            losses=tally.losses,
            opponent=judging_difficulty(session.difficulty),
        )
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
    """Where a session starts."""
    return adapted(0.0) if difficulty == ADAPTIVE else difficulty


def judging_difficulty(difficulty: str) -> str:
    """What a bot that met several difficulties is measured against."""
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
    from understudy.run.lockstep import LockstepLearner

    clock = _clock_after(session.run)
    folder = RunFolder.open(session.run, spec=spec, config=session.config, clock=clock, game=label)
    learner = LockstepLearner(folder)
    mind = Understudy(
        folder, mode="learn", learner=learner, result_rewards=nothing, seed=session.seed
    )
    learner.mind = mind
    return mind


def _one_match(
    mind: Understudy, session: PlaySession, progress: PlayProgress, interrupts: Interrupts
) -> None:
    difficulty = session.difficulty
    if difficulty == ADAPTIVE:
        difficulty = adapted(progress.win_rate)
    game = catalog.make(session.game, difficulty=difficulty)
    index = np.array([progress.earlier + progress.played])
    seed = int(match_seeds(session.seed, index, purpose=TRAINING)[0])
    stage = LiveMatch(game, seed)
    codes = {name: code for code, name in enumerate(game.actions.names)}  # type: ignore[union-attr]
    with mind.match(**stage.tags, **replay_tags(game, seed)) as match:
        while not stage.over:
            if interrupts.asked:
                return  # leaving without a result: the match is kept as aborted
            action = match.decide(stage.observe(), legal=stage.legal())
            match.reward(stage.act(codes[action]))
        outcome = stage.outcome()
        match.finish(outcome)
    progress.played += 1
    progress.version = mind.version
    progress.recent.append(outcome == "victory")
