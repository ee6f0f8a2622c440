"""What the strength benchmark of brawl asks for, and that JAX is not loaded before its cache."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parent.parent.parent / "benchmarks"
_ASKED = """
import json, sys
sys.path.insert(0, sys.argv[1])
import strength, strength_brawl
rates = {"constant": 0.995, "random": 0.96, "based": 0.92, "aggressive": 0.7, "defensive": 0.9,
         "kiting": 0.9, "clockwork": 0.9}
seed = {"frozen": {name: {"win_rate": rate} for name, rate in rates.items()}}
missed = [strength_brawl.missed(seed, preset) for preset in ("small", "medium", "seed")]
print(json.dumps({"missed": missed, "jax": "jax" in sys.modules}))
"""


def test_goals_are_those_of_the_preset_and_jax_waits_for_its_cache() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _ASKED, str(BENCHMARKS)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["missed"] == [[], [], ["random", "based", "aggressive"]]
    assert not said["jax"]


def test_a_budget_is_of_time_or_of_steps() -> None:
    both = ("--minutes", "1", "--steps", "1M")
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / "strength.py"), "brawl", *both],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2 and "not allowed with argument" in done.stderr
