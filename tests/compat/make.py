"""Makes the run folders of a commit that later commits must still open.

    python tests/compat/make.py --commit de4ea70

exports the commit, builds its wheel, installs it with that commit's constraints in a fresh
environment and lets the installed program write one run folder of each kind (`write_runs.py`).
Each becomes a zip in `runs/COMMIT/`, which `test_compat.py` finds there. Nothing of this machine
may be in them: a path of it ends this with an error, and so do more than 8 MB for all commits.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from io import BytesIO
from pathlib import Path

_HERE = Path(__file__).resolve().parent
_RUNS = _HERE / "runs"
_MOST_BYTES = 8 * 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--commit", required=True, help="The commit whose program writes the runs.")
    parser.add_argument("--out", type=Path, help="Where to put them (default: runs/COMMIT).")
    parser.add_argument("names", nargs="*", help="Which runs to write (default: all).")
    asked = parser.parse_args()
    commit = _output("git", "rev-parse", "--short=7", f"{asked.commit}^{{commit}}").strip()
    out: Path = asked.out or _RUNS / commit
    with tempfile.TemporaryDirectory(prefix="understudy-") as name:
        folder = Path(name)
        source, written = folder / "source", folder / "written"
        _export(commit, source)
        python = _install(source, folder)
        written.mkdir()
        _write(python, source, written, asked.names)
        out.mkdir(parents=True, exist_ok=True)
        for one in sorted(written.iterdir()):
            _check(one, folder)
            _pack(one, out / f"{one.name}.zip")
    _report(out)


def _export(commit: str, source: Path) -> None:
    """The tracked files of a commit, and nothing that lies beside them."""
    data = subprocess.run(
        ["git", "archive", "--format=tar", commit], cwd=_HERE.parents[1], check=True,
        capture_output=True,
    ).stdout  # fmt: skip
    with tarfile.open(fileobj=BytesIO(data)) as archive:
        archive.extractall(source, filter="data")


def _install(source: Path, folder: Path) -> Path:
    """The Python of a fresh environment that has the commit's wheel."""
    venv.create(folder / "env", with_pip=True)
    python = folder / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
    pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    wheels = folder / "wheels"
    _run(*pip, "wheel", "--no-deps", "--wheel-dir", str(wheels), str(source))
    (wheel,) = wheels.glob("*.whl")
    constraints = str(source / "constraints.txt")
    _run(*pip, "install", "--constraint", constraints, f"{wheel}[all]")
    return python


def _write(python: Path, source: Path, written: Path, names: list[str]) -> None:
    schema = source / "docs" / "examples" / "my_game.toml"
    environment = os.environ | {
        "PYTHONPATH": str(_HERE.parent),  # in place of the caller's, which may name other sources
        "JAX_COMPILATION_CACHE_DIR": str(written.parent / "xla"),
    }
    line = [str(python), "-m", "compat.write_runs", str(schema), *names]
    subprocess.run(line, cwd=written, env=environment, check=True)


def _check(run: Path, folder: Path) -> None:
    """No file holds a path of this machine or the address of a package index."""
    private = [str(folder), str(Path.home()), str(_HERE.parents[1]), "http://", "https://"]
    for path in (one for one in run.rglob("*") if one.is_file()):
        data = path.read_bytes()
        for text in private:
            if text.encode() in data:
                raise SystemExit(f"{path.relative_to(folder)} holds {text}")


def _pack(run: Path, target: Path) -> None:
    """Files and empty folders, in the order of their names."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in sorted(run.rglob("*")):
            archive.write(path, path.relative_to(run))


def _report(out: Path) -> None:
    for path in sorted(out.glob("*.zip")):
        print(f"{path.stat().st_size:>9,}  {path}")
    total = sum(path.stat().st_size for path in _RUNS.rglob("*.zip"))
    print(f"{total:>9,}  bytes in all under {_RUNS}")
    if total > _MOST_BYTES:
        raise SystemExit(f"expected at most {_MOST_BYTES:,} bytes")


def _output(*line: str) -> str:
    return subprocess.run(
        line, cwd=_HERE.parents[1], check=True, capture_output=True, text=True
    ).stdout


def _run(*line: str) -> None:
    done = subprocess.run(line, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(line)}: exit code {done.returncode}")


if __name__ == "__main__":
    main()
