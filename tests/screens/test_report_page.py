"""The report: nothing from outside becomes HTML, and charts tell the truth."""

from __future__ import annotations

import dataclasses
import html.parser
import unicodedata
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from telemetry.test_trends import documented_trends

from understudy.core.clock import SystemClock
from understudy.doctor.evidence import gather
from understudy.doctor.findings import Finding
from understudy.gates.promotion.state import PromotionState, PromotionVerdict
from understudy.promotion.history import PromotionHistory
from understudy.registry.run_folder import RunFolder
from understudy.run.view import read_view
from understudy.screens.html.elements import document, picture, tag
from understudy.screens.html.line_chart import ChartLine, PlayTime, line_chart, rolling
from understudy.screens.report.facts import (
    ChangedSetting,
    ReportFacts,
    changed_settings,
    read_facts,
)
from understudy.screens.report.page import report_page
from understudy.screens.report.summary import how_it_goes, key_figures
from understudy.telemetry.events import Evaluated
from understudy.telemetry.played import PlayedRecord
from understudy.telemetry.promotion_status import (
    ArmResult,
    PromotionStatus,
    TrialStatus,
    VerdictNote,
)
from understudy.telemetry.status import Trouble, WinRecord
from understudy.telemetry.trends import Trend

COMPAT = sorted((Path(__file__).parent.parent / "compat" / "runs").glob("*/*.zip"))
HOSTILE = "</p><script>alert('x')</script>\" onload=\"'&\u202e\u2066\x00\x1b[2J\ud800<!--"
HARMLESS = "x" * len(HOSTILE)
ALLOWED = {
    "html", "head", "meta", "title", "style", "body", "header", "main", "footer", "nav", "section",
    "article", "h1", "h2", "h3", "p", "ul", "li", "a", "div", "span", "strong", "code", "dl", "dt",
    "dd", "table", "thead", "tbody", "tr", "th", "td", "figure", "figcaption", "img", "svg", "path",
    "line", "text",
}  # fmt: skip


class Outline(html.parser.HTMLParser):
    """The tags of a page with their attributes' names, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.text: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, name: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((name, tuple(key for key, _ in attrs)))
        self.attributes += [(key, value or "") for key, value in attrs]
        if name not in ("meta", "img"):
            self.open.append(name)

    def handle_endtag(self, name: str) -> None:
        assert self.open.pop() == name

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Every run folder that earlier programs wrote, by its kind."""
    runs = {}
    for path in COMPAT:
        here = tmp_path_factory.mktemp(path.stem)
        with zipfile.ZipFile(path) as archive:
            archive.extractall(here)
        if (here / "run").is_dir():
            runs[path.stem] = here / "run"
    return runs


def facts_of(run: Path) -> ReportFacts:
    folder = RunFolder.load(run, SystemClock())
    view = read_view(folder)
    return read_facts(folder, view, (), kind=gather(folder, view).kind)


# --- nothing from outside becomes HTML -----------------------------------------------------------


def filled(facts: ReportFacts, text: str) -> ReportFacts:
    """The facts with a text in every field that may hold words from outside."""
    arm = ArmResult(version=1, stratum=f"opponent={text}", matches=3, mean=0.5)
    trial = TrialStatus(
        number=1, recheck=False, since=0.0, version=1, against=0, canary=arm, incumbent=arm,
        better=1.0, better_enough=20.0, worse=1.0, worse_enough=4.0, share=0.5, short=10,
        hopeless=0.1, long=20, promising=None, longest=30,
    )  # fmt: skip
    promotion = PromotionStatus(
        incumbent=0, why=text, line=text, tests=(trial,), results=(arm,), waits=text, never=text,
        verdicts=(VerdictNote(number=1, at=0.0, version=1, kind=text, words=text),),
    )  # fmt: skip
    status = msgspec.structs.replace(
        facts.status,
        run=text,
        mode=text,
        stage=text,
        last_note=text,
        last_snapshot=text,
        promotion=promotion,
        problems=(Trouble(t=0.0, where=text, message=text),),
        played=(
            PlayedRecord(player=text, version=1, mode=text, wins=6),
            PlayedRecord(player=text, version=1, mode=text, tag=f"{text}={text}", wins=5),
        ),
        opponents={name + text: one for name, one in facts.status.opponents.items()},
        constant_features=(text,),
        last_evaluation=Evaluated(version=1, matches=1, wins=1, draws=0, losses=0, opponent=text),
    )
    if status.version_rewards is not None:
        rewards = msgspec.structs.replace(status.version_rewards, fixed_action=text)
        status = msgspec.structs.replace(status, version_rewards=rewards)
    if status.last_benchmark is not None:
        met = {name + text: one for name, one in status.last_benchmark.opponents.items()}
        judged = msgspec.structs.replace(status.last_benchmark, opponents=met)
        status = msgspec.structs.replace(status, last_benchmark=judged)
    trend = Trend()
    for t in range(40):
        trend.add(float(t), t % 2, version=0)
    trends = {**facts.trends, f"benchmark.{text}": trend, f"win_rate.{text}": trend}
    finding = Finding(
        check=text, weight="problem", certainty="likely", title=text, evidence=(text, text),
        next_step=text, link=text,
    )  # fmt: skip
    rows = tuple(row._replace(roles=(text,), kept=(text,)) for row in facts.versions)
    verdict = PromotionVerdict(1, 1, text, text)  # type: ignore[arg-type]
    league: Any = facts.league and msgspec.structs.replace(
        facts.league,
        anchors={name + text: one for name, one in facts.league.anchors.items()},
        ratings={name + text: one for name, one in facts.league.ratings.items()},
    )
    return dataclasses.replace(
        facts,
        name=text,
        identity=msgspec.structs.replace(facts.identity, game=text),
        view=msgspec.structs.replace(facts.view, status=status, trends=trends),
        findings=(finding,),
        settings=(ChangedSetting(text, text, text, text),),
        versions=rows,
        machine=((text, text),),
        unread=(text,),
        promotion=PromotionHistory(PromotionState(), (verdict,), (), (), {}),
        league=league,
        history=None,
    )


@pytest.mark.parametrize("kind", ["ring", "arena", "served", "population", "host"])
def test_hostile_names_never_become_html(unpacked: dict[str, Path], kind: str) -> None:
    facts = facts_of(unpacked[kind])
    hostile = report_page(filled(facts, HOSTILE))
    page, harmless = Outline(hostile), Outline(report_page(filled(facts, HARMLESS)))
    assert page.tags == harmless.tags
    assert not page.open
    assert {name for name, _ in page.tags} <= ALLOWED
    assert not [key for key, _ in page.attributes if key.startswith("on")]
    assert {value for key, value in page.attributes if key == "href"} <= {
        f"#{value}" for key, value in page.attributes if key == "id"
    }
    hidden = {char for char in hostile if unicodedata.category(char) in {"Cc", "Cf", "Cs"}}
    assert hidden <= {"\n"}
    shown = "".join(page.text)
    assert shown.count("<script>") > 15, "the names are shown, as text"
    assert r"\u202e" in shown and r"\x00" in shown


def test_attributes_are_escaped() -> None:
    made = str(tag("p", "a < b & c", title="\"'><i>"))
    assert made == '<p title="&quot;&#x27;&gt;&lt;i&gt;">a &lt; b &amp; c</p>'
    parsed = Outline(made)
    assert parsed.tags == [("p", ("title",))]
    assert parsed.attributes == [("title", "\"'><i>")]


def test_nothing_is_loaded_and_nothing_runs(unpacked: dict[str, Path]) -> None:
    page = Outline(report_page(facts_of(unpacked["arena"])))
    assert not {name for name, _ in page.tags} & {"script", "link", "iframe", "object"}
    sources = [value for key, value in page.attributes if key == "src"]
    assert sources and all(one.startswith("data:image/png;base64,") for one in sources)
    policy = [value for key, value in page.attributes if "default-src" in value]
    assert policy == ["default-src 'none'; img-src data:; style-src 'unsafe-inline'"]


# --- every kind of run ---------------------------------------------------------------------------


@pytest.mark.parametrize("path", COMPAT, ids=lambda path: path.stem)
def test_earlier_runs_have_a_report(path: Path, unpacked: dict[str, Path]) -> None:
    if path.stem not in unpacked:
        pytest.skip("settings alone, no run")
    text = report_page(facts_of(unpacked[path.stem]))
    page = Outline(text)
    assert not page.open and len(text) < 3_000_000
    headings = [name for name, _ in page.tags if name in ("h1", "h2", "h3")]
    assert headings[0] == "h1" and headings.count("h1") == 1
    pictures = [keys for name, keys in page.tags if name == "img"]
    assert all("alt" in keys for keys in pictures)
    charts = [keys for name, keys in page.tags if name == "svg"]
    assert all({"role", "aria-label"} <= set(keys) for keys in charts)
    tables = [keys for name, keys in page.tags if name == "table"]
    assert tables and all("aria-label" in keys for keys in tables)


def test_every_table_and_chart_is_explained(unpacked: dict[str, Path]) -> None:
    for kind in ("ring", "arena", "served"):
        tags = Outline(report_page(facts_of(unpacked[kind]))).tags
        names = [name for name, _ in tags]
        for at, name in enumerate(names):
            if name == "table":
                assert names[at - 2 : at] == ["p", "div"], kind
            if name == "svg":
                assert names[at - 2 : at] == ["h3", "figcaption"], kind


def with_status(facts: ReportFacts, **changes: Any) -> ReportFacts:
    status = msgspec.structs.replace(facts.status, **changes)
    return dataclasses.replace(facts, view=msgspec.structs.replace(facts.view, status=status))


@pytest.mark.parametrize(
    ("mode", "version", "words"),
    [
        ("learn", 0, "(mode learn): the untrained policy plays."),
        ("learn", 4, "(mode learn): version 4 of the policy plays."),
        ("shadow", 0, "(mode shadow): the rules play, the untrained policy is measured."),
        ("shadow", 4, "(mode shadow): the rules play, version 4 of the policy is measured."),
    ],
)
def test_who_plays(unpacked: dict[str, Path], mode: str, version: int, words: str) -> None:
    facts = with_status(facts_of(unpacked["ring"]), mode=mode, playing=version, promotion=None)
    assert words in " ".join(Outline(report_page(facts)).text)


@pytest.mark.parametrize(
    ("matches", "late", "fifths"),
    [
        (20, "20 matches of learned versions", False),
        (49, "the last 30 matches of learned versions", False),
        (50, "the last 30 matches of learned versions", True),
        (400, "the last 80 matches of learned versions", True),
    ],
)
def test_no_figure_is_of_a_few_matches(
    unpacked: dict[str, Path], matches: int, late: str, fifths: bool
) -> None:
    won = trend_of(*((float(t), 1.0) for t in range(matches)))
    played = with_status(
        facts_of(unpacked["ring"]), matches=matches, wins=matches, defeats=0, ties=0,
        rules_matches=0, rules_wins=0, win_rate_first=1.0, win_rate_last=1.0, reward=None,
    )  # fmt: skip
    met = {"based": WinRecord(matches, 0, 0)}
    trained = with_status(facts_of(unpacked["arena"]), opponents=met, reward=None)
    for facts in (played, trained):
        view = msgspec.structs.replace(facts.view, trends={"win_rate": won})
        told = dataclasses.replace(facts, view=view)
        assert ("Win rate", "100%", late) in key_figures(told.view, told.kind)
        assert ("last fifth" in how_it_goes(told)) == fifths
        assert "won 100% of" in how_it_goes(told)


def test_a_tag_of_a_few_matches_has_no_row(unpacked: dict[str, Path]) -> None:
    def of(tag: str, wins: int) -> PlayedRecord:
        return PlayedRecord(player="version 1", version=1, mode="learn", tag=tag, wins=wins)

    played = (of("", 9), of("map=often", 5), of("map=rare", 4))
    text = Outline(report_page(with_status(facts_of(unpacked["ring"]), played=played))).text
    assert "map=often" in text and "map=rare" not in text


# --- charts --------------------------------------------------------------------------------------


class AskedTrends(dict[str, Trend]):
    """No trends, and which were asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: set[str] = set()

    def __contains__(self, name: object) -> bool:
        self.asked.add(str(name))
        return False


def test_charts_are_of_trends_that_there_are(unpacked: dict[str, Path]) -> None:
    trends = AskedTrends()
    for kind in ("ring", "arena", "served"):
        facts = facts_of(unpacked[kind])
        view = msgspec.structs.replace(facts.view, trends=trends)
        report_page(dataclasses.replace(facts, view=view))
    assert {"win_rate", "loss", "utilisation"} <= trends.asked <= documented_trends()


def trend_of(*points: tuple[float, float]) -> Trend:
    trend = Trend()
    for t, value in points:
        trend.add(t, value, version=0)
    return trend


def test_a_moving_average_is_the_mean_of_the_last_values() -> None:
    trend = trend_of(*((float(t), float(t * t % 7)) for t in range(30)))
    values = trend.means()
    slow = [sum(values[max(0, i - 4) : i + 1]) / min(i + 1, 5) for i in range(30)]
    assert rolling(trend, over=5.0) == pytest.approx(slow)
    assert rolling(trend, over=0.0) == values


def test_pauses_are_cut_out_of_the_time_of_play() -> None:
    first = [(float(t), 1.0) for t in range(0, 600, 10)]
    after = [(100_000.0 + t, 1.0) for t in range(0, 300, 10)]
    time = PlayTime({"x": trend_of(*first, *after)})
    assert time.seconds == pytest.approx(590.0 + 290.0)
    assert time.pauses == [590.0]
    assert time.at(300.0) == 300.0 and time.at(100_100.0) == 690.0


def test_a_chart_says_where_its_lines_begin_and_end() -> None:
    losing = [(float(t), 0.0) for t in range(100)]
    winning = [(100.0 + t, 1.0) for t in range(100)]
    trend = trend_of(*losing, *winning)
    made = line_chart(
        [ChartLine("the policy", trend)], PlayTime({"x": trend}), title="Win rate", explains="How.",
        unit="win rate",
    )  # fmt: skip
    assert made is not None
    labels = [value for key, value in Outline(str(made)).attributes if key == "aria-label"]
    assert labels == ["Line chart. Win rate: the policy from 0% to 100%."]


@pytest.mark.parametrize(
    "values", [(0.0, 0.0), (5.0, 5.0), (-1e-9, 1e9), (1e-12, 1e-3), (1e99, 1.0), (1e-300, 1e-299)]
)
def test_any_values_can_be_drawn(values: tuple[float, float]) -> None:
    trend = trend_of(*enumerate(values))
    made = line_chart([ChartLine("one", trend)], PlayTime({"x": trend}), title="t", explains="e")
    assert made is not None and "nan" not in str(made) and "inf" not in str(made)


def test_one_value_makes_no_chart() -> None:
    trend = trend_of((1.0, 2.0))
    time = PlayTime({"x": trend})
    assert line_chart([ChartLine("one", trend)], time, title="t", explains="e") is None


# --- parts ---------------------------------------------------------------------------------------


def test_only_changed_settings_are_listed() -> None:
    from understudy.core.config import Config, with_values

    assert not list(changed_settings(Config()))
    changed = list(changed_settings(with_values(Config(), {"learner.gamma": 0.5})))
    assert [(one.key, one.value) for one in changed] == [("learner.gamma", "0.5")]
    assert changed[0].words
    easy = {"name": "easy", "opponents": "random", "measure": "win_rate:random", "threshold": 0.5}
    stages = [easy, {"name": "hard", "opponents": "based"}]
    (told,) = changed_settings(with_values(Config(), {"curriculum.stages": stages}))
    assert told.value == "2: easy, hard", "sections in a list by their names"


def test_a_picture_is_inside_the_page() -> None:
    page = document(
        title="t", policy="default-src 'none'", style="p{}", body=[picture(b"\x89PNG", alt="a <b>")]
    )
    assert 'src="data:image/png;base64,iVBORw=="' in page
    assert 'alt="a &lt;b&gt;"' in page
