from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from .calling import understudy

COMPAT = sorted((Path(__file__).parent.parent / "compat" / "runs").glob("*/*.zip"))


def test_metrics_of_a_played_run(played: Path, tmp_path: Path) -> None:
    called = understudy("export", played, "--as", "metrics", "-o", tmp_path / "out")
    assert called.code == 0, called.err
    assert f"Written to {tmp_path / 'out'}" in called.out
    lines = (tmp_path / "out" / "matches.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 7 and lines[0].startswith("at,by,id,outcome,decisions,reward")


def test_episodes_as_parquet_and_a_summary(played: Path, tmp_path: Path) -> None:
    options = ("--as", "episodes", "--format", "parquet", "-o", tmp_path, "--json")
    told = understudy("export", played, *options).json
    assert told["tables"]["episodes"]["rows"] == 6 and told["unreadable"] == 0
    assert told["tables"]["decisions"]["files"] == ["decisions-00001.parquet"]
    assert told["tables"]["decisions"]["columns"]["reward"] == "float32"
    again = understudy("export", played, *options)
    assert again.code == 2 and "--force" in again.err
    assert understudy("export", played, *options, "--force").code == 0


def test_exporting_changes_nothing(played: Path, tmp_path: Path) -> None:
    def everything() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in played.rglob("*") if path.is_file()}

    before = everything()
    for what in ("metrics", "episodes"):
        assert understudy("export", played, "--as", what, "-o", tmp_path).code == 0
    assert everything() == before


@pytest.mark.parametrize("path", COMPAT, ids=lambda path: path.stem)
def test_earlier_runs_are_exported(path: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path)
    run = tmp_path / "run"
    if not run.is_dir():
        pytest.skip("settings alone, no run")
    told = understudy("export", run, "--as", "metrics", "-o", tmp_path / "m", "--json").json
    assert sum(table["rows"] for table in told["tables"].values()) > 0
    called = understudy("export", run, "--as", "episodes", "-o", tmp_path / "e", "--json")
    if any(run.glob("*/*.npz")) and not (run / "league").is_dir():
        assert called.json["tables"]["decisions"]["rows"] > 0
    else:
        assert called.code == 2 and "has no episodes on disk" in called.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--as", "metric"), "--as: expected metrics or episodes, got 'metric'. "),
        (("--format", "xlsx"), "--format: expected csv or parquet, got 'xlsx'."),
    ],
)
def test_unknown_values(played: Path, tmp_path: Path, options: tuple[str, ...], words: str) -> None:
    called = understudy("export", played, *options, "-o", tmp_path)
    assert called.code == 2 and words in called.err


_WITHOUT = """
import sys
sys.modules["pyarrow"] = None
sys.argv = ["understudy", *sys.argv[1:]]
from understudy.__main__ import main
main()
"""


def test_without_pyarrow_it_says_how_to_install_it(played: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT, "export", played, "--format", "parquet", "-o", tmp_path],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == (
        'understudy: --format parquet needs pyarrow: pip install ".[parquet]" in your clone\n'
    )
