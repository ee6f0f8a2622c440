"""The pictures of docs/dashboard.md: every page of the dashboard, from real runs.

    python benchmarks/dashboard_pictures.py RUN... [--out docs/pictures/dashboard] [--pages a,b]

Each page is taken from the first of the runs that offers it (a replay from the last), at 1440 and
390 pixels, dark and light, by a Chromium without a window (chromium-headless-shell of Debian).
"""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from PIL import Image

if TYPE_CHECKING:
    from playwright.sync_api import Page
    from run.dashboards import Standing

ROOT = Path(__file__).parent.parent
COLOURS, ROUNDS = 256, 12
WIDTHS, TALLEST = (1440, 390), 2600
"""Pixels; what is below is cut off."""
SETTLED_MS = 2_500
SHOWN_FIRST = 1_000
"""Pixels of the overview that the README shows."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "pictures" / "dashboard")
    parser.add_argument("--pages", help="only these, comma separated")
    given = parser.parse_args()
    sys.path.insert(0, str(ROOT / "tests"))
    from browser import launched
    from run.dashboards import standing

    given.out.mkdir(parents=True, exist_ok=True)
    wanted = None if given.pages is None else set(given.pages.split(","))
    with standing(*given.runs) as board, launched() as browser:
        for name, path in pages(board, given.runs).items():
            if wanted is not None and name not in wanted:
                continue
            for width in WIDTHS:
                for theme in ("light", "dark"):
                    context = browser.new_context(
                        viewport={"width": width, "height": 900},
                        color_scheme=theme,
                    )
                    page = context.new_page()
                    page.goto(f"{board.url}{path}")
                    if "?match=" in path:
                        show_middle(page)
                    page.wait_for_timeout(SETTLED_MS)
                    page.screenshot(path=given.out / "taken.png", full_page=True)
                    context.close()
                    target = given.out / f"{name}-{width}-{theme}.png"
                    target.write_bytes(small((given.out / "taken.png").read_bytes()))
                    print(f"{target.name}: {target.stat().st_size // 1024} kB")
    (given.out / "taken.png").unlink(missing_ok=True)
    if wanted is None or "overview" in wanted:
        first = (given.out / "overview-1440-light.png").read_bytes()
        (given.out / "overview.png").write_bytes(small(first, tallest=SHOWN_FIRST))


def show_middle(page: Page) -> None:
    """Wait until a replay is loaded, and go to the middle of the match."""
    page.locator(".replay-loaded[hidden]").wait_for(state="attached", timeout=120_000)
    slider = page.get_by_role("slider", name="Position in the match")
    slider.fill(str(int(slider.get_attribute("max") or 0) // 2))


def pages(board: Standing, runs: list[Path]) -> dict[str, str]:
    """Addresses by name, each of the first run that offers the page."""
    chosen = "&".join(f"run={quote(one.name)}" for one in runs[:3])
    found = {"runs": "/", "compare": f"/compare?{chosen}"}
    for run in runs:
        base = f"/runs/{quote(run.name, safe='')}"
        _, _, text = board.ask(base)
        found.setdefault("overview", base)
        for piece in text.split(f'href="{base}/')[1:]:
            found.setdefault(piece.partition('"')[0], f"{base}/{piece.partition(chr(34))[0]}")
    for run in reversed(runs):
        base = f"/runs/{quote(run.name, safe='')}/replay"
        _, _, text = board.ask(base)
        if "?match=" in text:
            found["replay"] = f"{base}?match={text.split('?match=')[1].partition(chr(34))[0]}"
            break
    return found


def small(png: bytes, *, tallest: int = TALLEST) -> bytes:
    """Few colours are enough for a page without photographs."""
    with Image.open(io.BytesIO(png)) as image:
        cut = image.convert("RGB").crop((0, 0, image.width, min(image.height, tallest)))
        out = io.BytesIO()
        # Coverage keeps the few pixels of each line's colour, k-means the shades of the rest.
        few = cut.quantize(
            COLOURS, Image.Quantize.MAXCOVERAGE, kmeans=ROUNDS, dither=Image.Dither.NONE
        )
        few.save(out, "PNG", optimize=True)
    return out.getvalue()


if __name__ == "__main__":
    main()
