"""A cluster for the tests with Ray: made once, since it takes seconds."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator

import pytest
from required import skip_without

from understudy.workers import ray_actors
from workers.two_nodes import TwoNodes


@pytest.fixture(scope="package")
def nodes() -> Iterator[TwoNodes]:
    if importlib.util.find_spec("ray") is None:
        skip_without("ray", "Ray is not installed (the extra scale)")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("PYTHONPATH", os.pathsep.join(part for part in sys.path if part))
        made = TwoNodes()
        yield made
        made.cluster.shutdown()


@pytest.fixture
def cluster(nodes: TwoNodes, monkeypatch: pytest.MonkeyPatch) -> TwoNodes:
    """`--ray auto` finds it. Its nodes find the tests by PYTHONPATH: a test process has imported
    hundreds of modules that would travel."""
    monkeypatch.setenv("RAY_ADDRESS", nodes.cluster.address)
    monkeypatch.setattr(ray_actors, "copy_user_code", lambda folder: {})
    nodes.mend()
    return nodes
