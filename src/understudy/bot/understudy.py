"""The bot's side of Understudy, and its manual.

    from understudy import Understudy

    with Understudy.open("runs/zerg", features=FEATURES, actions=ACTIONS, mode="auto") as mind:
        for opponent in opponents:
            with mind.match(opponent=opponent, difficulty="hard") as match:
                while game.running:
                    action = match.decide(features(game), fallback=rules(game), legal=mask(game))
                    match.reward(0.1)            # belongs to the decision before it
                match.finish("victory")          # or defeat, tie; leaving without it: aborted

`open` starts a learner in another process. The mode says who plays:

    shadow    Your rules play. The policy learns from what they do, and is measured.
    auto      Your rules play. A version that has learned enough is tried in a share of the matches,
              drawn by a recorded coin; it takes over once the results show that it is better, and
              loses its place once they show that it is not. `match.role` says who plays a match.
    learn     The newest version plays and explores. It may play worse before it plays better.
    play      The champion plays, or your rules while there is none. Nothing is recorded or learned.

Modes `shadow` and `auto` need `fallback` at every decision. A version that raises, answers garbage
or is slow loses the match to the rules. New versions are adopted while the game runs. If the
learner fails, the game goes on. A bot that plays faster than the learner learns gets a message;
with `pace="learner"` its `finish` waits for the learner. SIGTERM keeps an unfinished match as
aborted.
`evaluate` compares rules and policy where the bot has a simulator of its game.
"""

from __future__ import annotations

import atexit
import os
import signal
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias
from uuid import uuid4

import numpy as np

from understudy.bot.actions import Codec
from understudy.bot.cameos import COIN, CameoBudget, MatchCameos
from understudy.bot.console import BotConsole
from understudy.bot.faults import BotFaults
from understudy.bot.match import Match, MatchPlayer, UndecidedMatches, open_matches
from understudy.bot.outbox import Outbox
from understudy.bot.pace import PACES, Pace, PaceName
from understudy.bot.recorder import Recorder
from understudy.bot.validation import (
    ConstantFeatureCheck,
    checked_rewards,
    checked_rules,
    checked_score,
    checked_tags,
    network_of,
    settings_of,
    spec_of,
)
from understudy.bot.watcher import Watcher
from understudy.core.clock import Clock, SystemClock
from understudy.core.config import Config, changes
from understudy.core.errors import ConfigError, InputError, RunFolderError, nearest
from understudy.core.pause import read_pause
from understudy.core.spaces import ActionSpace
from understudy.experience.episode import Meta, Outcome
from understudy.experience.spool import Spool
from understudy.policy.policy import Policy, untrained
from understudy.policy.spec import AnyNetwork
from understudy.registry.run_folder import RUNS, RunFolder, remember
from understudy.supervise import starter
from understudy.supervise.starter import LearnerParent, RunningLearner
from understudy.telemetry import events
from understudy.telemetry.journal import Journal
from understudy.telemetry.promotion_status import PromotionStatus
from understudy.telemetry.summary import light_writer
from understudy.telemetry.text import complain

if TYPE_CHECKING:
    from understudy.bot.evaluation import PairedPlay, RulesComparison
    from understudy.bot.roster import Roster
    from understudy.promotion.promotion import Promotion

Mode: TypeAlias = Literal["shadow", "auto", "learn", "play"]
MODES: tuple[Mode, ...] = ("shadow", "auto", "learn", "play")
LEARNERS = ("process", "thread", "off")
ChooseName: TypeAlias = Literal["drawn", "likeliest"]
CHOICES: tuple[ChooseName, ...] = ("drawn", "likeliest")
RESULT_REWARDS: Mapping[str, float] = {"victory": 10.0, "defeat": -5.0, "tie": 0.0, "aborted": 0.0}
"""What `finish` adds to the reward of the last decision, by default."""


class Understudy:
    """A bot that plays and records in one run folder. Made by `open`."""

    @classmethod
    def open(
        cls,
        run: str | Path,
        *,
        features: Sequence[str],
        actions: ActionSpace | Sequence[str] | Mapping[str, object],
        mode: Mode = "shadow",
        choose: ChooseName | None = None,
        learner: Literal["process", "thread", "off"] = "process",
        pace: PaceName = "free",
        network: AnyNetwork | str | None = None,
        config: Config | None = None,
        settings: Mapping[str, Any] | None = None,
        result_rewards: Mapping[str, float] = RESULT_REWARDS,
        score: tuple[float, float] | None = None,
        rules: str | None = None,
        seed: int | None = None,
        game: str = "",
        clock: Clock | None = None,
    ) -> Understudy:
        """Opens a run folder, or makes one, and starts the learner.

        Args:
            run: The run folder. Features, actions and network must be those that it was made with.
            features: The names of the F features, in the order in which `Match.decide` gets them.
            actions: Names (`["ECONOMY", "ATTACK"]`), a mapping of names to what they do (every one
                to something), or an action space (`MultiDiscrete`, `MultiBinary`).
            mode: `shadow`: the rules play, and the policy learns from what they do. `auto`: the
                rules play, and a version that is better by evidence takes over. `learn`: the newest
                version plays and explores. `play`: the champion plays (`models list` names it), or
                the rules while there is none; nothing is recorded or learned.
            choose: In mode `play`: the champion's actions are `drawn` (default), as they were when
                it was tested, or are always the `likeliest`. The other modes draw.
            learner: `process` starts another process, `thread` a thread (for tests and notebooks);
                `off` records only. Without the learner's libraries the bot records, and says so.
                Mode `play` starts none.
            pace: `learner`: `finish` waits while the learner is more than four batches behind, at
                most half a minute, and only while a learner runs. `free` never waits.
            network: A network (`Mlp((64, 64))`) or the name of one (`"mlp-large"`, see
                docs/bring-your-own-bot.md). Default: that of the run folder, else `Mlp()`.
            config: Settings (docs/settings.md) that replace those of the run folder.
            settings: Single settings to change, such as `{"learner.gamma": 0.9}`. A run folder
                keeps its settings; changes are printed.
            result_rewards: What `finish` adds to the reward of the last decision, by outcome
                (default: 10, -5 and 0). The reward of `aborted` must be 0.
            score: The lowest and the highest score, (low, high), where `finish` gets one: versions
                are then judged by scores, which takes fewer matches. Declared once: a run keeps
                its scale. Without one, by victory (1), tie (1/2) and defeat (0).
            rules: A name for the rules, such as `"v2"`. Change it when you change the rules: what
                was measured against the old ones does not count against the new ones. Default: the
                name that the run has.
            seed: Seeds the exploration. Default: a random seed.
            game: The name of a built-in game, kept with the run.
            clock: The source of time, for tests.

        Returns:
            An `Understudy`, which ends its learner in `close` or at the end of a `with` block.

        Raises:
            ConfigError: An argument or a setting is unknown or out of range.
            InputError: Features, actions or rewards are malformed.
            RunFolderError: The folder cannot be used, or was made for other features, actions or
                another network.

        Example:
            with Understudy.open("runs/zerg", features=["minerals", "supply"],
                                 actions=["ECONOMY", "ATTACK"], mode="auto") as mind:
                with mind.match(opponent="Terran") as match:
                    action = match.decide([50.0, 12.0], fallback="ECONOMY")
                    match.finish("victory")
        """
        choices = ((mode, MODES, "mode"), (learner, LEARNERS, "learner"), (pace, PACES, "pace"))
        for value, known, what in choices:
            if value not in known:
                raise ConfigError(
                    f"{what}: expected one of {list(known)}, got {value!r}.{nearest(value, known)}"
                )
        if choose is not None and choose not in CHOICES:
            raise ConfigError(
                f"choose: expected one of {list(CHOICES)}, got {choose!r}."
                f"{nearest(str(choose), CHOICES)}"
            )
        if choose is not None and mode != "play":
            raise ConfigError(f"choose: expected only with mode 'play'; mode {mode!r} draws")
        if seed is not None and seed < 0:
            raise ConfigError(f"seed: expected a whole number, 0 or more, got {seed}")
        if isinstance(features, str):
            raise InputError("features: expected a list of names, got one string")
        scale, rules = checked_score(score), None if rules is None else checked_rules(rules)
        root = Path(run)
        clock = clock or SystemClock()
        kept = RunFolder.kept(root, clock)
        chosen = settings_of(config, settings, kept)
        used = chosen or (kept.config if kept is not None else Config())
        if mode == "auto" and used.promotion.evidence == "simulator":
            raise ConfigError(
                "promotion.evidence: expected 'matches', got 'simulator': only `understudy play` "
                "and `understudy train` have a simulator, of built-in games; open the run with "
                "settings={'promotion.evidence': 'matches'}, or play it with `understudy play`"
            )
        folder = RunFolder.open(
            root,
            spec=spec_of(features, actions, network_of(network, kept)),
            config=chosen,
            clock=clock,
            game=game,
        )
        if kept is not None and (changed := changes(kept.config, folder.config)):
            complain(f"{root}: settings changed: {', '.join(changed)}")
        if RUNS.resolve() in root.resolve().parents:  # elsewhere no command would look for it
            remember(root)
        return cls(
            folder,
            mode=mode,
            learner=learner,
            pace=pace,
            result_rewards=result_rewards,
            choose=choose or "drawn",
            score=scale,
            rules=rules,
            seed=seed,
        )

    def __init__(
        self,
        folder: RunFolder,
        *,
        mode: Mode,
        learner: Literal["process", "thread", "off"] | RunningLearner,
        result_rewards: Mapping[str, float],
        seed: int | None,
        pace: PaceName = "free",
        choose: ChooseName = "drawn",
        score: tuple[float, float] | None = None,
        rules: str | None = None,
    ) -> None:
        self.folder = folder
        self.spec = folder.spec
        self.mode: Mode = mode
        self.choose: ChooseName = choose
        self.score = score
        """The lowest and the highest score, if `finish` gets one."""
        self.matches = 0
        self._clock = folder.clock
        self._rng = _rng(seed, folder.journal)
        # Lockstep repeats bit for bit, ids too. Equal ids of two bots would be taken for copies.
        self._seeded_ids = seed is not None and not isinstance(learner, str)
        self._result_rewards = checked_rewards(result_rewards, RESULT_REWARDS)
        self._codec = Codec(self.spec.actions)
        self._journal = Journal(folder.journal, "bot", folder.clock)
        self._summaries = light_writer(self._journal, folder.config.retention)
        self._outbox = Outbox(Spool(folder.root, self.spec, folder.clock), self._problem)
        self._constant_features = ConstantFeatureCheck(self.spec.features)
        self.faults = BotFaults()
        """What versions and features did wrong."""
        self._lock = threading.Lock()
        self._closed = False
        self._closing = threading.Event()
        self._policy = untrained(self.spec, folder.config.learner.seed)
        self._console = BotConsole(
            folder.root, folder.config.report, folder.clock, self.promotion_status
        )
        self._watcher = Watcher(
            folder,
            adopt=self._adopt,
            problem=self._problem,
            tick=self._tick,
            playing=self._policy.version,
            untrained=self._policy if mode == "play" else None,
        )
        self.promotion: Promotion | None = None
        """Who plays, and why, in the modes `shadow` and `auto`. None in mode `shadow` where the
        champion is the newest version of mode `learn` or of training."""
        self._roster: Roster | None = None
        self._cameo_budget = CameoBudget(folder.config.promotion.cameo_share)
        self.undecided = UndecidedMatches()
        """Assigned matches in which nothing was decided yet."""
        self._watcher.look()
        if mode in ("shadow", "auto"):
            # Here, since an import of the facade would take half as long again with it.
            from understudy.bot.roster import Roster, declared_promotion, keeps_champion
        if mode == "auto" or (mode == "shadow" and not keeps_champion(folder)):
            self.promotion = declared_promotion(
                folder,
                rules=rules,
                score=score,
                journal=self._journal,
                say=self._console.say,
                problem=self._problem,
            )
            _, self.score = self.promotion.declared or ("", score)
        if self.promotion is not None and mode == "auto":
            self._roster = Roster(
                folder,
                self.promotion,
                newest=lambda: self._policy,
                usable=self.faults.may_decide,
                journal=self._journal,
                say=self._console.say,
                problem=self._problem,
            )
            atexit.register(self._void_undecided)
        self._journal.write(
            events.BotStarted(
                pid=os.getpid(),
                mode=mode,
                learner=_learner_name(learner, mode),
                version=self._policy.version,
            )
        )
        parent = LearnerParent(
            journal=self._journal,
            note=self._note_problem,
            problem=self._problem,
            alone="recording only",
            meanwhile="this bot plays and records, and looks again",
            prints=True,
        )
        self._learner = starter.start("off" if mode == "play" else learner, folder, parent)
        self._pace = Pace(
            pace,
            batch=folder.config.learner.batch_matches,
            clock=folder.clock,
            waiting=self._outbox.pending,
            alive=self._learner_runs,
            pause=self._closing.wait,
            say=self._outran,
        )
        self._restore_signal = _unwind_on_sigterm()
        if isinstance(learner, str):
            self._watcher.start()

    # --- playing -------------------------------------------------------------------------------

    # Not `cameos: bool`: a type checker would refuse `match(**tags)` with tags that are text.
    def match(self, *, cameos: object = True, **tags: object) -> Match:
        """Begins a match.

        Args:
            cameos: False: in mode `auto` the rules make every decision of this match if they are
                given it. Else the policy may have short windows of it, `promotion.cameo_share` of
                the decisions at most. (So no tag can be named `cameos`.)
            tags: What to keep with the match, such as `opponent`, `map`, `race` or `difficulty`;
                names and values of at most 200 characters.

        Returns:
            The match. In a `with` block it is kept as aborted unless `finish` was called. Several
            may be open at the same time, also in several threads.

        Raises:
            InputError: This `Understudy` is closed, a tag is too long, or `cameos` is no boolean.

        Example:
            with mind.match(opponent="Terran", map="Acropolis") as match:
                ...
        """
        if self._closed:
            raise InputError("match: this Understudy is closed")
        if not isinstance(cameos, bool):
            raise InputError(
                f"match: cameos: expected True or False, got {cameos!r}; no tag has this name"
            )
        checked = checked_tags(tags)
        player = self._player(checked)
        if player.fault:
            self.faults.failed(player.version, player.fault)
        rng = self._rng.spawn(1)[0]
        windows = None
        if cameos and player.cameos and self._cameo_budget.share > 0.0:
            windows = MatchCameos(self._cameo_budget, rng.spawn(1)[0])
        return Match(self, tags=checked, player=player, codec=self._codec, rng=rng, cameos=windows)

    def _player(self, tags: Mapping[str, str]) -> MatchPlayer:
        """Who plays the next match."""
        if self._roster is not None:
            self._roster.void(self.undecided.take_dropped())
            return self._roster.assign(self._new_id(), tags, float(self._rng.random()))
        if self.mode == "learn":
            return MatchPlayer("newest")
        if self.mode == "play" and self._policy.version:
            return MatchPlayer("champion", self._policy.version, self._policy)
        return MatchPlayer("rules")

    def evaluate(
        self,
        play: PairedPlay,
        matches: int,
        *,
        version: int | None = None,
        seeds: Iterable[int] | None = None,
    ) -> RulesComparison:
        """Compares the rules with a version, for a bot that has a simulator of its game.

        Each seed is played twice, once by the rules and once by the version, so that both meet the
        same luck. Nothing is recorded, learned or counted as evidence.

        Args:
            play: `play(match, seed)` plays one whole match from this seed, with `match.decide`
                (which needs `fallback`), and returns its outcome, or (outcome, score) where `open`
                declared a scale. It may call `match.reward`, which does nothing, and `match.finish`
                instead of returning.
            matches: How many seeds are played; about 100 show a gain from 50% to 70%.
            version: The version to compare; default: the newest.
            seeds: Whole numbers, 0 or more, as many as `matches`. Default: fresh ones. Seeds that
                were used before to choose a version flatter it.

        Returns:
            Both mean results and their difference with a 95% interval; `print` it.

        Raises:
            InputError: An argument is malformed, or `play` returned no outcome.
            RunFolderError: There is no such version.

        Example:
            import random

            def play(match, seed):
                luck = random.Random(seed)
                gold = 0
                for turn in range(10):
                    here = luck.random()
                    action = match.decide([here, turn], fallback="wait")
                    gold += action == "dig" and here > 0.5
                return "victory" if gold >= 3 else "defeat"

            print(mind.evaluate(play, 20))
        """
        from understudy.bot.evaluation import compare, evaluation_seeds

        policy = self._evaluated(version)
        return compare(self, play, policy, evaluation_seeds(matches, seeds), codec=self._codec)

    def _evaluated(self, version: int | None) -> Policy:
        if version is None:
            candidate = self.folder.pointers.read("candidate")
            version = self._policy.version if candidate is None else candidate.version
            if version == 0:
                raise RunFolderError(f"evaluate: {self.folder.root} has no version yet")
        if version == self._policy.version and version:
            return self._policy
        return self.folder.versions.policy(version)

    def _new_id(self) -> str:
        return (self._rng.bytes(16) if self._seeded_ids else uuid4().bytes).hex()

    def promotion_status(self) -> PromotionStatus | None:
        """Who plays, why, and what would change it (its `line`), as far as this bot knows without
        reading the log again; None in the modes `learn` and `play`."""
        if self.promotion is None:
            return None
        from understudy.promotion.report import read_brief

        if self._roster is None:
            return read_brief(self.folder, self.promotion)
        agreement, waits = self._roster.agreement, self._roster.waits
        return read_brief(self.folder, self.promotion, agreement=agreement, waits=waits)

    @property
    def version(self) -> int:
        """The newest version that this bot holds; in mode `play` the champion; 0: none yet."""
        return self._policy.version

    @property
    def policy(self) -> Policy:
        """The policy of `version`. It never changes: a new version is a new object."""
        return self._policy

    def refresh(self) -> int:
        """Looks for a new version now, not within 50 ms; returns `version`.

        In mode `auto` it also reads the promotion log, and looks for a version to try.
        """
        self._watcher.look()
        self._follow_promotion()
        return self._policy.version

    # --- ending --------------------------------------------------------------------------------

    def close(self) -> None:
        """Stops the learner when it has learned from what is pending, or after `learner.drain_s`.

        Matches that are still open can be finished afterwards; the next learner takes them. In mode
        `auto` those that are open when this process opens the run again count as lost. Those
        without a decision count for nothing.
        """
        if self._closed:
            return
        self._closed = True
        self._closing.set()
        still_open = len(open_matches(self))
        if still_open:
            complain(
                f"closed with {still_open} open {'match' if still_open == 1 else 'matches'}: "
                "what is never finished is kept as aborted when the interpreter ends"
            )
        try:
            self._watcher.stop()
            self._outbox.flush()
            self._void_undecided()
            atexit.unregister(self._void_undecided)
            if self.promotion is not None:
                self.promotion.close()
            self._stop_learner()
        except BaseException:  # Ctrl-C while waiting for the learner loses no match
            self._outbox.flush()
            raise
        finally:
            unsaved = len(self._outbox)
            self._journal.write(events.BotStopped(matches=self.matches, unsaved=unsaved))
            self._restore_signal()
        self._console.closed(self.matches)
        if unsaved:
            raise RunFolderError(f"{unsaved} matches could not be saved: see the messages above")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # --- inside --------------------------------------------------------------------------------

    def _keep(self, match: Match, recorder: Recorder, agreed: int) -> bool:
        """Makes a finished match durable; a full disk is reported and tried again later."""
        assert match.outcome is not None
        decisions = recorder.length
        if decisions == 0:
            self._resolve(match, void=True)
            match.kept = True
            return True
        # A signal may end this before `kept`; then it runs again, with the same id, and the learner
        # takes the match once.
        match.id = match.id or self._new_id()
        cameos = match.cameos
        meta = Meta(
            id=match.id,
            outcome=match.outcome,
            finished_at=self._clock.time(),
            tags=match.tags,
            cameo_coin=0.0 if cameos is None else COIN,
        )
        result = self._result_rewards[match.outcome]
        episode = recorder.episode(meta, result=result, cameos=cameos)
        records = self.mode != "play"
        saved = records and self._outbox.put(episode)
        self._resolve(match)
        match.kept = True
        with self._lock:
            self.matches += 1
            matches = self.matches
        took = np.percentile(recorder.took_ns[:decisions], (50, 99)) / 1e3
        self._journal.write(
            events.MatchFinished(
                id=meta.id,
                outcome=match.outcome,
                decisions=decisions,
                reward=float(episode.rewards.sum()),
                version=int(episode.versions[-1]),
                seconds=self._clock.monotonic() - match.began,
                saved=saved,
                tags=match.tags,
                fallback=int((~episode.sampled).sum()),
                agreed=agreed,
                decision_us=(float(took[0]), float(took[1])),
                not_finite=dict(match.not_finite),
                role=match.role,
                recorded=records,
                mode=self.mode,
                assigned=match.version,
                fault=match.fault,
            )
        )
        if self._roster is not None:
            asked = agreed if episode.versions.all() else None
            self._roster.remember(episode, role=match.role, agreed=asked)
        constant = self._constant_features.add(episode.observations)
        if constant is not None:
            seen = self._constant_features.seen
            self._journal.write(events.ConstantFeatures(names=constant, decisions=seen))
        if self._learner is not None and saved:
            self._learner.wake()
        self._console.match_finished(matches)
        return saved or not records

    def _resolve(self, match: Match, *, void: bool = False) -> None:
        """Notes the result of an assigned match, and what versions did wrong."""
        for words in self.faults.take_new():
            self._note_problem(words)
        if self._roster is None or not match.order:
            return
        if void:
            self._roster.resolve(match.order, 0.0, "void")
        elif match.fault:
            self._roster.resolve(match.order, 0.0, "fault", match.fault)
        elif match.outcome is Outcome.ABORTED:
            self._roster.resolve(match.order, 0.0, "aborted")
        else:
            self._roster.resolve(match.order, match.result, "finished")

    def _keep_pace(self) -> None:
        """After a match: waits for the learner if the pace says so."""
        self._pace.match_finished()

    def _tick(self) -> None:
        self._console.tick()
        self._summaries.work()
        self._pace.tick()
        self._follow_promotion()

    def _follow_promotion(self) -> None:
        if self._roster is not None:
            self._roster.void(self.undecided.take_dropped())
            self._roster.look()

    def _void_undecided(self) -> None:
        """At the end: matches in which nothing was decided count for no arm."""
        if self._roster is not None:
            self._roster.void(self.undecided.take_all())
            self._roster.follow()

    def _learner_runs(self) -> bool:
        """Whether a learner takes matches from the buffer; a paused one takes none."""
        if self._learner is None or self._closed or not self._learner.alive:
            return False
        return not read_pause(self.folder.root).paused

    def _outran(self, message: str) -> None:
        complain(message)
        self._journal.write(events.Note(where="bot", message=message))

    def _adopt(self, policy: Policy) -> None:
        previous, self._policy = self._policy.version, policy
        self._journal.write(events.VersionAdopted(version=policy.version, previous=previous))

    def _stop_learner(self) -> None:
        if self._learner is None:
            return
        problem = starter.stop(self._learner, self.folder.config.learner.drain_s)
        if problem:
            self._problem(problem)
        left = self._outbox.pending()
        if left:
            root = self.folder.root
            paused = f"learning is paused: understudy learner resume {root}"
            then = paused if read_pause(root).paused else "the next learner takes them"
            complain(f"{left} matches wait in the buffer; {then}")

    def _problem(self, message: str) -> None:
        complain(message)
        self._note_problem(message)

    def _note_problem(self, message: str) -> None:
        self._journal.write(events.Problem(where="bot", message=message))


def _learner_name(learner: str | RunningLearner, mode: Mode) -> str:
    if mode == "play":
        return "off"
    return learner if isinstance(learner, str) else "own"


def _rng(seed: int | None, journal: Path) -> np.random.Generator:
    """Another stream each time a run is opened, so that match ids do not repeat."""
    if seed is None:
        return np.random.default_rng()
    opened = len(list(journal.glob("bot-*.jsonl")))
    return np.random.default_rng([seed, opened])


def _unwind_on_sigterm() -> Callable[[], object]:
    """Makes SIGTERM unwind the `with` blocks, so that an unfinished match is kept as aborted.

    A bot with a handler of its own keeps it. Returns a function that undoes this.
    """
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return lambda: None

    def unwind(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, unwind)
    return lambda: signal.signal(signal.SIGTERM, signal.SIG_DFL)
