"""The environments that peers live in: `.venv-bench`, and `.venv-bench-rllib` for RLlib, which pins
another Gymnasium. Built when absent."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
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
RLLIB = ("ray[rllib]==2.60.0", "torch==2.13.0", "gymnasium==1.2.2")


def python(name: str = ".venv-bench", packages: Sequence[str] = PEERS) -> Path:
    """The interpreter of an environment, with these peers and the edge of Understudy in it."""
    folder = "Scripts" if sys.platform == "win32" else "bin"
    venv = ROOT / name
    interpreter, stamp = venv / folder / "python", venv / ".peers"
    wanted = "\n".join(packages)
    if not (stamp.exists() and stamp.read_text(encoding="utf-8") == wanted):
        print(f"building {name} for the peers (once) ...", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        pip = [str(interpreter), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *packages], check=True)
        subprocess.run([*pip, "--no-deps", "--editable", str(ROOT)], check=True)
        stamp.write_text(wanted, encoding="utf-8")
    return interpreter


def rllib() -> Path:
    """The interpreter of RLlib."""
    return python(".venv-bench-rllib", RLLIB)
