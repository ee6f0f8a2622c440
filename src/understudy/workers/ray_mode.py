"""Which Ray a command means by `--ray`; checked without Ray and without an environment."""

from __future__ import annotations

import os

from understudy.core.dependencies import not_installed
from understudy.core.errors import ConfigError

LOCAL, AUTO = "local", "auto"
MODES = (LOCAL, AUTO)
_CLIENT = "ray://"
ADDRESS = "RAY_ADDRESS"


def is_installed() -> bool:
    return not not_installed("ray")


def check_mode(mode: str) -> None:
    """A `ConfigError` unless this is a mode, and the environment fits it."""
    address = os.environ.get(ADDRESS, "") if mode == AUTO else ""
    for said, text in (("--ray", mode), (f"--ray auto: {ADDRESS}", address)):
        if text.startswith(_CLIENT):
            raise ConfigError(
                f"{said} {text}: every segment would go through a proxy to this machine and back; "
                "submit a job instead, so that the learner runs on the cluster: "
                "ray job submit --working-dir . -- understudy train ... --workers N --ray auto"
            )
    if mode not in MODES:
        raise ConfigError(
            f"--ray: expected {LOCAL} (Ray on this machine, for this command) or {AUTO} (the "
            f"cluster of the job or of {ADDRESS}), got {mode!r}"
        )
