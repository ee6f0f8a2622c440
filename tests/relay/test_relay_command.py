"""`understudy relay`, as a person uses it, through a real store."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli.calling import understudy
from promotion.runs import folded
from walk.toys import (
    SPEC,
    check_ingested_once,
    counts,
    episode,
    learner,
    open_run,
    spool_of,
    work_to_the_end,
)
from walk.toys import settings as toy_settings

from relay.makers import CONFIG
from relay.store_servers import SECRET, environment, free_port
from understudy import Understudy
from understudy.core.clock import SystemClock
from understudy.core.errors import ConfigError
from understudy.core.spaces import Discrete
from understudy.experience.ledger.recovery import LEDGER
from understudy.gates.promotion.records import Assigned, Declared
from understudy.policy.mlp import Mlp
from understudy.policy.spec import PolicySpec
from understudy.promotion.log import PromotionLog
from understudy.registry.run_folder import RunFolder
from understudy.relay.local import read_side
from understudy.supervise.lock import learner_lock

pytestmark = pytest.mark.xdist_group("relay")


def played(root: Path, *names: str) -> RunFolder:
    folder = open_run(root, CONFIG)
    for name in names:
        spool_of(folder).put(episode(name, finished_at=time.time()))
    return folder


@pytest.fixture
def url(s3: None, tmp_path: Path) -> str:
    return f"s3://bucket/{tmp_path.name}"


def once(run: Path, url: str, *more: str) -> dict[str, object]:
    called = understudy("relay", run, url, "--once", "--json", *more)
    assert called.code == 0, called.err
    told: dict[str, object] = json.loads(called.out)
    return told


@pytest.mark.parametrize(("served", "carried"), [(False, "1 match"), (True, "1 segment")])
def test_what_was_carried_is_called_by_its_name(tmp_path: Path, served: bool, carried: str) -> None:
    run = played(tmp_path / "run", "a").root
    if served:
        (run / LEDGER).mkdir()
    told = understudy("relay", run, tmp_path / "store", "--once")
    assert told.code == 0, told.err
    assert f"Sent            {carried} in 1 bundle, " in told.err
    assert f"Waiting         0 {'segments' if served else 'matches'}" in told.err


def test_a_match_goes_through_a_store_and_a_version_comes_back(tmp_path: Path, url: str) -> None:
    player = played(tmp_path / "player", "a", "b", "c")
    told = once(player.root, url)
    assert (told["side"], told["sent"], told["bundles"]) == ("player", 3, 2)
    told = once(tmp_path / "learner", url, "--side", "learner")
    assert told["received"] == 3
    beside = RunFolder.load(tmp_path / "learner", player.clock)
    assert beside.spec == player.spec
    assert beside.config == player.config
    work_to_the_end(learner(beside))
    told = once(tmp_path / "learner", url)
    assert (told["side"], told["version"]) == ("learner", 2), "the side is remembered"
    assert once(player.root, url)["version"] == 2
    assert player.versions.head() == 2
    check_ingested_once(beside, set("abc"))


def test_credentials_are_written_nowhere(tmp_path: Path, url: str) -> None:
    player = played(tmp_path / "player", "a")
    once(player.root, url)
    once(tmp_path / "learner", url, "--side", "learner")
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path


def refusal(*args: object) -> str:
    called = understudy("relay", *args)
    assert called.code == 2, called
    assert called.err.count("\n") == 1, "one line, no traceback"
    return called.err


def test_wrong_use_is_refused_in_one_line(tmp_path: Path) -> None:
    store = tmp_path / "store"
    assert "--side: expected one of" in refusal(tmp_path / "x", store, "--side", "lerner")
    assert "holds no run yet" in refusal(tmp_path / "x", store)
    assert "no machine that plays" in refusal(tmp_path / "x", store, "--side", "learner", "--once")
    player = played(tmp_path / "player")
    assert "credentials come from" in refusal(player.root, "s3://me:secret@bucket/x")
    with learner_lock(player.root):
        assert "a learner works here" in refusal(player.root, store, "--once")


def test_a_run_that_judges_by_itself_is_refused(tmp_path: Path) -> None:
    player = played(tmp_path / "player")
    log = PromotionLog(player.promotion)
    log.create(Declared(rules="mine"))
    once(player.root, str(tmp_path / "store"))
    log.create(Assigned(match="a", arm="incumbent", version=0))
    assert "promotion.judge = 'learner'" in refusal(player.root, tmp_path / "store", "--once")


def test_mode_auto_is_judged_on_the_learners_machine(tmp_path: Path) -> None:
    store, settings = str(tmp_path / "store"), {"promotion.judge": "learner"}
    spec: dict[str, Any] = {
        "features": SPEC.features,
        "actions": SPEC.actions,
        "network": SPEC.network,
    }
    run = tmp_path / "player"
    with Understudy.open(run, mode="auto", learner="off", settings=settings, **spec) as bot:
        once(run, store)
        assert once(tmp_path / "learner", store, "--side", "learner")["judged"] == 0
        once(run, store)
        bot.refresh()
        for result in ("victory", "defeat"):
            with bot.match() as match:
                match.decide((0.5, 0.5), fallback="left")
                match.finish(result)
    assert once(run, store)["judged"] == 2
    assert once(tmp_path / "learner", store)["judged"] == 2
    learner = RunFolder.load(tmp_path / "learner", SystemClock())
    assert learner.config.promotion.judge == "here"
    assert folded(learner).records[0].matches == 2
    assert "expected 'here' in a run folder of the learner's side" in refusal(
        run, tmp_path / "other", "--side", "learner", "--once"
    )
    with pytest.raises(ConfigError, match="expected 'here' with a learner beside the bot"):
        Understudy.open(run, mode="auto", learner="thread", **spec)


def test_machines_of_one_run_have_one_mode(tmp_path: Path) -> None:
    once(played(tmp_path / "learns", "a").root, str(tmp_path / "store"))
    shadow = played(tmp_path / "shadow", "b")
    shadow.promotion.mkdir()
    assert "is for a run of mode learn" in refusal(shadow.root, tmp_path / "store", "--once")


def test_in_mode_shadow_the_rules_play_on_and_the_newest_version_is_measured(
    tmp_path: Path,
) -> None:
    store = str(tmp_path / "store")
    with Understudy.open(
        tmp_path / "player",
        features=SPEC.features,
        actions=SPEC.actions,
        network=SPEC.network,
        learner="off",
    ) as mind:
        for _ in range(3):
            with mind.match() as match:
                match.decide((0.5, 0.5), fallback="left")
                match.finish("victory")
        once(tmp_path / "player", store)
        once(tmp_path / "learner", store, "--side", "learner")
        beside = RunFolder.load(tmp_path / "learner", SystemClock())
        work_to_the_end(learner(beside))
        once(tmp_path / "learner", store)
        once(tmp_path / "player", store)
        candidate = mind.folder.pointers.read("candidate")
        assert candidate is not None and candidate.version == beside.versions.head() == 1
        champion = mind.folder.pointers.read("champion")
        assert champion is not None and champion.version == 0, "the rules play"


def test_a_run_folder_belongs_to_one_side_and_one_store(tmp_path: Path) -> None:
    player = played(tmp_path / "player", "a")
    once(player.root, str(tmp_path / "store"))
    side = read_side(player.root)
    assert side is not None and side.side == "player"
    other = refusal(player.root, tmp_path / "other", "--once")
    assert "has connected this run folder, as the player's side" in other
    refusal(player.root, tmp_path / "store", "--side", "learner", "--once")


def test_another_run_in_the_store_is_refused(tmp_path: Path) -> None:
    once(played(tmp_path / "player", "a").root, str(tmp_path / "store"))
    spec = PolicySpec(("a", "b", "c"), Discrete(("left", "right")), Mlp(widths=(2,)))
    config = toy_settings()
    RunFolder.open(tmp_path / "other", spec=spec, config=config, clock=SystemClock())
    assert "is for another run" in refusal(tmp_path / "other", tmp_path / "store", "--once")


@pytest.fixture
def relay(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A relay without a store: nothing listens there."""
    played(tmp_path / "player", "a", "b")
    command = [sys.executable, "-m", "understudy", "relay", str(tmp_path / "player"), "s3://b/x"]
    process = subprocess.Popen(
        command,
        env={**os.environ, **environment(free_port())},
        stderr=subprocess.PIPE,
        text=True,
    )
    yield process
    process.kill()
    process.communicate()


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_offline_it_says_so_once_waits_and_ends_at_ctrl_c(
    relay: subprocess.Popen[str], tmp_path: Path
) -> None:
    assert relay.stderr is not None
    first = relay.stderr.readline()
    assert "s3://b/x: " in first
    relay.send_signal(signal.SIGINT)
    _, rest = relay.communicate(timeout=30)
    assert relay.returncode == 130
    assert "Traceback" not in rest
    assert counts(tmp_path / "player") == (2, 0, 0), "everything waits"
