"""Every setting of a run, with its default; kept as `config.toml` in the run folder.

Settings are frozen. An unknown key or an impossible value is a `ConfigError` that names the key.
Each part of the system is handed its own section.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from understudy.core import files
from understudy.core.errors import ConfigError, nearest


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


def _positive(section: msgspec.Struct, where: str, *names: str) -> None:
    _check(section, where, names, "a number above 0", lambda value: value > 0)


def _at_least_zero(section: msgspec.Struct, where: str, *names: str) -> None:
    _check(section, where, names, "0 or more", lambda value: value >= 0)


def _check(
    section: msgspec.Struct, where: str, names: Iterable[str], what: str, holds: Any
) -> None:
    for name in names:
        value = getattr(section, name)
        if not holds(value):
            raise ConfigError(f"{where}.{name}: expected {what}, got {value}")


class LearnerConfig(_Section, frozen=True, kw_only=True):
    """How the learner learns (`[learner]`)."""

    algorithm: Literal["actor_critic", "reinforce"] = "actor_critic"
    """`actor_critic`: clipped, corrected for old experience. `reinforce`: the simple one."""
    learning_rate: float = 5e-4
    """Where the adaptive learning rate starts."""
    learning_rate_min: float = 1e-5
    """The adaptive learning rate never falls below this."""
    learning_rate_max: float = 7e-4
    """The adaptive learning rate never rises above this."""
    kl_target: float = 0.01
    """How far a batch should move the policy: the learning rate adapts to that."""
    gamma: float = 0.995
    """Discount a decision."""
    gae_lambda: float = 0.95
    """1: whole returns (high variance); 0: one step (high bias)."""
    clip: float = 0.2
    """How far one batch may move the probability of an action, as a ratio."""
    behaviour_clip: float = 1.0
    """Cap of the weight that corrects for experience of an older version (V-trace's rho)."""
    entropy_weight: float = 0.02
    """Bonus for keeping options open."""
    value_weight: float = 0.5
    """Weight of the value loss."""
    opponent_weight: float = 0.1
    """Weight of foretelling the opponent's next action, for networks that do (strategist)."""
    imitation_weight: float = 1.0
    """Weight of the regression on decisions that no policy sampled (rules, imports)."""
    imitation_cap: float = 20.0
    """Largest weight of one decision in that regression."""
    imitation_temperature: float = 0.5
    """Advantages (in units of their spread) are divided by this before the exponential."""
    max_gradient_norm: float = 0.5
    """Gradients are scaled down to this norm."""
    epochs: int = 4
    """Passes over a batch; each counts as one sample of every match in it."""
    minibatches: int = 8
    """Gradient steps a pass."""
    kl_stop: float = 0.0
    """Passes end early once the policy has moved this far from where the batch began; 0: never."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """What networks compute in; parameters stay float32. auto: bfloat16 on a GPU."""
    batch_matches: int = 10
    """At most this many new matches a batch."""
    gather_s: float = 0.3
    """How long to wait for a batch to fill before training on what there is."""
    replay_matches: int = 6
    """At most this many earlier matches beside them."""
    samples_per_insert: int = 8
    """No match is ever sampled more often than this."""
    replay_capacity: int = 200
    """How many earlier matches stay ready to be sampled again."""
    priority: Literal["uniform", "won", "surprise"] = "uniform"
    """Which earlier matches are sampled again: any, rather won ones, or rather surprising ones."""
    max_version_lag: int = 100
    """Decisions of versions older than this teach the value only."""
    max_age_s: float = 3600.0
    """Matches that a policy played and that are older than this are archived without training."""
    publish_interval_s: float = 0.5
    """At most one new version in this time."""
    drain_s: float = 20.0
    """How long stopping may take to train on what is pending."""
    niceness: int = 10
    """How far the learner's process steps back for the game (POSIX)."""
    seed: int = 0
    """Seeds the initial parameters, the order of minibatches and, in `train`, the matches."""

    def __post_init__(self) -> None:
        _positive(self, "learner", "learning_rate", "learning_rate_min", "learning_rate_max")
        _positive(self, "learner", "clip", "behaviour_clip", "max_gradient_norm", "kl_target")
        _positive(self, "learner", "imitation_temperature", "imitation_cap", "max_age_s")
        _positive(self, "learner", "epochs", "minibatches", "batch_matches", "samples_per_insert")
        _at_least_zero(self, "learner", "entropy_weight", "value_weight", "imitation_weight")
        _at_least_zero(self, "learner", "replay_matches", "replay_capacity", "max_version_lag")
        _at_least_zero(self, "learner", "publish_interval_s", "gather_s")
        _at_least_zero(self, "learner", "drain_s", "niceness", "seed", "kl_stop", "opponent_weight")
        if not 0.0 <= self.gamma <= 1.0:
            raise ConfigError(f"learner.gamma: expected 0 to 1, got {self.gamma}")
        if not 0.0 <= self.gae_lambda <= 1.0:
            raise ConfigError(f"learner.gae_lambda: expected 0 to 1, got {self.gae_lambda}")
        if self.epochs > self.samples_per_insert:
            raise ConfigError(
                f"learner.epochs: {self.epochs} passes a batch are more than "
                f"learner.samples_per_insert = {self.samples_per_insert} allows"
            )
        if not self.learning_rate_min <= self.learning_rate <= self.learning_rate_max:
            raise ConfigError(
                "learner.learning_rate: expected a value between learning_rate_min "
                f"({self.learning_rate_min}) and learning_rate_max ({self.learning_rate_max}), "
                f"got {self.learning_rate}"
            )


class SpoolConfig(_Section, frozen=True, kw_only=True):
    """How much experience is kept after it was learned from (`[spool]`)."""

    archive_matches: int = 5000
    """At most this many episodes in the archive."""
    archive_bytes: int = 2 * 2**30
    """At most this many bytes in the archive."""
    archive_age_s: float = 30 * 86400.0
    """Episodes older than this leave the archive."""

    def __post_init__(self) -> None:
        _positive(self, "spool", "archive_matches", "archive_bytes", "archive_age_s")


class RegistryConfig(_Section, frozen=True, kw_only=True):
    """How many versions are kept (`[registry]`)."""

    keep_versions: int = 50
    """The newest versions kept, beside every one that a pointer names."""

    def __post_init__(self) -> None:
        _positive(self, "registry", "keep_versions")


class ReportConfig(_Section, frozen=True, kw_only=True):
    """What a bot prints about the learner beside it (`[report]`)."""

    status_every_s: float = 30.0
    """Seconds between status reports on the console; 0: none."""
    statistics_every_matches: int = 5
    """Matches between statistics on the console; 0: none."""

    def __post_init__(self) -> None:
        _at_least_zero(self, "report", "status_every_s", "statistics_every_matches")


class TrainConfig(_Section, frozen=True, kw_only=True):
    """How `understudy train` plays and keeps what it learned (`[train]`)."""

    games: int = 256
    """Matches side by side."""
    segment: int = 128
    """Frames that each of them plays between two updates."""
    opponents: str = "all"
    """Who is met how often, by weight: based=1.5,random=1,self=2; all: every scripted bot alike."""
    groups: int = 4
    """Own past versions that can be met at one time (`self`)."""
    snapshot_steps: int = 2_000_000
    """After this many steps, one of those is replaced by the present version."""
    checkpoint_steps: int = 2_000_000
    """Steps between two versions that are kept (rounded up to whole iterations)."""
    schedule: Literal["adaptive", "linear", "constant"] = "adaptive"
    """The learning rate: follows learner.kl_target, falls to its minimum by the end, or stays."""
    entropy_schedule: Literal["linear", "constant"] = "linear"
    """The bonus for keeping options open: falls to nothing by the end, or stays."""

    def __post_init__(self) -> None:
        _positive(self, "train", "games", "segment", "groups", "snapshot_steps", "checkpoint_steps")


class Config(_Section, frozen=True, kw_only=True):
    """All sections."""

    learner: LearnerConfig = LearnerConfig()
    train: TrainConfig = TrainConfig()
    spool: SpoolConfig = SpoolConfig()
    registry: RegistryConfig = RegistryConfig()
    report: ReportConfig = ReportConfig()


T = TypeVar("T", bound=msgspec.Struct)


def load(path: Path) -> Config:
    """Read a TOML file of settings."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not valid TOML ({error})") from error
    return from_table(table, source=str(path))


def from_table(table: Mapping[str, Any], *, source: str = "config") -> Config:
    """Settings from nested tables; whatever is not named keeps its default."""
    _reject_unknown(table, Config, source, prefix="")
    try:
        return msgspec.convert(table, Config)
    except msgspec.ValidationError as error:
        cause = error.__cause__
        raise ConfigError(
            f"{source}: {cause if isinstance(cause, ConfigError) else error}"
        ) from error


def with_values(config: Config, values: Mapping[str, Any]) -> Config:
    """Settings changed by dotted keys: `{"learner.gamma": 0.997}`."""
    table: dict[str, Any] = msgspec.to_builtins(config)
    for key, value in values.items():
        section, _, field = key.partition(".")
        if not field:
            raise ConfigError(f"{key}: expected a dotted key such as learner.gamma")
        table.setdefault(section, {})[field] = value
    return from_table(table)


def save(path: Path, config: Config) -> None:
    """Keep the resolved settings as TOML."""
    lines: list[str] = []
    for section, values in msgspec.to_builtins(config).items():
        lines += [
            f"[{section}]",
            *(f"{key} = {json.dumps(value)}" for key, value in values.items()),
        ]
        lines.append("")
    files.write_atomic(path, "\n".join(lines).encode())


def _reject_unknown(
    table: Mapping[str, Any], struct: type[msgspec.Struct], source: str, prefix: str
) -> None:
    known = {field.name: field.type for field in msgspec.structs.fields(struct)}
    for key, value in table.items():
        if key not in known:
            raise ConfigError(f"{source}: unknown key {prefix}{key}.{nearest(key, known)}")
        inner = known[key]
        if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
            if not isinstance(value, Mapping):
                raise ConfigError(f"{source}: {prefix}{key}: expected a table of settings")
            _reject_unknown(value, inner, source, prefix=f"{prefix}{key}.")
