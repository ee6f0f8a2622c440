"""Findings in order and in words, and checks that fail."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from bot.minds import publish

from understudy.cli.doctor import closing_lines, described
from understudy.doctor.evidence import Evidence
from understudy.doctor.examine import examine
from understudy.doctor.findings import Certainty, Finding, Weight, by_weight, section, worst
from understudy.registry.versions import WEIGHTS

from .ring_runs import Goalkeeper, WrittenRing
from .written_runs import evidence_on

ROOT = Path(__file__).parents[2]


def _finding(weight: Weight, certainty: Certainty, title: str = "It is so.") -> Finding:
    return Finding(
        check="stalled", weight=weight, certainty=certainty, title=title, evidence=("1 of 2.",),
        next_step="Do this.", link=section("stalled"),
    )  # fmt: skip


def test_the_worst_comes_first_and_the_surest_among_equals() -> None:
    some = [
        _finding("note", "certain"),
        _finding("problem", "possible"),
        _finding("warning", "certain"),
        _finding("problem", "certain"),
    ]
    order = [(one.weight, one.certainty) for one in by_weight(some)]
    assert order == [
        ("problem", "certain"),
        ("problem", "possible"),
        ("warning", "certain"),
        ("note", "certain"),
    ]
    assert worst(some) == "problem, certain: It is so (and 1 problem, 1 warning)"


def test_notes_alone_are_nothing_wrong() -> None:
    assert worst([_finding("note", "certain")]) == "" == worst([])


def test_a_check_that_fails_is_a_finding_and_the_others_go_on(tmp_path: Path) -> None:
    def broken(evidence: Evidence) -> Iterator[Finding]:
        if evidence.status.matches == 0:
            raise ZeroDivisionError("division by zero")
        yield _finding("problem", "certain")

    def works(evidence: Evidence) -> Iterator[Finding]:
        yield _finding("problem", "likely")

    evidence = evidence_on(WrittenRing(tmp_path / "run").folder)
    first, second = examine(evidence, checks=(broken, works))
    assert first.check == "stalled" and second.check == "check-failed"
    assert "broken" in second.title and second.evidence == ("ZeroDivisionError: division by zero",)


@pytest.mark.parametrize("width", [80, 60])
def test_findings_fit_the_width(tmp_path: Path, width: int) -> None:
    evidence = evidence_on(WrittenRing(tmp_path / "run").folder)
    title = "The policy does not learn: it wins as many matches as at the start, " * 3
    text = described(evidence, [_finding("problem", "likely", title)], width=width)
    lines = text.splitlines()[1:]  # the first one has a path, which is never cut
    assert lines and max(map(len, lines)) <= width
    for word in ("PROBLEM, likely", "- 1 of 2.", "Next: Do this.", "docs/doctor.md#stalled"):
        assert word in text


def test_the_end_of_a_session_says_that_the_doctor_could_not_look(tmp_path: Path) -> None:
    (line, *_) = closing_lines(tmp_path, width=80)
    assert line.startswith("Doctor          could not look at the run (RunFolderError")


def test_the_end_of_a_session_names_the_worst_finding(tmp_path: Path) -> None:
    run = WrittenRing(tmp_path / "run")
    assert closing_lines(run.folder.root, width=80) == []
    run.matches(100, won=0.1)
    run.batches(30, kl=40.0)
    text = " ".join(" ".join(closing_lines(run.folder.root, width=80)).split())
    assert text.startswith("Doctor problem, certain: One batch changes the policy")
    assert text.endswith(f"understudy doctor --run {run.folder.root}")


def test_a_damaged_version_fails_no_check(tmp_path: Path) -> None:
    bot = Goalkeeper(tmp_path / "run", learns=False)
    bot.play(40)
    bot.close()
    publish(bot.folder, 1)
    (bot.folder.versions.folder(1) / WEIGHTS).write_bytes(b"torn")
    evidence = evidence_on(bot.folder)
    assert evidence.policy is None
    assert all(one.check != "check-failed" for one in examine(evidence))


def test_every_check_has_a_section_in_the_docs_that_findings_link_to() -> None:
    text = (ROOT / "docs" / "doctor.md").read_text(encoding="utf-8")
    sections = set(re.findall(r"^### ([a-z-]+)$", text, re.MULTILINE))
    code = "".join(
        path.read_text(encoding="utf-8")
        for path in (ROOT / "src" / "understudy" / "doctor").rglob("*.py")
    )
    named = set(re.findall(r'(?:check=|section\(|_finding\()"([a-z-]+)"', code))
    assert named and named == sections
