"""The trainer: the mutable side of learning, a state that batches improve and versions freeze."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from msgspec import structs

from understudy.core.arrays import NDArray, from_npz, to_npz
from understudy.core.config import LearnerConfig
from understudy.core.errors import FileFormatError, NotFinite
from understudy.core.feature_bounds import bounds_of
from understudy.experience.episode import Episode, returns_of
from understudy.learner import refit, settling, slow_games, statistics
from understudy.learner.batch import Batch, assemble, of_observations, without_replayed_values
from understudy.learner.hardware import as_numpy, float32_products
from understudy.learner.maths.descent import (
    ChampionWeights,
    FixedInputs,
    LearnerState,
    UpdateReport,
    optimiser,
)
from understudy.learner.maths.returns import Moments
from understudy.learner.maths.update import moved, update
from understudy.learner.refit import Normaliser
from understudy.learner.settling import Settling
from understudy.learner.statistics import Statistics, ValueFit
from understudy.policy import weights as weight_files
from understudy.policy.layers import Params
from understudy.policy.network import raw_features
from understudy.policy.spec import PolicySpec
from understudy.policy.weights import CLIP, Weights
from understudy.registry.versions import LEARNER, WEIGHTS

_RATE_STEP = 1.5
_STRAYED = 0.01
"""The normaliser is fitted anew when this share of a feature's new numbers would be clipped."""
_FORGETTING = 4.0
"""Once features have strayed, the statistics stand for this many times the new decisions."""
_FEW_BEHAVIOUR_KL = 0.03
"""`learner.max_behaviour_kl` with few matches a batch: one result for many decisions says next to
nothing of what another policy would have done (ADR 0037)."""
_MOST_RATIO = 2.0
"""How far the policy may outrun what played, where no evidence holds it: a decision that is so many
times as likely, or unlikely, as it was when it was played is pushed no further (ADR 0053)."""
_MEMORY_MINIBATCH = 4
"""Matches in a minibatch, for a network with memory. Its minibatches are whole matches, whose
decisions pull alike, so a step on two of them follows their noise (ADR 0053)."""
_SAMPLE = 256
"""Observations by which the effect of a fit is measured, where there is no batch."""


class Trainer:
    """Improves a policy by gradient steps; versions are made of it, and it resumes from them.

    The ring trains it on whole episodes (`train`), the learner of a server on items
    (`train_items`). The arena and environments compute their own update: they read `state` and
    `fixed_inputs`, and hand the result to `accept`. A trainer that was restored from the
    `snapshot` of another one learns the same bits from the same batches.

    Args:
        spec: Features (F of them), actions and network of the policy.
        config: `[learner]` settings; `config.seed` seeds the first weights and the shuffling.

    Example:
        trainer = Trainer(spec, config.learner)
        metrics = trainer.train(new_episodes, replayed_episodes, version=7)
        policy = Policy(spec, trainer.weights(), version=8)
        files = trainer.snapshot()                      # name to bytes, for a version
        Trainer(spec, config.learner).restore(files, what="version 8")
    """

    def __init__(
        self,
        spec: PolicySpec,
        config: LearnerConfig,
        *,
        bounds: Mapping[str, tuple[float, float]] | None = None,
    ) -> None:
        """`bounds`: the lowest and the highest value of features, by name, where they are known."""
        self.spec = spec
        self._bounds = bounds_of(spec.features, bounds or {})
        self._config = config
        # Fixed, so that every batch of one length has one shape; a multiple of the minibatches.
        step = config.minibatches
        self._columns = -(-(config.batch_matches + config.replay_matches) // step) * step
        self._match_config = config
        """Of batches of whole matches."""
        if spec.remembers:
            most = max(self._columns // _MEMORY_MINIBATCH, 1)
            self._match_config = structs.replace(config, minibatches=min(step, most))
        self._start_over()

    def _start_over(self) -> None:
        weights = weight_files.fresh(self.spec, np.random.default_rng(self._config.seed))
        params = jax.tree.map(jnp.asarray, weights.params)
        self._state = LearnerState(
            params, optimiser(self._config).init(params), jax.random.PRNGKey(self._config.seed)
        )
        self._weights = weights
        self._statistics = statistics.empty(len(self.spec.features))
        self._settling = Settling()
        self._inherited = False
        self._own = self._imitated = 0.0
        """Experience so far, in matches: of policies, and of the rules."""
        self._mixed = False
        """Whether the policy learns from its own decisions beside those of the rules."""
        self.learning_rate = self._config.learning_rate
        self.entropy_weight = self._config.entropy_weight
        self.entropy_left = 1.0
        """The share of the entropy bonus that a schedule has left; a session goes on from it."""

    def train(
        self,
        new: Sequence[Episode],
        replayed: Sequence[Episode],
        *,
        version: int,
        by_evidence: bool = False,
        champion: Weights | None = None,
    ) -> dict[str, float]:
        """Learn from a batch of whole episodes.

        The batch is padded to [T, B]: T a power of two, B fixed, so that few shapes are compiled.
        Steps get smaller once they no longer agree with each other (`settling`).

        Args:
            new: Episodes that are learned from for the first time; statistics count them.
            replayed: Episodes from the replay.
            version: The newest version; decisions of much older ones train the value alone.
            by_evidence: Whether evidence moves the champion. Then older versions play for long, and
                matches train the value alone by how far the policy is from what played them.
            champion: The version that the policy stays near to, where one plays.

        Returns:
            Metrics by name: losses, entropy, KL and others, see docs/file-formats.md.

        Raises:
            NotFinite: A loss or a parameter is not finite. The trainer is as it was before.
        """
        kept = self._own, self._imitated, self._mixed, self._settling, self.learning_rate
        settings = slow_games.batch_settings(self._match_config, new, by_evidence=by_evidence)
        self._count_players(new, by_evidence=by_evidence)
        batch = assemble(
            [*new, *replayed],
            self.spec,
            columns=self._columns,
            version=version,
            max_lag=None if by_evidence else self._config.max_version_lag,
            mixed=by_evidence or self._mixed,
        )
        if self._config.priority != "uniform":
            batch = without_replayed_values(batch, new=len(new))
        fixed_share = by_evidence and self._mixed and _few(batch)
        share = settling.BESIDE_RULES if fixed_share else None
        most = settings.learning_rate_max * (share or 1.0)
        wanted, self.learning_rate = self.learning_rate, min(self.learning_rate, most)
        self.entropy_weight = settings.entropy_weight * (share or self._settling.share)
        try:
            metrics, report = self._update(
                batch, new, settings, whole=True, by_evidence=by_evidence, champion=champion
            )
        except NotFinite:
            self._own, self._imitated, self._mixed, self._settling, self.learning_rate = kept
            raise
        self.adapt(
            metrics["kl"],
            share=share,
            settings=settings,
            outrun=not by_evidence and report.advantages.size < 0.5 * batch.on_policy.sum(),
        )
        metrics |= self._step_metrics(batch, share=share)
        if self.learning_rate == most:  # a small batch bounds its own rate alone
            self.learning_rate = max(wanted, most)
        return metrics

    def _count_players(self, new: Sequence[Episode], *, by_evidence: bool) -> None:
        """Count own and imitated experience; the first of its own after a shadow is a new start.

        A clone has settled where its steps no longer agree. What it learns from now on is another
        thing: steps, learning rate and the bonus for entropy are as at the start.

        Less than a match of the rules is no shadow: a fault gives a decision to the fallback, and
        where no evidence is collected, such decisions add up beside a policy that always played.
        """
        shadowed = self._own == 0.0 and self._imitated >= 1.0
        own = sum(float(episode.sampled.mean()) for episode in new)
        self._own += own
        self._imitated += len(new) - own
        beside = by_evidence and self._imitated >= 1.0
        if not self._mixed and self._own > 0.0 and (shadowed or beside):
            self._mixed = True
            self._settling = Settling()
            self.learning_rate = self._config.learning_rate

    def train_items(
        self,
        batch: Batch,
        *,
        new: Sequence[Episode],
        learning_rate: float,
        entropy_weight: float,
        keep: bool = True,
        by_evidence: bool = False,
        champion: Weights | None = None,
    ) -> tuple[dict[str, float], NDArray]:
        """Learn from a batch of items.

        Args:
            batch: Items side by side, [T, B, ...].
            new: Episodes that came in since the last batch; statistics count them.
            learning_rate: Of this batch, before settling.
            entropy_weight: Of this batch, before settling.
            keep: False only tries whether the batch can be learned from.
            by_evidence: As for `train`. How much of the rules is imitated is in the batch.
            champion: As for `train`.

        Returns:
            Metrics by name, and the surprise of each column, float32 [B], in units of reward.

        Raises:
            NotFinite: A loss or a parameter is not finite. The trainer is as it was before.
        """
        kept, share = self._saved_state(), self._settling.share
        self.learning_rate, self.entropy_weight = learning_rate * share, entropy_weight * share
        metrics, report = self._update(
            batch, new, self._config, whole=False, by_evidence=by_evidence, champion=champion
        )
        metrics |= self._step_metrics(batch)
        if not keep:
            self._go_back(kept)
        return metrics, np.asarray(report.surprise)

    def _step_metrics(self, batch: Batch, *, share: float | None = None) -> dict[str, float]:
        return {
            "learning_rate": self.learning_rate,
            "step_share": share or self._settling.share,
            "steps": float(batch.valid.sum()),
        }

    def _saved_state(self) -> tuple[LearnerState, Weights, Statistics, Settling]:
        return self._state, self._weights, self._statistics, self._settling

    def _go_back(self, kept: tuple[LearnerState, Weights, Statistics, Settling]) -> None:
        self._state, self._weights, self._statistics, self._settling = kept

    def _update(
        self,
        batch: Batch,
        new: Sequence[Episode],
        settings: LearnerConfig,
        *,
        whole: bool,
        by_evidence: bool = False,
        champion: Weights | None = None,
    ) -> tuple[dict[str, float], UpdateReport]:
        kept = self._saved_state()
        self._absorb(new, batch, whole=whole)
        slow, mixed = whole and settings is not self._match_config, whole and self._mixed
        few = slow or (whole and _few(batch))
        settles = not (by_evidence and few and mixed)  # there the share is fixed
        if settles:
            self._settling = settling.begun(self._settling, self._state.params)
        config = as_numpy(settings)
        fit = self._statistics.value_fit if few else ValueFit()
        fixed = _with_value_fit(self.fixed_inputs, fit)
        if slow:  # a trace that is cut ends in a value, which may know nothing of the result
            fixed = fixed._replace(corrected=fixed.explained)
        if mixed or by_evidence:  # there from the start: what comes later is compiled anew
            faded = self._own / self._config.imitation_fade_matches if mixed else 0.0
            # A mere clone keeps `imitation_entropy` alone. In a batch of items the rules' decisions
            # count as sampled once imitation fades, and not before.
            learns = mixed if whole else bool(batch.sampled.any())
            fixed = fixed._replace(
                imitation=np.float32(max(1.0 - faded, 0.0)),
                kept_entropy=np.float32(self._config.kept_entropy if learns else 0.0),
            )
        if by_evidence:
            limit = self._config.max_behaviour_kl
            limit = min(limit, _FEW_BEHAVIOUR_KL) if few else limit
            fixed = fixed._replace(max_behaviour_kl=np.float32(limit))
        elif whole:
            fixed = fixed._replace(most_ratio=np.float32(_MOST_RATIO))
        if champion is not None:
            near = ChampionWeights(champion.params, champion.obs_mean, champion.obs_scale)
            fixed = fixed._replace(champion=near)
        with float32_products():
            state, made = update(self.spec, config, self._state, fixed, batch)
        report: UpdateReport = jax.device_get(made)
        try:
            metrics = self.accept(state, report)
        except NotFinite:
            self._go_back(kept)
            raise
        now = Moments(*(float(number) for number in report.advantages))
        self._statistics = statistics.absorb_advantages(self._statistics, now)
        if settles:
            self._settling = settling.settled(
                self._settling,
                self._state.params,
                # Of rules' decisions, which no longer move the policy, a window is soon full.
                decisions=float((batch.on_policy if mixed else batch.valid).sum()),
                pace=_pace(self.spec, whole=whole, few=few, slow=slow),
                returns=[float(episode.rewards.sum()) for episode in new],
            )
        return metrics, report

    @property
    def state(self) -> LearnerState:
        """What the next update starts from and changes."""
        return self._state

    @property
    def fixed_inputs(self) -> FixedInputs:
        """What the next update reads and leaves as it is."""
        w = self._weights
        return FixedInputs(
            w.obs_mean,
            w.obs_scale,
            w.value_scale,
            np.float32(self.learning_rate),
            np.float32(self.entropy_weight),
            Moments(*(np.float32(number) for number in self._statistics.advantages)),
        )

    def accept(self, state: LearnerState, report: UpdateReport) -> dict[str, float]:
        """Take `state`, which an update made of `self.state`, and return the metrics of its report.

        Raises `NotFinite`, and stays as it is, if a metric or a parameter is not finite.
        """
        fetched: UpdateReport = jax.device_get(report)  # at once: each fetch alone waits for a GPU
        metrics = _metrics(fetched)
        if not (np.isfinite(list(metrics.values())).all() and fetched.finite):
            raise NotFinite(f"training gave numbers that are not finite: {metrics}")
        self._state = state
        return metrics

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
            self._state = LearnerState(
                params,
                jax.tree.unflatten(structure, [jnp.asarray(leaf) for leaf in moments]),
                jnp.asarray(rest["key"]),
            )
            kept = statistics.from_arrays(rest)
            self._statistics = statistics.within_bounds(kept, self._bounds)
            self._settling = settling.from_arrays(rest)
            self.learning_rate = float(rest["learning_rate"])
            self.entropy_left = float(rest.get("entropy_left", 1.0))  # older versions do not say
            own, imitated, mixed = (*rest.get("players", ()), 0.0, 0.0, 0.0)[:3]  # nor here
            self._own, self._imitated, self._mixed = float(own), float(imitated), bool(mixed)
        except KeyError as error:
            raise FileFormatError(f"{what}: {LEARNER} has no {error}") from error

    def _rest(self) -> dict[str, NDArray]:
        leaves = jax.tree.leaves(self._state.optimiser)
        return {
            **{f"optimiser.{index}": np.asarray(leaf) for index, leaf in enumerate(leaves)},
            "key": np.asarray(self._state.key),
            **statistics.to_arrays(self._statistics),
            **settling.to_arrays(self._settling),
            "learning_rate": np.array(self.learning_rate),
            "entropy_left": np.array(self.entropy_left),
            "players": np.array([self._own, self._imitated, self._mixed]),
        }

    def _absorb(self, episodes: Sequence[Episode], batch: Batch, *, whole: bool) -> None:
        """Count what is new, and fit the normaliser when it is time to.

        Unless they are `whole` matches, most of a return may lie after the end of an episode: a
        segment of an endless match goes on with what the policy expected last.
        """
        if not episodes:
            return
        observations = np.concatenate([episode.observations for episode in episodes])
        returns = [
            returns_of(
                episode.rewards.astype(np.float64),
                self._config.gamma,
                later=0.0 if whole or not episode.truncated else float(episode.values[-1]),
            )
            for episode in episodes
        ]
        if whole:
            self._compare(episodes, returns)
        self._count(observations, np.concatenate(returns), batch, matches=len(episodes))

    def _compare(self, episodes: Sequence[Episode], returns: Sequence[NDArray]) -> None:
        """Compare values with the returns that followed, in matches that have an end."""
        pairs = [
            (episode.values[episode.sampled], after[episode.sampled])
            for episode, after in zip(episodes, returns, strict=True)
            if episode.sampled.any() and not episode.truncated
        ]
        fit = statistics.absorb_values(
            self._statistics.value_fit,
            [values for values, _ in pairs],
            [later for _, later in pairs],
        )
        self._statistics = replace(self._statistics, value_fit=fit)

    def absorb(self, observations: NDArray, *, return_square: float) -> None:
        """Count observations [N, F] whose returns have this mean square."""
        root = np.full(len(observations), np.sqrt(return_square))
        few = np.linspace(0, len(observations) - 1, _SAMPLE).astype(int)
        batch = of_observations(observations[few], self.spec)
        self._count(observations, root, batch, matches=statistics.ENOUGH_MATCHES)

    def absorb_returns(self, count: int, *, return_square: float) -> None:
        """Count so many returns of this mean square; observations stay as they are."""
        self._statistics = statistics.absorb_returns(self._statistics, count, return_square)
        if self._statistics.due:
            self._scale_returns()
            self._statistics = replace(self._statistics, fitted_at=self._statistics.seen)

    def _count(
        self, observations: NDArray, returns: NDArray, batch: Batch, *, matches: float
    ) -> None:
        w, seen = self._weights, self._statistics
        meant = self._bounds.within(observations)
        clipped = np.abs((meant - w.obs_mean) * w.obs_scale) > CLIP
        clipped[:, list(raw_features(self.spec.network))] = False
        # No more than the statistics take for odd would be clipped after another fit as well.
        few = max(_STRAYED * len(observations), statistics.trimmed(len(observations)))
        strayed = seen.fitted_at > 0.0 and bool((clipped.sum(0) > few).any())
        horizon = _FORGETTING * len(observations) if strayed else statistics.HORIZON
        self._statistics = statistics.absorb(
            seen,
            observations,
            returns,
            matches=matches,
            horizon=horizon,
            declared=self._bounds,
        )
        if strayed or self._statistics.due:
            self._scale_returns()
            self._fit(observations, batch)

    def _scale_returns(self) -> None:
        """The value head speaks in units of the return scale: it is rescaled with it, so that what
        it says stays true."""
        scale = self._statistics.return_scale()
        factor = float(self._weights.value_scale) / float(scale)
        params = {
            name: value * factor if name.startswith("value.") else value
            for name, value in self._state.params.items()
        }
        self._state = self._state._replace(params=jax.tree.map(jnp.asarray, params))
        self._weights = replace(self._weights, value_scale=scale)

    def _fit(self, observations: NDArray, batch: Batch) -> None:
        """Move the normaliser to the statistics, as far as the policy stays what it is.

        A policy that has learned nothing yet is left to see its features in the new light.
        """
        seen = self._statistics
        wanted = Normaliser(seen.obs_mean.astype(np.float32), seen.obs_scale())
        raw = list(raw_features(self.spec.network))
        wanted.mean[raw], wanted.scale[raw] = 0.0, 1.0
        if seen.fitted_at == 0.0 and not self._inherited:
            self._under(wanted)
            self._statistics = replace(seen, fitted_at=seen.seen)
            return
        before = Normaliser(np.asarray(self._weights.obs_mean), np.asarray(self._weights.obs_scale))
        config = as_numpy(self._config)

        def apart(normaliser: Normaliser, params: Params) -> float:
            fixed = self.fixed_inputs
            after = fixed._replace(obs_mean=normaliser.mean, obs_scale=normaliser.scale)
            with float32_products():
                return float(
                    moved(self.spec, config, (self._state.params, params), (fixed, after), batch)
                )

        made = refit.fit(
            self._state.params,
            self.spec.network.input_layers,
            before=before,
            wanted=wanted,
            observations=observations,
            moved=apart,
        )
        self._under(made.normaliser)
        self._state = self._state._replace(params=jax.tree.map(jnp.asarray, made.params))
        self._settling = settling.interrupted(self._settling)
        if made.share == 1.0:
            self._statistics = replace(seen, fitted_at=seen.seen)

    def _under(self, normaliser: Normaliser) -> None:
        self._weights = replace(self._weights, obs_mean=normaliser.mean, obs_scale=normaliser.scale)

    def adapt(
        self,
        kl: float,
        *,
        share: float | None = None,
        settings: LearnerConfig | None = None,
        outrun: bool = False,
    ) -> None:
        """Slower when a batch moved the policy too far, faster when it hardly moved.

        What is too far is less once the learner has settled. `share`: the share of full steps that
        the batch took; None: the one that the learner has settled at. `settings`: of the batch;
        None: those of the trainer. `outrun`: most of the batch could not move the policy, so a
        batch that hardly did says nothing of the rate.
        """
        c, share = settings or self._config, share or self._settling.share
        target = c.kl_target * share
        if kl > 2.0 * target:
            self.learning_rate /= _RATE_STEP
        elif kl < 0.5 * target and not outrun:
            self.learning_rate *= _RATE_STEP
        least, most = c.learning_rate_min * share, c.learning_rate_max * share
        self.learning_rate = min(max(self.learning_rate, least), most)

    def slow_down(self) -> None:
        """Halve the learning rate, after something went wrong."""
        share = min(self._settling.share, settling.BESIDE_RULES if self._mixed else 1.0)
        least = self._config.learning_rate_min * share
        self.learning_rate = max(self.learning_rate / 2.0, least)


def _few(batch: Batch) -> bool:
    return int(np.asarray(batch.valid).any(0).sum()) < slow_games.FEW


def _with_value_fit(fixed: FixedInputs, fit: ValueFit) -> FixedInputs:
    """Values count as far as they predicted the returns that followed."""
    return fixed._replace(
        slope=np.float32(fit.slope),
        intercept=np.float32(fit.intercept / float(fixed.value_scale)),
        explained=np.float32(fit.explained),
    )


def _pace(spec: PolicySpec, *, whole: bool, few: bool, slow: bool) -> settling.SettlingWindows:
    if spec.remembers:
        return settling.WITH_MEMORY
    if few:
        return settling.SLOW_GAME if slow else settling.FEW_MATCHES
    return settling.MATCHES if whole else settling.ITEMS


def _metrics(report: UpdateReport) -> dict[str, float]:
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
