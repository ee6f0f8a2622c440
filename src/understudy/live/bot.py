"""The bot's side of Understudy, and its manual.

    from understudy import Understudy

    with Understudy.open("runs/zerg", features=FEATURES, actions=ACTIONS) as mind:
        for opponent in opponents:
            with mind.match(opponent=opponent, difficulty="hard") as match:
                while game.running:
                    action = match.decide(features(game), fallback=rules(game), legal=mask(game))
                    match.reward(0.1)            # belongs to the decision before it
                match.finish("victory")          # or defeat, tie; leaving without it: aborted

`open` starts a learner in another process. In mode `shadow` (the default) your rules play and the
policy learns from what they do; in mode `learn` the policy plays and explores. New versions are
picked up while the game runs. Whatever happens to the learner, the game goes on.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import threading
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Literal, Protocol, Self

import numpy as np

from understudy.core.clock import Clock, SystemClock
from understudy.core.config import Config
from understudy.core.errors import ConfigError, InputError, nearest
from understudy.core.spaces import ActionSpace
from understudy.experience.episode import Episode, Meta
from understudy.experience.spool import Spool
from understudy.live.actions import Codec, space_of
from understudy.live.match import Match
from understudy.live.recorder import Recorder
from understudy.live.watcher import Watcher
from understudy.policy.mlp import Mlp
from understudy.policy.policy import Policy, untrained
from understudy.policy.spec import AnyNetwork, PolicySpec
from understudy.registry.run_folder import RunFolder
from understudy.supervise.process import LearnerProcess
from understudy.supervise.thread import LearnerThread
from understudy.telemetry import events
from understudy.telemetry.journal import Journal

MODES = ("shadow", "learn")
LEARNERS = ("process", "thread", "off")
RESULT_REWARDS: Mapping[str, float] = {"victory": 10.0, "defeat": -5.0, "tie": 0.0, "aborted": 0.0}
"""What `finish` adds to the last decision, unless told otherwise."""

INSTALL_LINE = 'pip install "understudy[learn]"'
_MAX_TAG = 200
_CONSTANT_AFTER = 200
_MOST_UNSAVED = 1000


class Learner(Protocol):
    """Whatever learns beside a bot."""

    def wake(self) -> None:
        """A match is finished: look at the spool."""

    def stop(self, timeout_s: float) -> bool:
        """Learn from what is pending, then end; False if time ran out."""


class Understudy:
    """A run folder with a bot at work in it. Made by `open`."""

    @classmethod
    def open(
        cls,
        run: str | Path,
        *,
        features: Sequence[str],
        actions: ActionSpace | Sequence[str] | Mapping[str, object],
        mode: Literal["shadow", "learn"] = "shadow",
        learner: Literal["process", "thread", "off"] = "process",
        network: AnyNetwork | None = None,
        config: Config | None = None,
        result_rewards: Mapping[str, float] = RESULT_REWARDS,
        seed: int | None = None,
        game: str = "",
        clock: Clock | None = None,
    ) -> Understudy:
        """Open a run folder, or make one, and start the learner beside this process.

        `result_rewards` is what `finish` adds to the last decision (+10, -5, 0 by default).
        `actions` are names (`["ECONOMY", …]`), names mapped to what they do (then every one must be
        mapped to something), or an action space. `config` are settings (docs/settings.md); a run
        folder keeps those it was last opened with.
        """
        for value, known, what in ((mode, MODES, "mode"), (learner, LEARNERS, "learner")):
            if value not in known:
                raise ConfigError(
                    f"{what}: expected one of {list(known)}, got {value!r}.{nearest(value, known)}"
                )
        if isinstance(features, str):
            raise InputError("features: expected a list of names, got one string")
        root = Path(run)
        clock = clock or SystemClock()
        spec = PolicySpec(tuple(features), space_of(actions), network or _kept_network(root, clock))
        folder = RunFolder.open(root, spec=spec, config=config, clock=clock, game=game)
        return cls(folder, mode=mode, learner=learner, result_rewards=result_rewards, seed=seed)

    def __init__(
        self,
        folder: RunFolder,
        *,
        mode: Literal["shadow", "learn"],
        learner: Literal["process", "thread", "off"] | Learner,
        result_rewards: Mapping[str, float],
        seed: int | None,
    ) -> None:
        self.folder = folder
        self.spec = folder.spec
        self.mode = mode
        self.matches = 0
        self._clock = folder.clock
        self._rng = np.random.default_rng(seed)
        self._seeded = seed is not None
        self._result_rewards = {**RESULT_REWARDS, **result_rewards}
        self._codec = Codec(self.spec.actions)
        self._spool = Spool(folder.root, self.spec, folder.clock)
        self._journal = Journal(folder.journal, "bot", folder.clock)
        self._unsaved: list[Episode] = []
        self._seen_low = np.full(len(self.spec.features), np.inf, np.float32)
        self._seen_high = np.full(len(self.spec.features), -np.inf, np.float32)
        self._seen = 0
        self._constant: tuple[str, ...] = ()
        self._closed = False
        self._policy = untrained(self.spec, folder.config.learner.seed)
        self._watcher = Watcher(
            folder, adopt=self._adopt, problem=self._problem, playing=self._policy.version
        )
        self._watcher.look()
        self._journal.write(
            events.BotStarted(
                pid=os.getpid(),
                mode=mode,
                learner=learner if isinstance(learner, str) else "own",
                version=self._policy.version,
            )
        )
        self._learner = self._start(learner) if isinstance(learner, str) else learner
        self._restore_signal = _unwind_on_sigterm()
        if isinstance(learner, str):
            self._watcher.start()

    # --- playing -------------------------------------------------------------------------------

    def match(self, **tags: object) -> Match:
        """A new match; tags (opponent, map, race, difficulty) are kept with it."""
        if self._closed:
            raise InputError("match: this Understudy is closed")
        named = {name: str(value) for name, value in tags.items()}
        for name, value in named.items():
            if len(value) > _MAX_TAG or len(name) > _MAX_TAG:
                raise InputError(f"match: tag {name[:40]!r} is longer than {_MAX_TAG} characters")
        return Match(
            self,
            tags=named,
            policy=lambda: self._policy,
            codec=self._codec,
            rng=self._rng.spawn(1)[0],
            explores=self.mode == "learn",
        )

    @property
    def version(self) -> int:
        """The version that decides now; 0: untrained."""
        return self._policy.version

    @property
    def policy(self) -> Policy:
        """The policy that decides now. It never changes: a new version is a new object."""
        return self._policy

    def refresh(self) -> int:
        """Look for a new version now instead of within 50 ms; returns the one that decides."""
        self._watcher.look()
        return self._policy.version

    # --- ending --------------------------------------------------------------------------------

    def close(self) -> None:
        """Stop the learner once it has learned from what is pending, within its bound."""
        if self._closed:
            return
        self._closed = True
        self._watcher.stop()
        self._save_unsaved()
        if self._learner is not None:
            drain_s = self.folder.config.learner.drain_s
            if not self._learner.stop(drain_s + 10.0):
                self._problem("the learner did not stop in time and was ended; nothing is lost")
        self._journal.write(events.BotStopped(matches=self.matches, unsaved=len(self._unsaved)))
        self._restore_signal()
        if self._unsaved:
            raise InputError(
                f"{len(self._unsaved)} matches could not be saved: see the messages above"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # --- behind the scenes ---------------------------------------------------------------------

    def _keep(self, match: Match, recorder: Recorder, agreed: int) -> bool:
        """Make a finished match durable; a full disk is said and retried, and the game goes on."""
        assert match.outcome is not None
        self.matches += 1
        decisions = recorder.length
        if decisions == 0:
            return True
        recorder.rewards[decisions - 1] += self._result_rewards[match.outcome]
        finished_at = self._clock.time()
        meta = Meta(
            id=self._new_id(), outcome=match.outcome, finished_at=finished_at, tags=match.tags
        )
        episode = recorder.episode(meta)
        self._unsaved.append(episode)
        self._save_unsaved()
        saved = not any(episode is other for other in self._unsaved)
        took = np.percentile(recorder.took_ns[:decisions], (50, 99)) / 1e3
        self._journal.write(
            events.MatchFinished(
                id=meta.id,
                outcome=match.outcome,
                decisions=decisions,
                reward=float(episode.rewards.sum()),
                version=int(episode.versions[-1]),
                seconds=float(recorder.took_ns[:decisions].sum()) / 1e9,
                saved=saved,
                tags=match.tags,
                fallback=int((~episode.sampled).sum()),
                agreed=agreed,
                decision_us=(float(took[0]), float(took[1])),
            )
        )
        if saved and self._learner is not None:
            self._learner.wake()
        self._watch_features(episode)
        return saved

    def _save_unsaved(self) -> None:
        while self._unsaved:
            try:
                self._spool.put(self._unsaved[0])
            except OSError as error:
                self._problem(
                    f"a match could not be saved and is kept in memory "
                    f"({len(self._unsaved)} so far): {error}"
                )
                del self._unsaved[:-_MOST_UNSAVED]
                return
            del self._unsaved[0]

    def _new_id(self) -> str:
        if self._seeded:  # a run that must repeat bit for bit needs ids that do
            return self._rng.bytes(16).hex()
        return uuid.uuid4().hex

    def _watch_features(self, episode: Episode) -> None:
        """Features that never change are nearly always a bug that something swallowed."""
        np.minimum(self._seen_low, episode.observations.min(0), out=self._seen_low)
        np.maximum(self._seen_high, episode.observations.max(0), out=self._seen_high)
        self._seen += len(episode)
        if self._seen < _CONSTANT_AFTER:
            return
        still = self._seen_low == self._seen_high
        names = tuple(name for name, same in zip(self.spec.features, still, strict=True) if same)
        if names != self._constant:
            self._constant = names
            self._journal.write(events.ConstantFeatures(names=names, decisions=self._seen))

    def _adopt(self, policy: Policy) -> None:
        previous, self._policy = self._policy.version, policy
        self._journal.write(events.VersionAdopted(version=policy.version, previous=previous))

    def _start(self, learner: str) -> Learner | None:
        if learner == "off":
            return None
        if importlib.util.find_spec("jax") is None:
            _say(f"understudy: recording only; to learn as well: {INSTALL_LINE}")
            self._journal.write(events.Problem(where="bot", message="JAX is not installed"))
            return None
        if learner == "thread":
            return LearnerThread(self.folder.root)
        return LearnerProcess(self.folder.root, died=self._learner_died)

    def _learner_died(self, code: int, restart_in_s: float | None) -> None:
        self._journal.write(events.LearnerDied(code=code, restart_in_s=restart_in_s))
        if restart_in_s is None:
            _say("understudy: another learner works on this run folder; this bot plays and records")

    def _problem(self, message: str) -> None:
        _say(f"understudy: {message}")
        self._journal.write(events.Problem(where="bot", message=message))


def _kept_network(root: Path, clock: Clock) -> AnyNetwork:
    """The network that a run folder was made with, else the default one."""
    if (root / "run.json").exists():
        return RunFolder.load(root, clock).spec.network
    return Mlp()


def _unwind_on_sigterm() -> Any:
    """SIGTERM unwinds the `with` blocks, so that an unfinished match is kept as aborted."""
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return lambda: None  # the bot has its own idea of SIGTERM

    def unwind(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, unwind)
    return lambda: signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
