"""One match as a bot lives it: `decide`, `reward`, `finish`.

Nothing durable happens inside `decide`. When `finish` returns, the episode is on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter_ns
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.errors import InputError, nearest
from understudy.experience.episode import Outcome
from understudy.live.actions import Action, Codec
from understudy.live.recorder import Recorder
from understudy.policy.policy import Policy

if TYPE_CHECKING:
    from understudy.live.bot import Understudy


class Decision(NamedTuple):
    """What was decided last, for bots that want to know more than the action."""

    action: Action
    probability: float
    """of that action under the policy, whoever chose it"""
    value: float
    """what the policy expects from here on, in units of reward"""
    version: int
    sampled: bool
    """False: the rules decided"""


class Match:
    """Made by `Understudy.match`; use it in a `with` block."""

    def __init__(
        self,
        mind: Understudy,
        *,
        tags: dict[str, str],
        policy: Callable[[], Policy],
        codec: Codec,
        rng: np.random.Generator,
        explores: bool,
    ) -> None:
        self._mind = mind
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
        self._zeros = np.zeros(len(mind.spec.features), np.float32)
        self._agreed = 0
        self.outcome: Outcome | None = None

    def decide(
        self,
        features: Sequence[float] | NDArray,
        *,
        fallback: Action | None = None,
        legal: Sequence[bool] | NDArray | None = None,
    ) -> Action:
        """The action to execute now.

        `features` are the run's features in order, raw. `fallback` is what the rules would do: in
        mode `shadow` it is what is executed. `legal` says which options are allowed.
        """
        started = perf_counter_ns()
        recorder = self._recorder
        row = recorder.length
        if self.outcome is not None:
            raise InputError("decide: this match is finished; open another with mind.match()")
        self._observe(features, row)
        mask = None if legal is None else self._allow(legal)
        policy = self._fixed or self._current()
        if fallback is None and not self._explores:
            raise InputError("decide: mode 'shadow' needs fallback=, the action of your rules")
        choice = policy.act(
            recorder.observations[row : row + 1],
            self._memory,
            legal=mask,
            uniforms=self._uniforms[row & 255 : (row & 255) + 1] if self._explores else None,
        )
        self._memory = choice.memory
        if self._explores:
            action = choice.actions[0]
            recorder.log_probs[row] = choice.log_probs[0]
            recorder.sampled[row] = True
            recorder.actions[row] = action
        else:
            number = self._codec.number(fallback, what="fallback")
            recorder.actions[row] = number
            action = recorder.actions[row]
            self._check_legal(action, mask)
            self._agreed += bool((action == choice.actions[0]).all())
        recorder.values[row] = choice.values[0]
        recorder.versions[row] = policy.version
        if row & 255 == 255:
            self._uniforms = self._rng.random(self._uniforms.shape, dtype=np.float32)
        recorder.took_ns[row] = perf_counter_ns() - started
        recorder.advance()
        return self._codec.label(action)

    def reward(self, amount: float) -> None:
        """Add to the reward of the decision before this."""
        row = self._recorder.length - 1
        if row < 0 or self.outcome is not None:
            when = "before the first decision" if row < 0 else "after the match was finished"
            raise InputError(f"reward: {when}; a reward belongs to the decision before it")
        total = float(self._recorder.rewards[row]) + float(amount)
        if not abs(total) < 1e30:
            raise InputError(f"reward: {amount!r} is not a finite number")
        self._recorder.rewards[row] = total

    def finish(self, outcome: str) -> bool:
        """The match is over: victory, defeat, tie or aborted. True: the episode is on disk."""
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
        return self._mind._keep(self, self._recorder, self._agreed)

    @property
    def decisions(self) -> int:
        """How many decisions were made so far."""
        return self._recorder.length

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.outcome is None:
            self.finish(Outcome.ABORTED)

    def _observe(self, features: Sequence[float] | NDArray, row: int) -> None:
        spec = self._mind.spec
        if len(features) != len(spec.features):
            raise InputError(
                f"features: expected {len(spec.features)} numbers, got {len(features)}"
            )
        try:
            self._recorder.observations[row] = features
        except (TypeError, ValueError) as error:
            raise InputError(f"features: expected plain numbers ({error})") from error
        # Not-a-number and infinity times zero are not zero: one dot product checks them all.
        seen = self._recorder.observations[row]
        if np.dot(seen, self._zeros) != 0.0:
            index = int(np.flatnonzero(~np.isfinite(seen))[0])
            raise InputError(f"features: {spec.features[index]!r} is {seen[index]}, not finite")

    def _allow(self, legal: Sequence[bool] | NDArray) -> NDArray:
        mask = np.asarray(legal, np.bool_)
        options = self._mind.spec.actions.options
        if mask.shape != (options,):
            raise InputError(f"legal: expected {options} booleans, got shape {mask.shape}")
        start = 0
        for size in self._parts:
            if not mask[start : start + size].any():
                raise InputError("legal: no action is legal")
            start += size
        self._recorder.allow(mask)
        return mask[None]

    def _check_legal(self, action: NDArray, mask: NDArray | None) -> None:
        if mask is None:
            return
        start = 0
        for size, option in zip(self._parts, action, strict=True):
            if not mask[0, start + option]:
                label = self._codec.label(action)
                raise InputError(f"fallback: {label!r} is illegal under the mask given with it")
            start += size
