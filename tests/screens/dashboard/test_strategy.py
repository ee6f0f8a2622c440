"""The page of strategy: where opponents lie, and what is said before anything was measured."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from run.dashboards import unpacked

from understudy.analysis.findings import ActionAttention, Attention, Findings
from understudy.analysis.probing import Accuracy, ProbeVerdict
from understudy.run.dashboard import WatchedRuns
from understudy.screens.dashboard.pages import strategy
from understudy.screens.dashboard.rendering import Address, Renderer

from .readings import outlines, reading_of

EVIL = "<script>x</script>"


@pytest.fixture
def arena(tmp_path: Path) -> Path:
    return unpacked(tmp_path, "arena") / "arena"


def analysed(run: Path) -> None:
    """What `understudy analyze` leaves, with two opponents."""
    sure = Accuracy(share=0.8, low=0.7, high=0.9, matches=40)
    even = Accuracy(share=0.5, low=0.4, high=0.6, matches=40)
    verdict = ProbeVerdict(
        trained=sure, untrained=even, gain=None,
        confusion=[[18, 2], [6, 14]],
    )  # fmt: skip
    found = Findings(
        game="brawl", agent="x", version=3, matches=20, seed=0, sampled=True, frames_per_s=60,
        opponents=["based", EVIL], window=33, probe={"latent": {1: verdict, 4: verdict}},
        silhouette={1: [0.1, 0.0], 4: [0.4, 0.0]},
        distances={"trained": [[0.0, 2.5], [2.5, 0.0]]},
        attention=Attention(
            matches=8, window=33, evenness={"all": [0.9, 1.0]},
            by_action=[ActionAttention(action=EVIL, frames=9, trained=1.2, untrained=1.0)],
        ),
    )  # fmt: skip
    folder = run / "analysis"
    folder.mkdir()
    (folder / "analysis.json").write_bytes(msgspec.json.encode(found))
    rows = "".join(
        f"{encoder},{name},{x},{-x}\n"
        for encoder in ("trained", "untrained")
        for name in ("based", EVIL)
        for x in range(5)
    )
    (folder / "latents_pca.csv").write_text(f"encoder,opponent,x,y\n{rows}", "utf-8")


def test_before_an_analysis_training_is_shown_and_the_command_is_told(arena: Path) -> None:
    reading = reading_of(arena)
    assert strategy.offered(reading)
    page = outlines(strategy.parts, reading)
    assert "Mean latents during training" in page["map"].of("svg")[0]["aria-label"]
    assert "principal component" in page["map"].text
    assert "understudy analyze brawl --agent" in page["map"].text
    assert page["attention"].of("a")[0]["href"] == "/runs/arena/replay"
    assert "recognition" not in page


def test_an_analysis_is_shown_as_maps_and_accuracy(arena: Path) -> None:
    analysed(arena)
    page = outlines(strategy.parts, reading_of(arena))
    maps = [one["aria-label"] for one in page["map"].of("svg")]
    assert f"Latents of matches: points by group: based (5), {EVIL} (5)" in maps[0]
    accuracy, confusion, distances = (one["aria-label"] for one in page["recognition"].of("svg"))
    assert "the latent from 80% to 80%; untrained from 50% to 50%; chance at 50%" in accuracy
    assert "lowest 10% at based" in confusion
    assert "highest 90% at based, based" in confusion
    assert "2 without a value" in distances
    assert "1.20" in page["attention"].text
    assert not any(one.of("script") for one in page.values())
    assert "understudy analyze" not in page["map"].text


def test_a_damaged_analysis_is_said(arena: Path) -> None:
    analysed(arena)
    (arena / "analysis" / "analysis.json").write_text("{", "utf-8")
    page = outlines(strategy.parts, reading_of(arena))
    assert "expected the files of" in page["map"].text


def test_latents_are_projected_to_the_directions_in_which_they_differ_most() -> None:
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(60, 1)) * [[3.0, 0.0, 4.0]] + rng.normal(size=(60, 3)) * 0.01
    found = strategy.projected({"a": wide[:30].tolist(), "b": wide[30:].tolist()})
    assert found.explained[0] > 0.99
    places = np.array([point for group in found.groups for point in group.points])
    along = (wide - wide.mean(0)) @ [0.6, 0.0, 0.8]
    assert np.allclose(np.abs(places[:, 0]), np.abs(along), atol=0.1)
    assert strategy.projected({"a": [[2.0]]}).groups[0].points == [(0.0, 0.0)]


def test_only_networks_with_a_latent_have_the_page(tmp_path: Path) -> None:
    assert not strategy.offered(reading_of(unpacked(tmp_path, "ring") / "ring"))


def test_an_analysis_that_is_made_later_changes_the_page(arena: Path) -> None:
    renderer = Renderer(WatchedRuns([arena]))
    address = Address("strategy", "arena")
    assert "recognition" not in renderer.content(address).parts
    analysed(arena)
    assert "recognition" in renderer.content(address).parts
