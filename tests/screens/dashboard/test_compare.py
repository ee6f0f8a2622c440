"""Runs side by side: chosen without a script, one colour each, and in what they differ."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from doctor.ring_runs import WrittenRing
from doctor.written_runs import WrittenTraining

from screens.dashboard.page_outline import PageOutline
from screens.dashboard.readings import reading_of
from screens.test_report_page import HOSTILE
from understudy.screens.dashboard.page import RunReading
from understudy.screens.dashboard.pages import compare


def ring(root: Path, *, won: float, gamma: float = 0.99, name: str = "") -> RunReading:
    run = WrittenRing(root, {"learner.gamma": gamma})
    for _ in range(6):
        run.matches(20, won=won)
        run.batches(5)
    reading = reading_of(root)
    return replace(reading, name=name or reading.name)


def colours(page: PageOutline, name: str) -> set[str]:
    """In which a run is drawn."""
    return {
        have["class"] for tag, have in page.tags if tag == "path" and have.get("data-name") == name
    }


def test_without_a_choice_all_runs_are_offered() -> None:
    page = PageOutline(compare.parts((), ("one", "two")))
    boxes = [have for tag, have in page.tags if tag == "input"]
    assert [have["value"] for have in boxes] == ["one", "two"]
    assert not any("checked" in have for have in boxes)
    (form,) = [have for tag, have in page.tags if tag == "form"]
    assert (form["method"], form["action"]) == ("get", "/compare")
    assert "Choose two runs or more" in page.text


def test_a_run_has_its_colour_in_every_chart(tmp_path: Path) -> None:
    arena = WrittenTraining(tmp_path / "arena")
    arena.iterate({"based": 0.5}, count=40)
    readings = (
        reading_of(tmp_path / "arena"), ring(tmp_path / "weak", won=0.2),
        ring(tmp_path / "strong", won=0.9),
    )  # fmt: skip
    page = PageOutline(compare.parts(readings, ("arena", "weak", "strong", "other")))
    for place, name in enumerate(("arena", "weak", "strong"), start=1):
        assert colours(page, name) == {f"thick s{place}"}
    links = [have["href"] for tag, have in page.tags if tag == "a"]
    assert links == ["/runs/arena", "/runs/weak", "/runs/strong"]
    assert page.keys == [
        "choice", "key", "key-figures", "time", "matches", "steps", "settings",
    ]  # fmt: skip


def test_figures_are_those_of_each_run(tmp_path: Path) -> None:
    readings = ring(tmp_path / "a", won=0.25), ring(tmp_path / "b", won=0.75)
    page = PageOutline(compare.parts(readings, ("a", "b")))
    assert "matches 120 120" in page.text
    assert "decisions trained on 2,400 2,400" in page.text
    assert "27% (14% to 44%) 77% (59% to 88%)" in page.text, "8 and 23 of the last 30"


def test_settings_that_differ_are_listed_with_their_defaults(tmp_path: Path) -> None:
    same = ring(tmp_path / "a", won=0.5), ring(tmp_path / "b", won=0.5)
    assert "These runs have the same settings" in PageOutline(compare.parts(same, ())).text
    other = same[0], ring(tmp_path / "c", won=0.5, gamma=0.5)
    text = PageOutline(compare.parts(other, ())).text
    assert "learner.gamma 0.99 0.5" in text


def test_the_axis_over_matches_ends_with_the_longest_run(tmp_path: Path) -> None:
    short = WrittenRing(tmp_path / "short")
    short.matches(40, won=0.5)
    readings = ring(tmp_path / "long", won=0.5), reading_of(tmp_path / "short")
    page = PageOutline(compare.parts(readings, ()))
    ends = {have["data-end"] for _, have in page.tags if have.get("data-counts") == "matches"}
    assert ends == {"120.0"}


def test_a_run_without_anything_can_be_chosen(tmp_path: Path) -> None:
    WrittenRing(tmp_path / "run")
    page = PageOutline(compare.parts((reading_of(tmp_path / "run"),), ("run",)))
    assert "None of these runs has curves yet" in page.text
    assert "Choose another run" in page.text


def test_hostile_names_of_runs_stay_text(tmp_path: Path) -> None:
    readings = (
        ring(tmp_path / "a", won=0.5, name=HOSTILE), ring(tmp_path / "b", won=0.5, name="../../b"),
    )  # fmt: skip
    page = PageOutline(compare.parts(readings, (HOSTILE, "../../b")))
    assert "script" not in {tag for tag, _ in page.tags} and "<script>" in page.text
    links = [have["href"] for tag, have in page.tags if tag == "a"]
    assert links[1] == "/runs/..%2F..%2Fb" and all(one.count("/") == 2 for one in links)
