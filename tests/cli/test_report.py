from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from screens.test_report_page import Outline

from understudy.core.clock import SystemClock
from understudy.core.spaces import Discrete
from understudy.policy.mlp import Mlp
from understudy.policy.spec import PolicySpec
from understudy.registry.run_folder import RunFolder

from .calling import understudy


def test_a_run_becomes_one_file(played: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    called = understudy("report", "--run", played, "-o", out)
    assert called.code == 0, called.err
    assert called.out.startswith(f"{out}: ") and "finding" in called.out
    page = Outline(out.read_text(encoding="utf-8"))
    text = " ".join(page.text)
    assert "It has played 6 matches." in text
    assert "The learner has published 3 versions" in text
    assert {"svg", "table", "h2"} <= {name for name, _ in page.tags}


def test_as_json(played: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    told = understudy("report", "--run", played, "-o", out, "--json").json
    assert told["file"] == str(out) and told["bytes"] == out.stat().st_size
    assert isinstance(told["findings"], int)


def test_a_run_without_data(tmp_path: Path) -> None:
    spec = PolicySpec(("a",), Discrete(("x", "y")), Mlp((4,)))
    RunFolder.open(tmp_path / "run", spec=spec, config=None, clock=SystemClock())
    out = tmp_path / "report.html"
    assert understudy("report", "--run", tmp_path / "run", "-o", out).code == 0
    text = " ".join(Outline(out.read_text(encoding="utf-8")).text)
    assert "Nothing has been played or trained yet" in text
    assert "Every setting is at its default." in text


@pytest.mark.parametrize(
    ("out", "words"),
    [
        ("report.pdf", "expected a name that ends in .html"),
        ("missing/report.html", "there is no folder 'missing'"),
    ],
)
def test_where_it_cannot_be_written(
    played: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    called = understudy("report", "--run", played, "-o", out)
    assert called.code == 2 and words in called.err


_WITHOUT = """
import sys
sys.modules["matplotlib"] = None
sys.argv = ["understudy", *sys.argv[1:]]
from understudy.__main__ import main
main()
"""


def test_without_matplotlib_it_says_what_is_missing(tmp_path: Path) -> None:
    import zipfile

    fixture = next(Path(__file__).parent.parent.glob("compat/runs/*/arena.zip"))
    with zipfile.ZipFile(fixture) as archive:
        archive.extractall(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT, "report", "--run", "run", "-o", "report.html"],
        capture_output=True, text=True, check=False, timeout=60, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    page = Outline((tmp_path / "report.html").read_text(encoding="utf-8"))
    names = {name for name, _ in page.tags}
    assert "img" not in names and "svg" in names
    assert 'pip install ".[plots]" in your clone' in " ".join(page.text)
