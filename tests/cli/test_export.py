from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from .calling import understudy
from .runs_of_brawl import brawl_run

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
        (
            ("--as", "metric"),
            "--as: expected one of metrics, episodes, module, weights, ai2, ladder, ",
        ),
        (("--as", "module", "--format", "csv"), "--format: goes with --as metrics or episodes"),
        (("--as", "episodes", "--float16"), "--float16: goes with --as module or ai2 only"),
        (("--as", "module"), "expected a name that ends in .py"),
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


def test_a_module_is_judged_like_the_version_that_it_is(tmp_path: Path) -> None:
    run, out = brawl_run(tmp_path / "brawl-1"), tmp_path / "agent.py"
    called = understudy("export", f"{run}@1", "--as", "module", "-o", out)
    assert called.code == 0, called.err
    assert called.out.startswith(f"Agent   version 1 of {run.as_posix()}: Mlp, 1,139 parameters\n")
    assert f"understudy eval brawl --agent {out}" in " ".join(called.out.split())
    options = ("--opponents", "based", "--matches", 4, "--json")
    of_file = understudy("eval", "brawl", "--agent", out, *options).json
    of_run = understudy("eval", "brawl", "--agent", f"{run}@1", *options, "--engine", "numpy").json
    assert of_file["opponents"] == of_run["opponents"] and of_file["version"] == 1
    again = understudy("export", run, "--as", "module", "-o", out)
    assert again.code == 2 and "--force replaces it" in again.err
    told = understudy("export", run, "--as", "module", "-o", out, "--force", "--float16", "--json")
    assert told.json == {
        "what": "module", "run": run.as_posix(), "version": 2, "file": str(out),
        "bytes": out.stat().st_size,
    }  # fmt: skip
    refused = understudy("eval", "brawl", "--agent", out, *options, "--engine", "jax")
    assert refused.code == 2 and "plays with NumPy alone; use --engine numpy" in refused.err


def test_a_file_is_watched_against_a_run(tmp_path: Path) -> None:
    run, out = brawl_run(tmp_path / "brawl-1"), tmp_path / "agent.py"
    assert understudy("export", run, "--as", "module", "-o", out).code == 0
    told = [
        understudy("watch", "brawl", "--left", left, "--right", run, "--seed", 3, "--json").json
        for left in (out, run)
    ]
    assert told[0]["frames"] == told[1]["frames"] and told[0]["left"] == str(out)


def test_weights_as_models_export_writes_them(tmp_path: Path) -> None:
    run = brawl_run(tmp_path / "brawl-1")
    one, two = tmp_path / "one.npz", tmp_path / "two.npz"
    assert understudy("export", f"{run}@1", "--as", "weights", "-o", one).code == 0
    assert understudy("models", "export", 1, "--out", two, "--run", run).code == 0
    assert one.read_bytes() == two.read_bytes()


def test_the_use_that_is_shown_is_python(tmp_path: Path) -> None:
    run = brawl_run(tmp_path / "brawl-1")
    for name in ("agent", "my-agent", "class"):
        out = tmp_path / f"{name}.py"
        called = understudy("export", run, "--as", "module", "-o", out)
        (line,) = (one for one in called.out.splitlines() if one.startswith("Use "))
        code = line.removeprefix("Use").strip().replace("agent.act(features)", "print('made')")
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.stdout == "made\n", done.stderr


def test_an_exported_file_is_no_run(tmp_path: Path) -> None:
    out = tmp_path / "again.py"
    called = understudy("export", tmp_path / "agent.py", "--as", "module", "-o", out)
    assert called.code == 2 and "ends in .py" not in called.err


def test_a_name_does_not_command_the_terminal(tmp_path: Path) -> None:
    run = brawl_run(tmp_path / "red\x1b[31m")
    called = understudy("export", run, "--as", "module", "-o", tmp_path / "agent\x1b[31m.py")
    assert called.code == 0 and "\x1b" not in called.out
