"""The trainer: the mutable side of learning, a state that batches improve and versions freeze."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from understudy.core.arrays import NDArray, from_npz, to_npz
from understudy.core.config import LearnerConfig
from understudy.core.errors import FileFormatError, NotFinite
from understudy.experience.episode import Episode, returns_of
from understudy.learner import statistics
from understudy.learner.batch import Batch, assemble, valued_once
from understudy.learner.descent import Frozen, Report, State, optimiser
from understudy.learner.hardware import as_numpy, float32_products
from understudy.learner.statistics import Statistics
from understudy.learner.update import update
from understudy.policy import weights as weight_files
from understudy.policy.network import raw_features
from understudy.policy.spec import PolicySpec
from understudy.policy.weights import Weights, renormalised
from understudy.registry.versions import LEARNER, WEIGHTS

_RATE_STEP = 1.5


class Trainer:
    """Learns from episodes; `snapshot` and `restore` carry everything that makes it go on alike."""

    def __init__(self, spec: PolicySpec, config: LearnerConfig) -> None:
        self.spec = spec
        self._config = config
        # Fixed, so that every batch of one length has one shape; a multiple of the minibatches.
        step = config.minibatches
        self._columns = -(-(config.batch_matches + config.replay_matches) // step) * step
        self._start_over()

    def _start_over(self) -> None:
        weights = weight_files.fresh(self.spec, np.random.default_rng(self._config.seed))
        params = jax.tree.map(jnp.asarray, weights.params)
        self._state = State(
            params, optimiser(self._config).init(params), jax.random.PRNGKey(self._config.seed)
        )
        self._weights = weights
        self._statistics = statistics.empty(len(self.spec.features))
        self._inherited = False
        self.learning_rate = self._config.learning_rate
        self.entropy_weight = self._config.entropy_weight
        self.entropy_left = 1.0
        """The share of the entropy bonus that a schedule has left; a session goes on from it."""

    def train(
        self, new: Sequence[Episode], replayed: Sequence[Episode], *, version: int
    ) -> dict[str, float]:
        """Learn from a batch of episodes; `NotFinite` leaves the trainer as it was before."""
        batch = assemble(
            [*new, *replayed],
            self.spec,
            columns=self._columns,
            version=version,
            max_lag=self._config.max_version_lag,
        )
        if self._config.priority != "uniform":
            batch = valued_once(batch, new=len(new))
        metrics = _metrics(self._update(batch, new, whole=True))
        self.adapt(metrics["kl"])
        return metrics | {"learning_rate": self.learning_rate, "steps": float(batch.valid.sum())}

    def train_items(
        self,
        batch: Batch,
        *,
        new: Sequence[Episode],
        learning_rate: float,
        entropy_weight: float,
        keep: bool = True,
    ) -> tuple[dict[str, float], NDArray]:
        """Learn from a batch of items, at a rate that others schedule; `new` is what came in since.

        Also says how much each column surprised [B], in units of reward. Without `keep` nothing
        comes of it: it is only seen whether the batch can be learned from.
        """
        kept = (self._state, self._weights, self._statistics)
        self.learning_rate, self.entropy_weight = learning_rate, entropy_weight
        report = self._update(batch, new, whole=False)
        if not keep:
            self._state, self._weights, self._statistics = kept
        steps = float(batch.valid.sum())
        metrics = _metrics(report) | {"learning_rate": learning_rate, "steps": steps}
        return metrics, np.asarray(report.surprise)

    def _update(self, batch: Batch, new: Sequence[Episode], *, whole: bool) -> Report:
        kept = (self._state, self._weights, self._statistics)
        self._absorb(new, whole=whole)
        config = as_numpy(self._config)
        try:
            with float32_products():
                return self._take(
                    lambda state, frozen: update(self.spec, config, state, frozen, batch)
                )
        except NotFinite:
            self._state, self._weights, self._statistics = kept
            raise

    def learn(self, step: Callable[[State, Frozen], tuple[State, Report]]) -> dict[str, float]:
        """Take the state that `step` makes of the present one, if every number in it is finite."""
        return _metrics(self._take(step))

    def _take(self, step: Callable[[State, Frozen], tuple[State, Report]]) -> Report:
        """The same, with everything that the step reports, as NumPy arrays."""
        frozen = Frozen(
            self._weights.obs_mean,
            self._weights.obs_scale,
            self._weights.value_scale,
            np.float32(self.learning_rate),
            np.float32(self.entropy_weight),
        )
        state, made = step(self._state, frozen)
        report: Report = jax.device_get(made)  # in one go: each fetch alone waits for a GPU
        metrics = _metrics(report)
        if not (np.isfinite(list(metrics.values())).all() and report.finite):
            raise NotFinite(f"training gave numbers that are not finite: {metrics}")
        self._state = state
        return report

    def weights(self) -> Weights:
        """What a bot would play with now, as NumPy arrays."""
        w = self._weights
        params = {name: np.asarray(value) for name, value in self._state.params.items()}
        return Weights(params, w.obs_mean, w.obs_scale, w.value_scale)

    def snapshot(self) -> dict[str, bytes]:
        """The files of a version."""
        return {WEIGHTS: weight_files.encode(self.weights()), LEARNER: to_npz(self._rest())}

    def restore(self, contents: Mapping[str, bytes] | None, *, what: str) -> None:
        """Go on from the files of a version, or from nothing."""
        if contents is None:
            self._start_over()
            return
        weights = weight_files.decode(self.spec, contents[WEIGHTS], what=f"{what}: {WEIGHTS}")
        params = jax.tree.map(jnp.asarray, weights.params)
        if LEARNER not in contents:  # weights alone, as an old model file gives them
            self._start_over()
            self._inherited = True
            self._weights = weights
            self._state = self._state._replace(params=params)
            return
        rest = from_npz(contents[LEARNER], what=f"{what}: {LEARNER}")
        self._weights = weights
        leaves, structure = jax.tree.flatten(optimiser(self._config).init(params))
        try:
            moments = [rest[f"optimiser.{index}"] for index in range(len(leaves))]
            if any(new.shape != old.shape for new, old in zip(moments, leaves, strict=True)):
                raise FileFormatError(f"{what}: {LEARNER} does not fit the network")
            self._state = State(
                params,
                jax.tree.unflatten(structure, [jnp.asarray(leaf) for leaf in moments]),
                jnp.asarray(rest["key"]),
            )
            count, squares, fitted = (float(number) for number in rest["statistics.sums"])
            self._statistics = Statistics(
                count, rest["statistics.mean"], rest["statistics.spread"], squares, fitted
            )
            self.learning_rate = float(rest["learning_rate"])
            self.entropy_left = float(rest.get("entropy_left", 1.0))  # older versions do not say
        except KeyError as error:
            raise FileFormatError(f"{what}: {LEARNER} has no {error}") from error

    def _rest(self) -> dict[str, NDArray]:
        leaves = jax.tree.leaves(self._state.optimiser)
        s = self._statistics
        return {
            **{f"optimiser.{index}": np.asarray(leaf) for index, leaf in enumerate(leaves)},
            "key": np.asarray(self._state.key),
            "statistics.sums": np.array([s.count, s.return_squares, s.fitted_at]),
            "statistics.mean": s.obs_mean,
            "statistics.spread": s.obs_spread,
            "learning_rate": np.array(self.learning_rate),
            "entropy_left": np.array(self.entropy_left),
        }

    def _absorb(self, episodes: Sequence[Episode], *, whole: bool) -> None:
        """Count what is new, and fit the normaliser when it is time to.

        Unless they are `whole` matches, most of a return may lie after the end of an episode: a
        segment of an endless match goes on with what the policy expected last.
        """
        for episode in episodes:
            later = 0.0 if whole or not episode.truncated else float(episode.values[-1])
            self._statistics = statistics.absorb(
                self._statistics,
                episode.observations,
                returns_of(episode.rewards, self._config.gamma, later=later),
            )
        if episodes:
            self._fit_if_due()

    def absorb(self, observations: NDArray, *, return_square: float) -> None:
        """Count observations [N, F] whose returns have this mean square."""
        root = np.full(len(observations), np.sqrt(return_square))
        self._statistics = statistics.absorb(self._statistics, observations, root)
        self._fit_if_due()

    def absorb_returns(self, count: int, *, return_square: float) -> None:
        """Count so many returns of this mean square; observations stay as they are."""
        self._statistics = statistics.absorb_returns(self._statistics, count, return_square)
        self._fit_if_due()

    def _fit_if_due(self) -> None:
        seen = self._statistics
        if not seen.due:
            return
        scale = seen.return_scale()
        # The value head speaks in units of the scale: rescale it, so that what it says stays true.
        factor = float(self._weights.value_scale) / float(scale)
        params = {
            name: value * factor if name.startswith("value.") else value
            for name, value in self._state.params.items()
        }
        mean, obs_scale = seen.obs_mean.astype(np.float32), seen.obs_scale()
        raw = list(raw_features(self.spec.network))
        mean[raw], obs_scale[raw] = 0.0, 1.0
        if self._inherited or seen.fitted_at > 0.0:
            # What was learned under the old normaliser must not change by the new one. A policy
            # that has learned nothing yet is left to see its features in the new light.
            before = (np.asarray(self._weights.obs_mean), np.asarray(self._weights.obs_scale))
            layers = self.spec.network.input_layers
            params = renormalised(params, layers, before=before, after=(mean, obs_scale))
        self._state = self._state._replace(params=jax.tree.map(jnp.asarray, params))
        self._weights = Weights(self._weights.params, mean, obs_scale, scale)
        self._statistics = Statistics(
            seen.count, seen.obs_mean, seen.obs_spread, seen.return_squares, seen.count
        )

    def adapt(self, kl: float) -> None:
        """Slower when a batch moved the policy too far, faster when it hardly moved."""
        c = self._config
        if kl > 2.0 * c.kl_target:
            self.learning_rate = max(self.learning_rate / _RATE_STEP, c.learning_rate_min)
        elif kl < 0.5 * c.kl_target:
            self.learning_rate = min(self.learning_rate * _RATE_STEP, c.learning_rate_max)

    def slow_down(self) -> None:
        """Halve the learning rate, after something went wrong."""
        self.learning_rate = max(self.learning_rate / 2.0, self._config.learning_rate_min)


def _metrics(report: Report) -> dict[str, float]:
    parts: dict[str, Any] = {
        "loss": report.losses.total,
        "policy_loss": report.losses.policy,
        "value_loss": report.losses.value,
        "entropy": report.losses.entropy,
        "clip_share": report.losses.clip_share,
        "kl": report.kl,
        "explained_variance": report.explained_variance,
        "behaviour_kl": report.behaviour_kl,
        "behaviour_kl_max": report.behaviour_kl_max,
        "gradient_norm": report.gradient_norm,
        "gradient_steps": report.gradient_steps,
        "opponent_loss": report.losses.opponent,
        "recognition_loss": report.losses.recognition,
    }
    return {name: float(value) for name, value in parts.items()}
