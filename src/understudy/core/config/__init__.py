"""Every setting of a run, with its default; kept as `config.toml` in the run folder.

Settings are frozen. An unknown key or an impossible value is a `ConfigError` that names the key.
Each part of the system is handed its own section.
"""

from understudy.core.config.learning import (
    LearnerConfig,
    RegistryConfig,
    ReportConfig,
    RetentionConfig,
    SpoolConfig,
)
from understudy.core.config.promotion import PromotionConfig
from understudy.core.config.relay import RelayConfig
from understudy.core.config.serving import ContinuousConfig, LiveConfig
from understudy.core.config.stages import CurriculumConfig, StageConfig
from understudy.core.config.tables import Config, changes, from_table, load, save, with_values
from understudy.core.config.training import (
    LeagueConfig,
    MonitorConfig,
    PopulationConfig,
    RewardsConfig,
    TrainConfig,
)

__all__ = [
    "Config",
    "ContinuousConfig",
    "CurriculumConfig",
    "LeagueConfig",
    "LearnerConfig",
    "LiveConfig",
    "MonitorConfig",
    "PopulationConfig",
    "PromotionConfig",
    "RegistryConfig",
    "RelayConfig",
    "ReportConfig",
    "RetentionConfig",
    "RewardsConfig",
    "SpoolConfig",
    "StageConfig",
    "TrainConfig",
    "changes",
    "from_table",
    "load",
    "save",
    "with_values",
]
