"""A bot that is packed for a ladder, played as a ladder plays it, and its data that come back."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from cli.calling import understudy

pytest.importorskip("sc2")

from adapters.sc2.ducks import episodes
from understudy.adapters.sc2.ladder import ladder_run
from understudy.adapters.sc2.template import make_bot
from understudy.core.clock import SystemClock
from understudy.core.spaces import Discrete
from understudy.policy import weights
from understudy.policy.mlp import Mlp
from understudy.policy.policy import untrained
from understudy.policy.spec import PolicySpec
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import LEARNER, WEIGHTS, Manifest
from understudy.sc2 import FEATURES, stand_in

STRATEGIES = ("ECONOMY", "AGGRESSIVE", "DEFENSIVE", "TECH", "ALL_IN")
HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"


@pytest.fixture
def bot(tmp_path: Path) -> Path:
    make_bot(tmp_path / "zerg")
    (tmp_path / "zerg" / "data").mkdir()
    (tmp_path / "zerg" / "data" / "old.txt").write_text("stays at home", encoding="utf-8")
    return tmp_path / "zerg"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with version 7 as champion, and the learner's state beside its weights."""
    spec = PolicySpec(FEATURES, Discrete(STRATEGIES), Mlp((8,)))
    folder = RunFolder.open(tmp_path / "runs" / "zerg", spec=spec, config=None, clock=SystemClock())
    data = weights.encode(untrained(spec, seed=7).weights)
    manifest = Manifest(number=7, parent=6, created_at=0.0, spec=spec, ingested={"a": "b.npz"})
    folder.versions.commit(manifest, {WEIGHTS: data, LEARNER: b"of no use on a ladder"})
    folder.pointers.move("champion", 7, by="latest")
    return folder.root


def packed(run: Path | str, bot: Path, out: Path, *options: object) -> None:
    line = ("export", run, "--as", "ladder", "--bot", bot, "-o", out, "--python", HERE, *options)
    called = understudy(*line)
    assert called.code == 0, called.err


def test_the_zip_has_what_a_ladder_needs_and_no_more(bot: Path, run: Path, tmp_path: Path) -> None:
    out = tmp_path / "my_bot.zip"
    bot = bot.rename(tmp_path / "my_bot")
    called = understudy("export", run, "--as", "ladder", "-o", out, "--python", HERE)
    assert called.code == 0 and f"{out} (" in called.out, called.err
    assert f"understudy import my_bot_data.zip --run {run}" in " ".join(called.out.split())
    with zipfile.ZipFile(out) as archive:
        names = set(archive.namelist())
    assert {"run.py", "bot.py", "understudy/sc2.py", "msgspec/__init__.py"} <= names
    assert {"champion/run.json", "champion/versions/00000007/weights.npz"} <= names
    assert not [name for name in names if "learner.npz" in name or "__pycache__" in name]
    assert not [name for name in names if name.startswith("data/")]
    folder = tmp_path / "my_bot-ladder"
    assert sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()) == (
        sorted(names)
    )
    first = out.read_bytes()
    assert understudy("export", run, "--as", "ladder", "--bot", bot, "-o", out).code == 2
    packed(run, bot, out, "--force")
    assert len(out.read_bytes()) == pytest.approx(len(first), rel=0.01)


def test_data_of_two_exports_do_not_mix(bot: Path, run: Path, tmp_path: Path) -> None:
    packed(run, bot, tmp_path / "one.zip")
    one = ladder_run(tmp_path / "one-ladder")
    assert (
        one.parent == tmp_path / "one-ladder" / "data"
        and ladder_run(tmp_path / "one-ladder") == one
    )
    folder = RunFolder.load(one, SystemClock())
    record = folder.pointers.read("champion")
    assert record is not None and record.version == 7 and record.pinned
    folder.versions.verify(7)
    RunFolder.load(run, SystemClock()).pointers.pin("champion", 0, by="test")
    packed(run, bot, tmp_path / "two.zip")
    two = ladder_run(tmp_path / "two-ladder")
    assert two.name != one.name and RunFolder.load(two, SystemClock()).versions.numbers() == []
    assert ladder_run(bot) == bot / "data" / "run", "a bot that was not packed"


_START = """
import runpy, sys
sys.path += [{packages!r}]
for name in ("understudy", "msgspec", "jax"):
    try:
        __import__(name)
    except ImportError:
        continue
    sys.exit(name + " is installed on this ladder")
sys.path.insert(0, ".")
sys.argv = ["run.py", *sys.argv[1:]]
runpy.run_path("run.py", run_name="__main__")
"""
_LADDER = """
import asyncio, sys
from understudy.sc2 import contained
with contained():
    from sc2 import maps
    from sc2.data import Difficulty, Race
    from sc2.main import GameMatch, a_run_multiple_games
    from sc2.player import BotProcess, Computer
    folder, name, start = sys.argv[1:]
    bot = BotProcess(
        folder, [sys.executable, "-I", "-S", "-B", start], Race.Zerg, "MyBot",
        other_args="--OpponentId=rival-7", stdout="bot.log",
    )
    match = GameMatch(maps.get(name), [bot, Computer(Race.Terran, Difficulty.Hard)])
    found = asyncio.run(a_run_multiple_games([match]))
print([result.name for one in found for result in one.values()])
"""


def ladder_packages(folder: Path) -> Path:
    """The site-packages of a ladder: those of this environment but ours and the learner's."""
    import sc2

    folder.mkdir()
    for one in Path(sc2.__file__).parent.parent.iterdir():
        if not one.name.lower().startswith(("understudy", "msgspec", "jax", "__", "_")):
            (folder / one.name).symlink_to(one, target_is_directory=one.is_dir())
    return folder


@pytest.mark.skipif(os.name != "posix", reason="burnysc2 starts an .exe on Windows")
def test_a_ladder_plays_it_and_its_data_come_back_once(
    bot: Path, run: Path, tmp_path: Path
) -> None:
    packed(run, bot, tmp_path / "my_bot.zip")
    ladder = tmp_path / "ladder"
    with zipfile.ZipFile(tmp_path / "my_bot.zip") as archive:
        archive.extractall(ladder)
    start = tmp_path / "start.py"
    packages = ladder_packages(tmp_path / "packages")
    start.write_text(_START.format(packages=str(packages)), encoding="utf-8")
    game = stand_in.install(tmp_path / "game", stand_in.Scenario(seed=3, build="Rush"))
    done = subprocess.run(
        [sys.executable, "-c", _LADDER, str(ladder), stand_in.MAP, str(start)],
        capture_output=True, text=True, check=False, cwd=tmp_path, timeout=120,
        env=os.environ | {"SC2PATH": str(game)},
    )  # fmt: skip
    log = ladder / "bot.log"
    said = log.read_text(encoding="utf-8") if log.exists() else ""
    assert done.returncode == 0, done.stderr + said
    (kept,) = (ladder / "data").iterdir()
    (recorded,) = episodes(kept)
    assert set(recorded.versions.tolist()) == {7} and recorded.sampled.all(), said
    assert recorded.meta.tags["opponent"] == "rival-7"

    data = tmp_path / "my_bot_data.zip"
    with zipfile.ZipFile(data, "w") as archive:
        for path in (ladder / "data").rglob("*"):
            archive.write(path, path.relative_to(ladder / "data"))
    first = understudy("import", data, "--run", run, "--json").json
    assert first["matches"] == 1 and first["failed"] == []
    again = understudy("import", data, ladder / "data", "--run", run, "--json").json
    assert again["matches"] == 0 and len(again["known"]) == 2
    (ours,) = episodes(run)
    assert ours.meta == recorded.meta and (ours.observations == recorded.observations).all()


def test_data_of_another_run_are_refused(bot: Path, run: Path, tmp_path: Path) -> None:
    packed(run, bot, tmp_path / "my_bot.zip")
    data = tmp_path / "data.zip"
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("notes.txt", "nothing")
    called = understudy("import", data, "--run", run)
    assert called.code == 1 and "there is no run folder with episodes in it" in called.out
    assert "name the one that the bot was exported" in understudy("import", data).err
    data.write_bytes(b"no zip")
    assert "not a readable zip file" in understudy("import", data, "--run", run).err
    missing = understudy("import", tmp_path / "missing.zip", "--run", run)
    assert missing.code == 2 and "missing.zip: there is no such file" in missing.err
    with zipfile.ZipFile(data, "w") as archive:
        archive.write(run / "run.json", "run/run.json")
        archive.writestr("run/buffer/00000000000000000001-aa.npz", b"damaged")
    called = understudy("import", data, "--run", run)
    assert called.code == 1 and "not a readable .npz file" in " ".join(called.out.split())
    spec = PolicySpec(("x",), Discrete(("a", "b")), Mlp((8,)))
    other = RunFolder.open(tmp_path / "other", spec=spec, config=None, clock=SystemClock())
    called = understudy("import", data, "--run", other.root)
    assert called.code == 1 and "was recorded with other features" in " ".join(called.out.split())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "x: there is no run.py in it; --bot names the folder of the bot"),
        (("--bot", "{tmp}"), "there is no run.py in it"),
        (("--bot", "{bot}", "--python", "3.10"), "needs Python 3.11 or newer"),
        (("--bot", "{bot}", "--python", "three"), "expected a version such as 3.12"),
        (("--bot", "{tmp}/runs/zerg"), "there is no run.py in it"),
        (("--bot", "{bot}", "-o", "{tmp}/bot.tar"), "ends in .zip"),
        (("--bot", "{bot}", "--platform", "plan9_mips"), "no msgspec=="),
    ],
)
def test_what_is_refused(
    bot: Path, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...], words: str,
) -> None:  # fmt: skip
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    line = [one.format(tmp=tmp_path, bot=bot) for one in options]
    called = understudy("export", run, "--as", "ladder", "-o", tmp_path / "x.zip", *line)
    assert called.code == 2 and words in called.err
    assert not (tmp_path / "x.zip").exists() and not (tmp_path / "x-ladder").exists()
