"""Every benchmark, one after the other: what `make bench` runs.

python benchmarks/all.py
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPTS = ("import_time.py", "decision_latency.py", "publish_latency.py", "strength.py")


def main() -> None:
    failed = []
    for index, script in enumerate(SCRIPTS):
        print(f"\n== {script} ({index + 1} of {len(SCRIPTS)})", flush=True)
        if subprocess.run(
            [sys.executable, str(Path(__file__).with_name(script))], check=False
        ).returncode:
            failed.append(script)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
