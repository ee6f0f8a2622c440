"""From nothing to strength, on frozen matches, over five seeds that nothing was tuned on.

python benchmarks/strength.py brawl [--minutes 15] [--json]     # strength_brawl.py
python benchmarks/strength.py swarm [--minutes 3] [--json]      # strength_swarm.py
"""

from __future__ import annotations

import sys

import strength_brawl
import strength_swarm

GAMES = {"brawl": strength_brawl.main, "swarm": strength_swarm.main}


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] not in GAMES:
        sys.exit(f"usage: strength.py {'|'.join(GAMES)} [--help]")
    GAMES[sys.argv.pop(1)]()


if __name__ == "__main__":
    main()
