"""The arithmetic of `benchmarks/scale_model.py`: nothing is lost on the way, queues are queues."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest


@pytest.fixture(scope="module")
def model(benchmark: Any) -> ModuleType:
    module: ModuleType = benchmark("scale_model")
    return module


def flow(model: ModuleType, **changes: Any) -> Any:
    given = {
        "machines": 50, "matches_s": 40.0, "learn_s": 0.02, "seconds": 200.0, "bundle_s": 1.0,
        "latency_s": 0.05, "poll_s": 1.0, "publish_s": 10.0,
    }  # fmt: skip
    return model.simulate(**given | changes)


@pytest.mark.parametrize("learn_s", [0.001, 0.02, 0.05])
def test_every_match_is_somewhere_at_all_times(model: ModuleType, learn_s: float) -> None:
    made = flow(model, learn_s=learn_s)
    for time_s in (0.0, 3.3, 50.0, 199.0, 260.0):
        stages = made.at(time_s)
        assert sum(stages.values()) == (made.ended <= time_s).sum()
        assert min(stages.values()) >= 0
    times = [made.ended, made.stored, made.seen, made.learned, made.plays]
    for before, after in pairwise(times):
        assert (after >= before).all(), "no match overtakes itself"
    assert (np.diff(made.learned) >= learn_s - 1e-9).all(), "one at a time"
    assert made.busy_s == pytest.approx(learn_s * len(made.ended))


def test_served_in_turn_is_the_loop(model: ModuleType) -> None:
    arrivals = np.sort(np.random.default_rng(0).random(200) * 10.0)
    done, now = [], 0.0
    for arrival in arrivals:
        now = max(now, arrival) + 0.045
        done.append(now)
    np.testing.assert_allclose(model.served_in_turn(arrivals, 0.045), done)


@pytest.mark.parametrize("used", [0.3, 0.8])
def test_without_bundles_and_polls_the_wait_is_that_of_a_queue(
    model: ModuleType, used: float
) -> None:
    """Random arrivals, one server with a fixed service: Pollaczek and Khinchine."""
    service = 0.01
    nothing = {"bundle_s": 0.0, "latency_s": 0.0, "poll_s": 0.0, "publish_s": 0.0}
    made = flow(model, matches_s=used / service, learn_s=service, seconds=4000.0, **nothing)
    wait = (made.plays - made.ended - service).mean()
    assert wait == pytest.approx(used * service / (2.0 * (1.0 - used)), rel=0.05)


def test_an_idle_pipeline_takes_its_intervals_and_an_overloaded_one_grows(
    model: ModuleType,
) -> None:
    idle = flow(model, learn_s=0.0)
    # Half a bundle, half a poll of each side and four requests; polls come every second and
    # versions every ten, so after a poll and its request it is 9.95, 8.95 ... 0.95 to the next.
    expected = 0.5 + 0.5 + 5.45 + 0.5 + 4 * 0.05
    assert (idle.plays - idle.ended).mean() == pytest.approx(expected, rel=0.02)
    over = flow(model, learn_s=0.05)  # 40 a second where 20 can be learned from
    assert over.at(200.0)["queue"] == pytest.approx(20 * 200.0, rel=0.1)


def test_a_plan_names_the_part_that_gives_way_first(model: ModuleType) -> None:
    constants = model.Constants(learn_cpu_s=0.01, store_puts_s=500.0, poll_s=1.0)
    few = model.bots_plan(constants, bots=1000, machines=10, matches_h=180.0)
    assert few[0].part == "learner's core" and few[0].used == pytest.approx(0.5)
    many = model.bots_plan(constants, bots=1000, machines=1000, matches_h=1.0)
    assert many[0].part.startswith("store: LIST") and many[0].used == pytest.approx(2.0, rel=0.01)
    whole, tenth = (
        dict(model.decisions_plan(constants, decisions_s=1e6, share=share)) for share in (1.0, 0.1)
    )
    assert tenth["cores of a learner"] == pytest.approx(whole["cores of a learner"] / 10)
    assert tenth["cores that serve --schema"] == whole["cores that serve --schema"]


def test_every_constant_says_where_it_is_from(model: ModuleType) -> None:
    rows = model.constants_table(model.Constants())[2:]
    assert all(row.count("|") == 4 and ":" in row for row in rows), rows


def test_the_page_has_the_tables_that_the_script_prints(model: ModuleType) -> None:
    page = (Path(__file__).parent.parent / "docs" / "scale.md").read_text(encoding="utf-8")
    for name, table in model.TABLES.items():
        assert "\n".join(table(model.Constants())) in page, f"docs/scale.md: {name} is another"
