"""The environment that peers live in: `.venv-bench`, built when absent."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
VENV = ROOT / ".venv-bench"
PEERS = (
    "torch==2.13.0",
    "numpy==2.4.6",
    "msgspec==0.22.0",
    "stable-baselines3==2.9.2",
    "sb3-contrib==2.9.2",
    "gymnasium==1.4.0",
    "torchrl==0.14.1",
    "tensordict==0.14.3",
)
_STAMP = VENV / ".peers"


def python() -> Path:
    """The interpreter of `.venv-bench`, with the peers and the edge of Understudy in it."""
    folder = "Scripts" if sys.platform == "win32" else "bin"
    interpreter = VENV / folder / "python"
    wanted = "\n".join(PEERS)
    if not (_STAMP.exists() and _STAMP.read_text(encoding="utf-8") == wanted):
        print("building .venv-bench for the peers (once) ...", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
        pip = [str(interpreter), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *PEERS], check=True)
        subprocess.run([*pip, "--no-deps", "--editable", str(ROOT)], check=True)
        _STAMP.write_text(wanted, encoding="utf-8")
    return interpreter
