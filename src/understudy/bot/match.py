"""One match of a bot: `decide`, `reward`, `finish`.

`decide` does no I/O. When `finish` returns, the episode is on disk. A match without `finish` and
without a `with` block is kept as aborted when the interpreter ends.
"""

from __future__ import annotations

import atexit
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter_ns
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from understudy.bot.actions import Action, Codec
from understudy.bot.recorder import Recorder
from understudy.core.arrays import NDArray
from understudy.core.errors import InputError, nearest
from understudy.experience.episode import Outcome
from understudy.policy.policy import Policy

if TYPE_CHECKING:
    from understudy.bot.understudy import Understudy


RESULTS = {Outcome.VICTORY: 1.0, Outcome.TIE: 0.5, Outcome.DEFEAT: 0.0, Outcome.ABORTED: 0.0}
"""What a match without a score counts."""


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
"""Matches with decisions that are not kept yet, so that none is garbage-collected before that."""


class Match:
    """One match. Made by `Understudy.match`; use it in a `with` block."""

    def __init__(
        self,
        mind: Understudy,
        *,
        tags: dict[str, str],
        policy: Callable[[], Policy],
        codec: Codec,
        rng: np.random.Generator,
        explores: bool,
        order: int = 0,
        key: str = "",
        role: str = "",
        version: int = 0,
    ) -> None:
        self._mind = mind
        self.role = role
        """Who plays: `rules`, `canary`, `champion` or `holdout`; empty: the newest version."""
        self.version = version
        """Who plays, where roles are assigned; 0: the rules."""
        self.tags = tags
        self._codec = codec
        self._recorder = Recorder(mind.spec)
        self._explores = explores
        self._current = policy
        self._memory = policy().begin()
        # A memory made under other weights is wrong: a policy with memory swaps between matches.
        self._fixed = policy() if self._memory != () else None
        self._rng = rng
        self._parts = mind.spec.actions.parts
        self._uniforms = rng.random((256, len(self._parts)), dtype=np.float32)
        self._agreed = 0
        self.not_finite: Counter[str] = Counter()
        """Feature -> decisions at which it was not finite."""
        self.began = mind.folder.clock.monotonic()
        self.outcome: Outcome | None = None
        self.order = order
        """The number of its assignment; 0: it was not assigned."""
        self.result = 0.0
        """In [0, 1], once the match is finished."""
        self.id = key
        """Of its episode; given when the match is over, or assigned."""
        self.kept = False

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
            fallback: The action of the rules. It is executed in mode `shadow`, where it is
                required, and wherever a feature is not finite.
            legal: [options] booleans: which options are allowed; None: all of them. For an action
                of several parts, the options of all parts one after the other.

        Returns:
            The action in the form of the run's actions: a name for `Discrete`, a tuple of numbers
            for `MultiDiscrete`, a tuple of booleans for `MultiBinary`.

        Raises:
            InputError: The match is finished, an argument does not fit the run, `fallback` is
                missing or illegal, or no option is legal. The match is then as it was before.

        Example:
            action = match.decide([50.0, 12.0], fallback="ECONOMY", legal=[True, army > 0])
        """
        started = perf_counter_ns()
        recorder = self._recorder
        row = recorder.length
        if self.outcome is not None:
            raise InputError("decide: this match is finished; open another with mind.match()")
        broken = self._observe(features, row, strict=fallback is None)
        mask = None if legal is None else self._mask(legal)
        sampled = self._explores and not broken
        if not sampled:
            recorder.actions[row] = self._rules(fallback, mask)
        elif row == 0 and fallback is not None:
            self._rules(fallback, mask)  # reports a wrong name at the first decision
        policy = self._fixed or self._current()
        # Nothing fails from here on: a refused decision must change neither the policy's memory nor
        # the mask of the decision that replaces it.
        choice = policy.act(
            recorder.observations[row : row + 1],
            self._memory,
            legal=mask,
            uniforms=self._uniforms[row & 255 : (row & 255) + 1] if sampled else None,
        )
        self._memory = choice.memory
        if sampled:
            recorder.actions[row] = choice.actions[0]
            recorder.log_probs[row] = choice.log_probs[0]
            recorder.sampled[row] = True
        else:
            self._agreed += bool((recorder.actions[row] == choice.actions[0]).all())
        if mask is not None:
            recorder.allow(mask)
        recorder.values[row] = choice.values[0]
        recorder.versions[row] = policy.version
        if row & 255 == 255:
            self._uniforms = self._rng.random(self._uniforms.shape, dtype=np.float32)
        action = self._codec.label(recorder.actions[row])
        recorder.took_ns[row] = perf_counter_ns() - started
        recorder.advance()
        if row == 0:
            _open.add(self)
        if broken:
            self._cut(policy, broken)
        return action

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

    def finish(self, outcome: str) -> bool:
        """Ends the match, adds the reward of its result, and keeps it as an episode.

        A match without a decision is neither kept nor counted. With `pace="learner"` this waits
        for a learner that is far behind, unless the match is aborted.

        Args:
            outcome: `victory`, `defeat`, `tie` or `aborted`.

        Returns:
            True: the episode survives a power cut. False: the disk refused it; it stays in memory,
            and later calls try again.

        Raises:
            InputError: The match is finished already, or `outcome` is unknown.

        Example:
            match.finish("victory" if game.won else "defeat")
        """
        if self.outcome is not None:
            raise InputError(f"finish: this match is finished already ({self.outcome})")
        try:
            self.outcome = Outcome(outcome)
        except ValueError as error:
            known = [str(one) for one in Outcome]
            raise InputError(
                f"finish: {outcome!r} is not an outcome, expected one of {known}."
                f"{nearest(str(outcome), known)}"
            ) from error
        self.result = RESULTS[self.outcome]
        saved = self._keep()
        if self.outcome is not Outcome.ABORTED:
            self._mind._keep_pace()
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
        saved = self._mind._keep(self, self._recorder, self._agreed)
        _open.discard(self)
        return saved

    def _cut(self, policy: Policy, broken: Mapping[str, float]) -> None:
        """Empties the policy's memory after a decision with features that were not finite."""
        if self._fixed is not None:
            self._memory = policy.begin()
            self._recorder.cut()
        self.not_finite.update(broken.keys())
        self._mind._warn_not_finite(broken, self.decisions - 1)

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
        if math.isfinite(sum(seen.tolist())):
            return {}
        wrong = ~np.isfinite(seen)
        broken = {names[i]: float(seen[i]) for i in np.flatnonzero(wrong)}
        if strict:
            name, value = next(iter(broken.items()))
            raise InputError(f"features: {name!r} is {value}, not finite, and there is no fallback")
        seen[wrong] = self._recorder.observations[row - 1, wrong] if row else 0.0
        return broken

    def _mask(self, legal: Sequence[bool] | NDArray) -> NDArray:
        """bool [1, options], with something legal in every part."""
        mask = np.asarray(legal, np.bool_)
        options = self._mind.spec.actions.options
        if mask.shape != (options,):
            raise InputError(f"legal: expected {options} booleans, got shape {mask.shape}")
        start = 0
        for size in self._parts:
            if not mask[start : start + size].any():
                raise InputError("legal: no action is legal")
            start += size
        return mask[None]

    def _rules(self, fallback: Action | None, mask: NDArray | None) -> NDArray | int:
        """The action of the rules as numbers; it must be legal."""
        if fallback is None:
            mode = self._mind.mode
            raise InputError(f"decide: mode {mode!r} needs fallback=, the action of your rules")
        number = self._codec.number(fallback, what="fallback")
        if mask is not None:
            start = 0
            for size, option in zip(self._parts, np.atleast_1d(number), strict=True):
                if not mask[0, start + option]:
                    raise InputError(
                        f"fallback: {fallback!r} is illegal under the mask given with it"
                    )
                start += size
        return number


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
        for match in left:
            match.leave()
