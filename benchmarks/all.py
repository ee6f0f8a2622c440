"""Every benchmark, one after the other: what `make bench` runs.

python benchmarks/all.py
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPTS = (
    ("import_time.py",),
    ("decision_latency.py",),
    ("export_agents.py",),
    ("publish_latency.py",),
    ("relay_speed.py",),
    ("promotion_gate.py",),
    ("assignment.py",),
    ("replay.py",),
    ("game_throughput.py",),
    ("train_throughput.py", "--games", "64", "--iterations", "6"),
    ("reward_sets.py",),
    ("host_league.py",),
    ("ray_workers.py",),
    ("rllib_peer.py",),
    ("league_overhead.py",),
    ("devices.py",),
    ("scale_constants.py",),
    ("scale_model.py",),
    ("monitoring_overhead.py",),
    ("monitor_cost.py",),
    ("dashboard_cost.py",),
    ("year_of_play.py",),
    ("sc2_speed.py",),
    ("serve_load.py",),
    ("serve_flood.py",),
    ("serve_learning.py",),
    ("serve_versions.py",),
    ("serve_day.py",),
    ("serve_promotion.py",),
    ("serve_takeover.py",),
    ("own_game.py",),
    ("strength.py", "swarm"),
    ("strength.py", "brawl"),
    ("territory_learning.py",),
    ("sc2_learning.py",),
    ("tournament_stand_in.py",),
    ("slow_game.py",),
    ("healthy_runs.py",),
    ("slow_takeover.py",),
    ("slow_takeover.py", "--score"),
    ("takeover.py",),
    ("takeover.py", "--evidence", "simulator"),
    ("stability.py",),
    ("equal_time.py", "--minutes", "20", "--config", "curriculum"),
)


def main() -> None:
    failed = []
    for index, (script, *arguments) in enumerate(SCRIPTS):
        name = " ".join([script, *arguments])
        print(f"\n== {name} ({index + 1} of {len(SCRIPTS)})", flush=True)
        command = [sys.executable, str(Path(__file__).with_name(script)), *arguments]
        if subprocess.run(command, check=False).returncode:
            failed.append(name)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
