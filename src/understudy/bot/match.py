"""One match of a bot: `decide`, `reward`, `finish`.

`decide` does no I/O. When `finish` returns, the episode is on disk. A match without `finish` and
without a `with` block is kept as aborted when the interpreter ends. A match without a decision is
held by the bot alone: dropped, it is void, and matches after it are counted.

A version that raises, answers garbage or is slow loses the match to the rules: they finish it, and
its result counts 0 for the version. `decide` checks plain numbers only, at about 1% of its time.
One that fails in a cameo (`bot.cameos`) ends the cameos of the match, which stays the rules'.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import math
import sys
import weakref
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from math import isfinite
from time import perf_counter_ns
from types import TracebackType
from typing import TYPE_CHECKING, Literal, NamedTuple, Self, TypeAlias

import numpy as np

from understudy.bot.actions import Action, Codec
from understudy.bot.cameos import MatchCameos
from understudy.bot.recorder import Recorder
from understudy.bot.validation import result_of
from understudy.core.arrays import NDArray
from understudy.core.errors import InputError, UnderstudyError, nearest
from understudy.experience.episode import Outcome
from understudy.gates.promotion.records import Arm
from understudy.policy.policy import Policy

if TYPE_CHECKING:
    from understudy.bot.understudy import Understudy

SLOW_IN_A_ROW = 3
"""Decisions above `promotion.slow_ms` in a row at which a version loses the match to the rules."""
_NEVER = sys.maxsize


PlayerRole: TypeAlias = Literal["rules", "holdout", "practice", "canary", "champion", "newest"]
"""`holdout`: the rules play beside a champion, so that both can be compared. `practice`: the newest
version plays to learn, and its result promotes none."""


class MatchPlayer(NamedTuple):
    """Who plays one match."""

    role: PlayerRole
    version: int = 0
    """0: the rules, or an untrained policy in the role `newest`."""
    policy: Policy | None = None
    """Decides the whole match; None: the newest policy decides or is measured, as it is adopted."""
    order: int = 0
    """The number of the assignment in the promotion log; 0: the match is no evidence."""
    id: str = ""
    fault: str = ""
    """Why the version cannot play: the rules do, and its result is 0."""
    cameos: bool = False
    """Whether the policy may have short windows in this match of the rules: it is no control of a
    test."""
    arm: Arm = "incumbent"
    """Of the assignment. In a recheck the champion has that of a canary."""


class MatchDecision(NamedTuple):
    """The last decision of a match, in detail."""

    action: Action
    probability: float | None
    """of the action under the policy that drew it; None: the rules decided"""
    value: float
    """the return that the policy expected, in units of reward"""
    version: int
    sampled: bool
    """False: the rules decided"""


_open: set[Match] = set()
"""Matches that have decisions and are not kept yet: none is garbage-collected before that."""


class Match:
    """One match. Made by `Understudy.match`; use it in a `with` block."""

    def __init__(
        self,
        mind: Understudy,
        *,
        tags: dict[str, str],
        player: MatchPlayer,
        codec: Codec,
        rng: np.random.Generator,
        cameos: MatchCameos | None = None,
    ) -> None:
        self._mind = mind
        self._player = player
        self.tags = tags
        self._codec = codec
        self._recorder = Recorder(mind.spec)
        self.fault = player.fault
        """What the version did that gave the match to the rules; empty: nothing."""
        plays = player.role == "newest" or player.version != 0
        self._decides = plays and not self.fault
        """Whether the policy decides, at present in a cameo; else the rules do."""
        self._asked = not self.fault
        """Whether the policy is asked, to decide or to be measured."""
        self._drawn = self._decides and mind.choose == "drawn"
        self._needs_rules = mind.mode == "auto"
        first = player.policy or mind.policy
        self._memory = first.begin()
        # A memory made under other weights is wrong: a policy with memory swaps between matches.
        self._fixed = first if player.policy is not None or self._memory != () else None
        self._slow_ns = self._slow_limit_ns() if self._decides and self._needs_rules else _NEVER
        self._cameos = cameos
        self._turn = _NEVER if cameos is None else cameos.turn
        """The row at which the next cameo begins or the present one ends, at the earliest."""
        self._rng = rng
        self._parts = mind.spec.actions.parts
        self._uniforms = rng.random((256, len(self._parts)), dtype=np.float32)
        self._agreed = 0
        self.not_finite: Counter[str] = Counter()
        """Feature -> decisions at which it was not finite."""
        self.began = mind.folder.clock.monotonic()
        self.outcome: Outcome | None = None
        self.result = 0.0
        """In [0, 1], once the match is finished."""
        self.id = player.id
        """Of its episode; given when the match is over, or assigned."""
        self.kept = False
        if player.order:
            mind.undecided.add(self)

    @property
    def role(self) -> PlayerRole:
        """Who was given this match: `rules`, `champion` (the version that is proven), `canary` (the
        version that is tried), `practice` (the newest version, to learn), `holdout` (the rules,
        beside a champion) or `newest`."""
        return self._player.role

    @property
    def version(self) -> int:
        """The version that was given this match; 0: the rules, or an untrained policy."""
        if self._player.role == "newest":
            return (self._fixed or self._mind.policy).version
        return self._player.version

    @property
    def order(self) -> int:
        """The number of its assignment in the promotion log; 0: it was not assigned."""
        return self._player.order

    def decide(
        self,
        features: Sequence[float] | NDArray,
        *,
        fallback: Action | None = None,
        legal: Sequence[bool] | NDArray | None = None,
    ) -> Action:
        """Chooses the action to execute now, and records the decision. Does no I/O.

        Args:
            features: [F] raw numbers, in the order of the run's features.
            fallback: The action of the rules. It is executed where the rules play (`Match.role`),
                where a feature is not finite, and after a version failed. Modes `shadow` and `auto`
                require it at every decision.
            legal: [options] booleans: which options are allowed; None: all of them. For an action
                of several parts, the options of all parts one after the other.

        Returns:
            The action in the form of the run's actions: a name for `Discrete`, a tuple of numbers
            for `MultiDiscrete`, a tuple of booleans for `MultiBinary`.

        Raises:
            InputError: The match is finished, an argument does not fit the run, `fallback` is
                missing or illegal, or no option is legal. The match is then as it was before.
            UnderstudyError: The policy failed, and there is no fallback.

        Example:
            action = match.decide([50.0, 12.0], fallback="ECONOMY", legal=[True, army > 0])
        """
        started = perf_counter_ns()
        recorder, row = self._recorder, self._recorder.length
        if self.outcome is not None:
            raise InputError("decide: this match is finished; open another with mind.match()")
        broken = self._observe(features, row, strict=fallback is None)
        mask, allowed = (None, None) if legal is None else self._mask(legal)
        if row >= self._turn or broken:
            self._look_at_cameos(row, usable=not broken)
        decides = self._decides and not broken
        if not decides:
            recorder.actions[row] = self._rules(fallback, allowed)
        elif fallback is None and self._needs_rules:
            self._rules(None, allowed)  # raises: a version that fails needs them
        elif row == 0 and fallback is not None:
            self._rules(fallback, allowed)  # reports a wrong name at the first decision
        policy = self._fixed or self._mind.policy
        # Only a policy without fallback fails from here on: a refused decision must change neither
        # the policy's memory nor the mask of the decision that replaces it.
        if self._asked:
            place = row & 255
            try:
                choice = policy.act(
                    recorder.observations[row : row + 1],
                    self._memory,
                    legal=mask,
                    uniforms=self._uniforms[place : place + 1] if self._drawn and decides else None,
                )
                # Plain numbers: an operation on a scalar of NumPy takes several times as long.
                value, log_prob = choice.values.item(), choice.log_probs.item()
                action = choice.actions.tolist()[0]
                if not (isfinite(value + log_prob) and self._executable(action, allowed)):
                    raise _Garbage(f"action {action}, log-probability {log_prob}, value {value}")
            except Exception as error:  # noqa: BLE001  a version that fails costs no match
                self._fail(policy, error, fallback, allowed)
            else:
                self._memory = choice.memory
                recorder.values[row] = value
                if decides:
                    recorder.actions[row] = action
                    recorder.log_probs[row] = log_prob
                    recorder.sampled[row] = True
                else:
                    self._agreed += recorder.actions[row].tolist() == action
            if place == 255:
                self._uniforms = self._rng.random(self._uniforms.shape, dtype=np.float32)
        if mask is not None:
            recorder.allow(mask)
        recorder.versions[row] = policy.version
        executed = self._codec.label(recorder.actions[row])
        took_ns = recorder.took_ns[row] = perf_counter_ns() - started
        recorder.advance()
        if row == 0:
            self._hold()
        if took_ns > self._slow_ns:
            self._check_speed(policy)
        if broken:
            self._cut(policy, broken)
        return executed

    def reward(self, amount: float) -> None:
        """Adds to the reward of the last decision; may be called several times.

        Args:
            amount: A finite number.

        Raises:
            InputError: There is no decision yet, the match is finished, or `amount` is no finite
                number.

        Example:
            action = match.decide(features(game), fallback=rules(game))
            game.execute(action)
            match.reward(0.1 * game.workers_gained)
        """
        row = self._recorder.length - 1
        if row < 0 or self.outcome is not None:
            when = "before the first decision" if row < 0 else "after the match was finished"
            raise InputError(f"reward: {when}; a reward belongs to the decision before it")
        try:
            total = float(self._recorder.rewards[row]) + float(amount)
        except (TypeError, ValueError) as error:
            raise InputError(f"reward: expected a number, got {amount!r}") from error
        if not abs(total) < 1e30:
            raise InputError(f"reward: {amount!r} is not a finite number")
        self._recorder.rewards[row] = total

    def finish(self, outcome: str, *, score: float | None = None) -> bool:
        """Ends the match, adds the reward of its result, and keeps it as an episode.

        A match without a decision is neither kept nor counted. With `pace="learner"` this waits
        for a learner that is far behind, unless the match is aborted. In mode `play` nothing is
        kept.

        Args:
            outcome: `victory`, `defeat`, `tie` or `aborted`.
            score: How good the result is, on the scale that `Understudy.open(score=...)` declared;
                needed where one was, unless the match is aborted. It judges versions and is not
                learned from: rewards are.

        Returns:
            True: the episode survives a power cut. False: the disk refused it; it stays in memory,
            and later calls try again.

        Raises:
            InputError: The match is finished already, `outcome` is unknown, or `score` is missing,
                outside its scale or without one. The match is then as it was before.

        Example:
            match.finish("victory" if game.won else "defeat")
        """
        if self.outcome is not None:
            raise InputError(f"finish: this match is finished already ({self.outcome})")
        try:
            ended = Outcome(outcome)
        except ValueError as error:
            known = [str(one) for one in Outcome]
            raise InputError(
                f"finish: {outcome!r} is not an outcome, expected one of {known}."
                f"{nearest(str(outcome), known)}"
            ) from error
        self.result = result_of(ended, score, self._mind.score)
        self.outcome = ended
        saved = self._keep()
        if ended is not Outcome.ABORTED:
            self._wait()
        return saved

    def leave(self) -> None:
        """Keeps the match as aborted, or completes a `finish` that a signal interrupted."""
        if self.outcome is None:
            self.finish(Outcome.ABORTED)
        elif not self.kept:
            self._keep()

    @property
    def decisions(self) -> int:
        """Decisions so far."""
        return self._recorder.length

    @property
    def last(self) -> MatchDecision:
        """The last decision; InputError before the first."""
        recorder, row = self._recorder, self._recorder.length - 1
        if row < 0:
            raise InputError("last: nothing was decided yet")
        sampled = bool(recorder.sampled[row])
        return MatchDecision(
            action=self._codec.label(recorder.actions[row]),
            probability=math.exp(recorder.log_probs[row]) if sampled else None,
            value=float(recorder.values[row]),
            version=int(recorder.versions[row]),
            sampled=sampled,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.leave()

    def _keep(self) -> bool:
        if self._cameos is not None:
            self._cameos.stop(self._recorder.length)
        saved = self._mind._keep(self, self._recorder, self._agreed)
        self._close()
        return saved

    def _hold(self) -> None:
        """From its first decision on the match is not garbage-collected before it is kept."""
        _open.add(self)
        self._mind.undecided.discard(self)

    def _close(self) -> None:
        _open.discard(self)
        self._mind.undecided.discard(self)

    def withdraw(self) -> None:
        """Makes the match no evidence; it can still be played and learned from."""
        self._player = self._player._replace(order=0)

    @property
    def cameos(self) -> NDArray | None:
        """int16 [T], as `Episode.cameos`, once the match is over; None: there were none."""
        return None if self._cameos is None else self._cameos.marks(self._recorder.length)

    def _look_at_cameos(self, row: int, *, usable: bool) -> None:
        """Begins or ends a cameo; one version decides or is measured in the whole of it."""
        if self._cameos is None:
            return
        if self._cameos.window is None:
            policy = self._fixed or self._mind.policy
            usable = usable and self._mind.faults.may_decide(policy)
        window = self._cameos.look(row, usable=usable)
        self._turn = self._cameos.turn
        self._decides = self._drawn = window is not None and window.policy
        self._slow_ns = self._slow_limit_ns() if self._decides else _NEVER
        if self._memory == ():
            self._fixed = None if window is None else self._fixed or self._mind.policy

    def _slow_limit_ns(self) -> int:
        return int(self._mind.folder.config.promotion.slow_ms * 1e6)

    def _wait(self) -> None:
        self._mind._keep_pace()

    def _fail(
        self, policy: Policy, error: Exception, fallback: Action | None, allowed: bytes | None
    ) -> None:
        """Gives the present decision and the rest of the match to the rules."""
        if isinstance(error, _Garbage):
            words = f"it answered {error}"
        else:
            words = f"it raised {type(error).__name__}: {error}"
        if self._decides:
            if fallback is None:
                raise UnderstudyError(
                    f"decide: version {policy.version} failed ({words}), and there is no fallback"
                ) from error
            self._recorder.actions[self._recorder.length] = self._rules(fallback, allowed)
        self._hand_over(policy, words)

    def _hand_over(self, policy: Policy, words: str) -> None:
        """The rules decide from the present row on; the policy is not asked again."""
        if self._memory != ():
            self._recorder.cut()
        if self._cameos is not None:
            self._cameos.stop(self._recorder.length)
            self._turn = _NEVER
        elif self._decides:
            self.fault = words
        self._decides = self._asked = False
        self._slow_ns = _NEVER
        self._mind.faults.failed(policy.version, words)

    def _executable(self, action: Sequence[int], allowed: bytes | None) -> bool:
        """Whether an answer of a policy is one legal option for each part."""
        parts = self._parts
        if len(action) != len(parts):
            return False
        if len(action) == 1:  # the usual case, in a third of the time
            return 0 <= action[0] < parts[0] and (allowed is None or allowed[action[0]] == 1)
        starts = itertools.accumulate(parts, initial=0)
        return all(
            0 <= option < size and (allowed is None or allowed[start + option] == 1)
            for start, size, option in zip(starts, parts, action, strict=False)
        )

    def _check_speed(self, policy: Policy) -> None:
        """Hands over to the rules if the last decisions were all slow."""
        row = self._recorder.length
        last_ns = self._recorder.took_ns[max(row - SLOW_IN_A_ROW, 0) : row]
        if len(last_ns) == SLOW_IN_A_ROW and (last_ns > self._slow_ns).all():
            each = ", ".join(f"{one / 1e6:.0f}" for one in last_ns)
            limit = self._mind.folder.config.promotion.slow_ms
            self._hand_over(
                policy, f"its last decisions took {each} ms, above promotion.slow_ms = {limit:g}"
            )

    def _cut(self, policy: Policy, broken: Mapping[str, float]) -> None:
        """Empties the policy's memory after a decision with features that were not finite."""
        if self._memory != ():
            self._memory = policy.begin()
            self._recorder.cut()
        self.not_finite.update(broken.keys())
        self._mind.faults.not_finite(broken, self.decisions - 1)

    def _observe(
        self, features: Sequence[float] | NDArray, row: int, *, strict: bool
    ) -> dict[str, float]:
        """Records the features; returns those that are not finite, or raises if `strict`.

        Each of those is recorded with its value at the decision before; 0 at the first.
        """
        names = self._mind.spec.features
        seen = self._recorder.observations[row]
        try:
            if len(features) != len(names):
                raise InputError(f"features: expected {len(names)} numbers, got {len(features)}")
            seen[:] = features
        except (TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"features: expected plain numbers ({error})") from error
        # One sum checks them all, in a quarter of the time of np.isfinite; doubles do not overflow.
        if isfinite(sum(seen.tolist())):
            return {}
        wrong = ~np.isfinite(seen)
        broken = {names[i]: float(seen[i]) for i in np.flatnonzero(wrong)}
        if strict:
            name, value = next(iter(broken.items()))
            raise InputError(f"features: {name!r} is {value}, not finite, and there is no fallback")
        seen[wrong] = self._recorder.observations[row - 1, wrong] if row else 0.0
        return broken

    def _mask(self, legal: Sequence[bool] | NDArray) -> tuple[NDArray, bytes]:
        """bool [1, options], with something legal in every part; and the same as bytes, which
        are looked up several times faster than arrays."""
        mask = np.asarray(legal, np.bool_)
        options = self._mind.spec.actions.options
        if mask.shape != (options,):
            raise InputError(f"legal: expected {options} booleans, got shape {mask.shape}")
        allowed = mask.tobytes()
        start = 0
        for size in self._parts:
            if 1 not in allowed[start : start + size]:
                raise InputError("legal: no action is legal")
            start += size
        return mask[None], allowed

    def _rules(self, fallback: Action | None, allowed: bytes | None) -> NDArray | int:
        """The action of the rules as numbers; it must be legal."""
        if fallback is None:
            mode = self._mind.mode
            why = " while there is no champion" if mode == "play" else ""
            raise InputError(
                f"decide: mode {mode!r} needs fallback=, the action of your rules{why}"
            )
        number = self._codec.number(fallback, what="fallback")
        if allowed is not None and not self._executable(np.atleast_1d(number).tolist(), allowed):
            raise InputError(f"fallback: {fallback!r} is illegal under the mask given with it")
        return number


class _Garbage(Exception):
    """What a policy answered cannot be executed or recorded."""


class UndecidedMatches:
    """The assigned matches of one bot without a decision, held weakly.

    A match is garbage-collected at any moment, also while this thread holds a lock. So that is only
    noted here, and `take_dropped` hands over what is to be written.
    """

    def __init__(self) -> None:
        self._held: dict[int, weakref.ref[Match]] = {}
        self._dropped: deque[int] = deque()

    def add(self, match: Match) -> None:
        order = match.order
        self._held[order] = weakref.ref(match, lambda gone: self._dropped.append(order))

    def discard(self, match: Match) -> None:
        """It has a decision, or is over."""
        self._held.pop(match.order, None)

    def take_dropped(self) -> list[int]:
        """The numbers of assignments whose matches will never be played; each of them once."""
        orders = []
        with contextlib.suppress(IndexError):  # another thread may take some at the same time
            while True:
                orders.append(self._dropped.popleft())
                self._held.pop(orders[-1], None)
        return orders

    def take_all(self) -> list[int]:
        """The same, and those that could still be played: they are no evidence any more."""
        for order, held in tuple(self._held.items()):
            match = held()
            if match is not None and self._held.pop(order, None) is not None:
                match.withdraw()
                self._dropped.append(order)
        return self.take_dropped()


def open_matches(mind: Understudy) -> list[Match]:
    """Matches of this bot that have decisions and are not kept yet."""
    return [match for match in tuple(_open) if match._mind is mind and not match.kept]


@atexit.register
def _keep_open_matches() -> None:
    for mind in {match._mind for match in tuple(_open)}:
        left = open_matches(mind)
        if left:
            mind._problem(
                f"{len(left)} {'match was' if len(left) == 1 else 'matches were'} never finished "
                "and kept as aborted: call finish(), or use `with mind.match() as match`"
            )
    for match in tuple(_open):
        match.leave()
