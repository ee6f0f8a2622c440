"""Devices that share the games: they learn what one does, and a run goes from one to the other.

Two virtual devices need another process: their number is fixed before JAX starts.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import jax
import numpy as np
import pytest
from training.test_train import ROLLOUT, kept, quietly, session, tug

from understudy.arena.arena import check
from understudy.arena.devices import check_games, count_devices, used_words
from understudy.arena.population import check_agents
from understudy.arena.recording import recorded_columns
from understudy.core.arrays import NDArray
from understudy.core.config import with_values
from understudy.core.errors import ConfigError
from understudy.games import catalog
from understudy.learner.maths.descent import _deal_blocks
from understudy.training.train import check as check_session

from .makers import CONFIG, GAME, GAMES
from .on_two_devices import ITERATIONS, trained

TWO = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}


@pytest.fixture(autouse=True, scope="module")
def toy() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalog, "_GAMES", {**catalog._GAMES, "tug": tug()})
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a process with two devices made."""
    folder = tmp_path_factory.mktemp("two")
    script = Path(__file__).with_name("on_two_devices.py")
    done = subprocess.run(
        [sys.executable, str(script), str(folder)],
        env=os.environ | TWO,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr
    return folder


def of(file: Path, prefix: str) -> dict[str, NDArray]:
    with np.load(file) as arrays:
        found = {key.removeprefix(prefix): arrays[key] for key in arrays if key.startswith(prefix)}
    assert found
    return found


@pytest.mark.parametrize("name", ["mlp", "attentive"])
def test_one_update_is_that_of_one_device(made: Path, name: str) -> None:
    one, two = (of(made / "updates.npz", f"{name}.{word}.") for word in ("one", "two"))
    assert one.keys() == two.keys()
    for key, value in one.items():
        np.testing.assert_allclose(two[key], value, atol=1e-5, rtol=1e-5, err_msg=key)
    before = of(made / "updates.npz", f"{name}.before.")
    assert min(np.abs(one[key] - before[key]).max() for key in before) > 1e-3


def test_the_agents_of_a_population_are_shared_out(made: Path) -> None:
    one, two = (of(made / "population.npz", f"{word}.") for word in ("one", "two"))
    assert one.pop("devices") == 1 and two.pop("devices") == 2
    for key, value in one.items():
        np.testing.assert_allclose(two[key], value, atol=1e-5, err_msg=key)


def test_devices_share_a_group_that_meets_one_snapshot(made: Path) -> None:
    one, two = (of(made / "one_group.npz", f"{word}.") for word in ("one", "two"))
    assert (one["kind"] == 1).sum() > GAMES // 2, "most columns are in a match against it"
    assert np.abs(one["theirs.0"]).max() > 0.1, "and it remembers something"
    for key, value in one.items():
        np.testing.assert_allclose(two[key], value, atol=1e-4, err_msg=key)


def test_a_run_on_two_devices_is_the_run_on_one_and_goes_on_there(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    facts = of(made / "run.npz", "")
    assert facts["devices"] == 2 and facts["columns"] == GAMES // 2
    assert facts["groups"] == 1, "whole groups"
    assert facts["programs"] == 1, "compiled again for arrays that lie elsewhere"
    assert tuple(facts["recorded"]) == (0, GAMES // 2)
    learning = trained(tmp_path / "one", devices=1)
    columns = learning.arena.columns
    for name, value in learning.arena.trainer.weights().params.items():
        np.testing.assert_allclose(facts[f"params.{name}"], value, atol=1e-4, err_msg=name)
    np.testing.assert_array_equal(facts["opponents"], columns.kind)
    np.testing.assert_array_equal(facts["started"], columns.started)
    assert kept(made / "run") == kept(tmp_path / "one")

    shutil.copytree(made / "run", tmp_path / "run")
    summary = quietly(session(tmp_path / "run", steps=(ITERATIONS + 1) * ROLLOUT, resume=True))
    assert summary.steps == (ITERATIONS + 1) * ROLLOUT
    assert summary.version == max(kept(made / "run")) + 1


def test_a_number_of_devices_that_is_not_there_is_refused(tmp_path: Path) -> None:
    here = len(jax.devices())
    assert count_devices("all") == here and count_devices(1) == 1
    match = rf"--devices: expected all, or a number up to {here}, .*got 99"
    with pytest.raises(ConfigError, match=match):
        count_devices(99)
    with pytest.raises(ConfigError, match=match):
        check_session(session(tmp_path / "run", devices=99))
    assert not (tmp_path / "run").exists()
    assert used_words(1) == "" or here > 1


def test_games_that_cannot_be_shared_evenly_are_refused() -> None:
    match = r"--devices: 3 devices cannot share train\.games 16 .*such as --set train\.games=24"
    with pytest.raises(ConfigError, match=match):
        check(GAME, with_values(CONFIG, {"learner.minibatches": 4}), meets_itself=False, devices=3)
    match = r"--devices: 3 devices cannot share train\.groups 2 .*--set train\.groups=3"
    with pytest.raises(ConfigError, match=match):
        check(GAME, CONFIG, meets_itself=True, devices=3)
    for devices, groups in ((2, 1), (2, 2), (2, 4), (4, 2), (8, 1), (8, 4)):
        check_games(64, devices=devices, minibatches=4, groups=groups)
    check_games(30, devices=1, minibatches=4, groups=7)  # one device has nothing to share
    with pytest.raises(ConfigError, match=r"--devices: 2 devices cannot share 3 agents"):
        check_agents(3, devices=2)


@pytest.mark.parametrize("devices", [1, 2, 4])
def test_every_device_has_equally_much_of_every_minibatch(devices: int) -> None:
    filled = np.ones(32, np.bool_)
    deals = [np.asarray(_deal_blocks(jax.random.PRNGKey(seed), filled, 4)) for seed in range(9)]
    for deal in deals:
        assert sorted(deal.reshape(-1)) == list(range(32)), "all are dealt once"
        owners = deal // (32 // devices)
        for minibatch in owners:
            assert (np.bincount(minibatch, minlength=devices) == 8 // devices).all()
        places = owners * (32 // devices) + deal % (32 // devices)
        np.testing.assert_array_equal(places, deal)
    assert len({deal.tobytes() for deal in deals}) == 9


def test_recorded_columns_are_in_the_same_places_of_every_device() -> None:
    assert recorded_columns(16, 4) == recorded_columns(16, 4, devices=1)
    for count in (1, 2, 3, 5):
        both = recorded_columns(16, count, devices=2)
        assert both == (*(one := recorded_columns(8, -(-count // 2))), *(8 + c for c in one))
    assert recorded_columns(16, 0, devices=2) == ()
