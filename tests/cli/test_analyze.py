"""`understudy analyze` from the first match to the last picture, with a tiny network."""

from __future__ import annotations

import csv
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from understudy.analysis import ablation, study
from understudy.analysis.findings import Findings, page
from understudy.core.clock import SystemClock
from understudy.games import catalog
from understudy.judging.analyzing import ATTENDED, file_name, shown_states
from understudy.match.tally import wilson
from understudy.policy import weights
from understudy.policy.policy import untrained
from understudy.policy.spec import PolicySpec
from understudy.policy.strategist import Strategist
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import WEIGHTS, Manifest

from .calling import understudy
from .runs_of_brawl import brawl_run

TINY = Strategist(
    width=8, heads=2, layers=1, feed=8, window=9, latent=5, lstm=6, head_widths=(8,), kinds=8
)
NAMES = ("random", "clockwork")
ASKED = ("analyze", "brawl", "--engine", "numpy", "--opponents", ",".join(NAMES), "--matches", 6)
PICTURES = {
    "latents_pca.png", "latents_tsne.png", "distances.png", "probe.png", "ablation.png",
    "attention_random.png", "attention_clockwork.png",
}  # fmt: skip


def strategist_run(root: Path) -> Path:
    """One version that walks on, into the pit: its matches are short."""
    game = catalog.make("brawl")
    spec = PolicySpec(game.features, game.actions, TINY)
    clock = SystemClock()
    folder = RunFolder.open(root, spec=spec, config=None, clock=clock, game=f"brawl {game.version}")
    policy = untrained(spec, seed=1)
    policy.weights.params["policy.b"][1] = 3.0
    manifest = Manifest(number=1, parent=None, created_at=clock.time(), spec=spec)
    folder.versions.commit(manifest, {WEIGHTS: weights.encode(policy.weights)})
    folder.pointers.move("champion", 1, by="latest")
    return root


@pytest.fixture(scope="module")
def analysed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The folder that was written, and the one object that was printed."""
    run = strategist_run(tmp_path_factory.mktemp("analysed") / "run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ablation, "_DONORS", 2)
        called = understudy(*ASKED, "--agent", run, "--ablation", 7, "--json")
    assert called.code == 0, called.err
    return run / "analysis", called.json


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_picture_and_the_numbers_behind_it(analysed: tuple[Path, dict[str, Any]]) -> None:
    out, printed = analysed
    names = {path.name for path in out.iterdir()}
    tables = {"latents_pca.csv", "latents_tsne.csv", "distances.csv", "probe.csv", "confusion.csv",
              "attention.csv", "ablation.csv"}  # fmt: skip
    assert names == PICTURES | tables | {"analysis.json"}
    for name in PICTURES:
        assert (out / name).read_bytes().startswith(b"\x89PNG") and (
            out / name
        ).stat().st_size > 9000
    kept = msgspec.json.decode((out / "analysis.json").read_bytes())
    assert printed == {**kept, "out": out.as_posix()}
    assert (kept["game"], kept["version"], kept["matches"]) == ("brawl", 1, 6)
    assert kept["opponents"] == list(NAMES) and kept["window"] == 9


def test_the_probe_at_every_time(analysed: tuple[Path, dict[str, Any]]) -> None:
    out, found = analysed
    readings = {"latent", "latents", "frame", "frames", "itself"}
    assert set(found["probe"]) == set(found["readings"]) == readings
    assert list(found["probe"]["latent"]) == ["1", "2", "4", "8"]
    for times in found["probe"].values():
        for verdict in times.values():
            one = verdict["trained"]
            assert one["matches"] == 12 == np.array(verdict["confusion"]).sum()
            right = round(one["share"] * 12)
            assert np.trace(np.array(verdict["confusion"])) == right
            assert [one["low"], one["high"]] == pytest.approx(wilson(right, 12))
    assert found["probe"]["frame"]["1"]["untrained"] is None
    assert found["probe"]["latent"]["1"]["gain"]["pairs"] == 12
    assert all(0.5 <= share <= 1 for share in found["ceiling"].values())
    written = Counter((row["reading"], row["encoder"]) for row in rows(out / "probe.csv"))
    assert written == {
        **{(name, kind): 4 for name in ("latent", "latents") for kind in ("trained", "untrained")},
        **{(name, "none"): 4 for name in ("frame", "frames", "itself", "ceiling")},
    }
    assert len(rows(out / "confusion.csv")) == 4 * 2 * 2


def test_points_and_distances_of_both_encoders(analysed: tuple[Path, dict[str, Any]]) -> None:
    out, found = analysed
    for how in ("pca", "tsne"):
        points = rows(out / f"latents_{how}.csv")
        counted = Counter((row["encoder"], row["opponent"]) for row in points)
        assert counted == {(kind, name): 6 for kind in ("trained", "untrained") for name in NAMES}
        assert all(np.isfinite([float(row["x"]), float(row["y"])]).all() for row in points)
    for kind in ("trained", "untrained"):
        matrix = np.array(found["distances"][kind])
        assert matrix.shape == (2, 2) and matrix[0, 1] == matrix[1, 0] > 0
        assert matrix[0, 0] == matrix[1, 1] == 0
    assert all(-1 <= score <= 1 for both in found["silhouette"].values() for score in both)


def test_attention_beside_what_the_opponent_did(analysed: tuple[Path, dict[str, Any]]) -> None:
    out, found = analysed
    frames = rows(out / "attention.csv")
    assert {row["opponent"] for row in frames} == set(NAMES)
    chords = set(catalog.make("brawl").actions.names)  # type: ignore[union-attr]
    assert {row["action"] for row in frames if row["opponent"] == "random"} == chords
    assert found["attention"]["matches"] == 2 * ATTENDED
    for trained, untrained_ in found["attention"]["evenness"].values():
        assert 0 < trained <= 1 and 0 < untrained_ <= 1
    told = found["attention"]["by_action"]
    known = [row for row in frames if row["received_trained"] != "nan"]
    assert sum(one["frames"] for one in told) == len(known)


def test_the_ablation_counts_the_same_matches_three_ways(
    analysed: tuple[Path, dict[str, Any]],
) -> None:
    out, found = analysed
    everyone = found["ablation"]["all"]
    assert set(found["ablation"]) == {"all", *NAMES}
    for results in everyone["results"].values():
        assert results["matches"] == 8 == results["wins"] + results["draws"] + results["losses"]
    own, other = (everyone["results"][way]["win_rate"] for way in ("own", "other"))
    assert everyone["worth"]["own-other"]["wins"]["mean"] == pytest.approx(own - other)
    written = rows(out / "ablation.csv")
    assert [row["what"] for row in written[:6]] == [
        "own", "same", "other", "own-other", "own-same", "same-other"
    ]  # fmt: skip
    assert len(written) == 3 * 6


def test_a_page_to_read(analysed: tuple[Path, dict[str, Any]]) -> None:
    found = msgspec.json.decode((analysed[0] / "analysis.json").read_bytes(), type=Findings)
    text = page(found)
    for words in ("A linear probe", "after 4 s", "silhouette", "Attention over 9 frames"):
        assert words in text
    worth = "What the latent is worth, 8 matches"
    assert worth in text and max(map(len, text.splitlines()[1:])) < 110
    narrow = page(found, width=80).splitlines()
    assert max(map(len, narrow)) <= 80, "tables drop columns, lines are broken"
    assert any("trained latent" in line and "untrained" in line for line in narrow)
    found.ablation = found.silhouette = found.attention = found.probe = None
    assert worth not in page(found) and page(found).count("\n") == 0


def test_ctrl_c_keeps_what_was_finished(
    analysed: tuple[Path, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*args: object, **named: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(study, "geometry_of", interrupted)
    called = understudy(*ASKED, "--agent", f"{analysed[0].parent}@1", "--out", tmp_path / "mine")
    assert (called.code, called.out) == (130, "")
    assert (tmp_path / "mine").as_posix() in called.err
    names = {path.name for path in (tmp_path / "mine").iterdir()}
    assert names == {"probe.png", "probe.csv", "confusion.csv", "analysis.json"}
    kept = msgspec.json.decode((tmp_path / "mine" / "analysis.json").read_bytes())
    assert kept["probe"] and kept["attention"] is None


@pytest.mark.parametrize(
    ("args", "named"),
    [
        (("--agent", "based"), "a script has no latent"),
        (("--agent", "mlp"), "--network small, medium or seed"),
        (("--agent", "nowhere"), "nowhere"),
        (("--agent", "mine", "--matches", "4"), "--matches: expected 5 or more"),
        (("--agent", "mine", "--ablation", "-1"), "--ablation"),
        (("--agent", "mine", "--opponents", "based"), "--opponents: expected two or more"),
        (("--agent", "mine", "--opponents", "all,league"), "name some of its snapshots instead"),
        (("--agent", "mine", "--out", "mine/run.json"), "run.json is a file; expected a folder"),
    ],
)
def test_a_mistake_is_told_before_anything_is_played(
    args: tuple[str, ...], named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    brawl_run(tmp_path / "mlp", versions=1)
    strategist_run(tmp_path / "mine")
    called = understudy("analyze", "brawl", "--engine", "numpy", "--json", *args)
    assert called.code == 2 and named in called.err
    assert called.err.count("\n") == 1 and not list(tmp_path.glob("*/analysis"))


def test_without_the_libraries_one_is_told_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    called = understudy("analyze", "brawl", "--agent", strategist_run(tmp_path / "mine"))
    assert called.code == 2 and 'scikit-learn: pip install ".[plots]"' in called.err


def test_names_of_files_and_of_what_is_shown() -> None:
    assert file_name("runs/x@step-64") == "runs-x-step-64"
    game = catalog.make("brawl")
    states = shown_states(game.features, 32)
    assert states["gap_x"] == game.features.index("opponent.gap_x")
    assert shown_states(("a", "b", "c"), 2) == {"b": 1, "c": 2}
