"""Scenes as pictures: one frame, an animated GIF, a sheet of the main moments. Needs Pillow.

Pictures are drawn twice as large as they are shown and reduced to a few dozen colours: smooth
edges, small files. A GIF is written frame by frame, and of each frame only what changed. Pillow's
own writer keeps all frames until the end, half a gigabyte for a match of ninety seconds;
`Animation` keeps the last frame and the bytes so far.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.core import files
from understudy.core.dependencies import needs
from understudy.core.errors import ConfigError
from understudy.games.brawl.drawing.scene import (
    HIGH,
    LOW,
    STOCKS,
    WIDE,
    Box,
    Disc,
    Paint,
    Scene,
    Shape,
)
from understudy.games.brawl.drawing.scene import STAGE as _STAGE
from understudy.telemetry.text import plain

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw


TRANSPARENT = 63
"""The number of the colour that stands for "as before": pages may use those below it."""


class Animation:
    """Pages in mode P that share one palette of at most `TRANSPARENT` colours; loops for ever."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._before: np.ndarray[tuple[int, ...], np.dtype[np.uint8]] | None = None

    def add(self, page: Image, *, duration_ms: int) -> None:
        """The next page, and how long it is shown."""
        pixels = np.asarray(page, np.uint8)
        if self._before is None:
            self._parts.append(_opening(page, duration_ms))
        else:
            self._parts += _difference(self._before, pixels, duration_ms)
        self._before = pixels

    def finished(self) -> bytes:
        """The file."""
        return b"".join([*self._parts, b";"])


def _opening(page: Image, duration_ms: int) -> bytes:
    """Header, palette and the first page, without the mark of the end."""
    colours = page.getpalette() or []
    page.putpalette((colours + 3 * (TRANSPARENT + 1) * [0])[: 3 * (TRANSPARENT + 1)])
    buffer = io.BytesIO()
    page.save(buffer, format="GIF", loop=0, duration=duration_ms, optimize=False)
    return buffer.getvalue()[:-1]


def _difference(
    before: np.ndarray[tuple[int, ...], np.dtype[np.uint8]],
    now: np.ndarray[tuple[int, ...], np.dtype[np.uint8]],
    duration_ms: int,
) -> list[bytes]:
    """What changed, as a smaller page at its place; one pixel where nothing did."""
    from PIL import GifImagePlugin, Image

    changed = before != now
    rows, columns = np.flatnonzero(changed.any(1)), np.flatnonzero(changed.any(0))
    top, bottom = (int(rows[0]), int(rows[-1])) if len(rows) else (0, 0)
    left, right = (int(columns[0]), int(columns[-1])) if len(columns) else (0, 0)
    cut = (slice(top, bottom + 1), slice(left, right + 1))
    page = Image.fromarray(np.where(changed[cut], now[cut], np.uint8(TRANSPARENT)), "P")
    return GifImagePlugin.getdata(
        page, (left, top), duration=duration_ms, transparency=TRANSPARENT, disposal=1
    )


WIDTH = 800
"""Pixels; the height follows from what is in view (`scene.WIDE`, `LOW`, `HIGH`)."""
_SMOOTH = 2
_EVERY = 2
"""An animation shows every second frame: 15 a second."""
_DURATIONS_MS = (70, 60, 70)
"""GIF counts in hundredths of a second: three frames in 0.2 s keep the pace of the game."""
_HOLD_MS = 2000
_WHITE, _GREY, _DARK = (0xF2, 0xF4, 0xFA), (0x8C, 0x96, 0xB0), (0x1C, 0x21, 0x33)


def require_pillow() -> Any:
    """The modules of Pillow; MissingDependency if it is not installed."""
    with needs("pictures need Pillow", extra="draw"):
        from PIL import Image, ImageDraw, ImageFont
    return Image, ImageDraw, ImageFont


def image(scene: Scene, *, width: int = WIDTH) -> Image:
    """One frame."""
    _, drawing, _ = require_pillow()
    canvas = _Canvas(width)
    picture = _backdrop(width).copy()
    canvas.draw = drawing.Draw(picture)
    for shape in scene.shapes:
        if shape not in _STATIC:
            canvas.shape(shape)
    _write_panels(canvas, scene)
    return picture.reduce(_SMOOTH)


def save_gif(
    path: Path,
    scenes: Sequence[Scene],
    *,
    width: int = WIDTH,
    show: Callable[[float], None] = lambda share: None,
) -> int:
    """An animation of a whole match; returns its size in bytes."""
    pil, _, _ = require_pillow()
    shown = [*scenes[:-1:_EVERY], scenes[-1]]
    palette = _palette(shown, width)
    animation = Animation()
    for index, scene in enumerate(shown):
        last = index == len(shown) - 1
        page = image(scene, width=width).quantize(palette=palette, dither=pil.Dither.NONE)
        animation.add(page, duration_ms=_HOLD_MS if last else _DURATIONS_MS[index % 3])
        show((index + 1) / len(shown))
    return _save(path, animation.finished())


def save_png(path: Path, moments: Sequence[tuple[str, Scene]]) -> int:
    """A sheet of moments with captions, two beside each other; returns its size in bytes."""
    pil, drawing, _ = require_pillow()
    width, gap, caption = WIDTH * 3 // 4, 12, 34
    pages = [image(scene, width=width) for _, scene in moments]
    columns = min(2, len(pages))
    rows = -(-len(pages) // columns)
    height = pages[0].height
    sheet = pil.new(
        "RGB",
        (gap + columns * (width + gap), gap + rows * (height + caption + gap)),
        _DARK,
    )
    draw = drawing.Draw(sheet)
    for index, ((words, _), page) in enumerate(zip(moments, pages, strict=True)):
        x = gap + index % columns * (width + gap)
        y = gap + index // columns * (height + caption + gap)
        sheet.paste(page, (x, y))
        draw.text((x + 2, y + height + 6), words, fill=_WHITE, font=_font(18))
    buffer = io.BytesIO()
    sheet.quantize(128, dither=pil.Dither.NONE).save(buffer, format="PNG", optimize=True)
    return _save(path, buffer.getvalue())


class _Canvas:
    """World units to pixels of an oversized picture."""

    def __init__(self, width: int) -> None:
        self.scale = _SMOOTH * width / (2 * WIDE)
        self.width = width
        self.height = round(width * (HIGH - LOW) / (2 * WIDE))
        self.draw: ImageDraw

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Where a place of the stage is."""
        return (x + WIDE) * self.scale, (HIGH - y) * self.scale

    def shape(self, shape: Shape) -> None:
        """Draw it."""
        paint = shape.paint.rgb
        if isinstance(shape, Box):
            (x0, y0), (x1, y1) = self.at(shape.left, shape.top), self.at(shape.right, shape.bottom)
            radius = min(0.18 * min(x1 - x0, y1 - y0), 0.12 * self.scale)
            if shape.hollow:
                line = max(2, round(0.05 * self.scale))
                self.draw.rounded_rectangle((x0, y0, x1, y1), radius, outline=paint, width=line)
            else:
                self.draw.rounded_rectangle((x0, y0, x1, y1), radius, fill=paint)
        elif isinstance(shape, Disc):
            x, y = self.at(shape.x, shape.y)
            r = shape.radius * self.scale
            self.draw.ellipse((x - r, y - r, x + r, y + r), fill=paint)
        else:
            ends = (*self.at(shape.x0, shape.y0), *self.at(shape.x1, shape.y1))
            self.draw.line(ends, fill=paint, width=max(1, round(shape.width * self.scale)))


_STATIC = frozenset(_STAGE)


@lru_cache(maxsize=4)
def _backdrop(width: int) -> Image:
    """What never changes, drawn once."""
    pil, drawing, _ = require_pillow()
    canvas = _Canvas(width)
    picture = pil.new("RGB", (width * _SMOOTH, canvas.height * _SMOOTH), Paint.SKY.rgb)
    canvas.draw = drawing.Draw(picture)
    for shape in _STAGE:
        canvas.shape(shape)
    return picture  # type: ignore[no-any-return]


@lru_cache(maxsize=16)
def _font(size: int) -> Any:
    _, _, fonts = require_pillow()
    return fonts.load_default(size)


def _write_panels(canvas: _Canvas, scene: Scene) -> None:
    draw, full = canvas.draw, canvas.width * _SMOOTH
    unit = full / 100
    name, number, small = (_font(round(unit * size)) for size in (2.5, 4.2, 2.0))
    room = (full - draw.textlength(scene.clock, font=number)) / 2 - unit * 4
    for side, panel in enumerate(scene.panels):
        at, anchor = (unit * 2, "l") if side == 0 else (full - unit * 2, "r")
        sign = 1 if side == 0 else -1
        words = _fitting(canvas, panel.name, name, room)
        draw.text((at, unit * 1.2), words, fill=panel.paint.rgb, font=name, anchor=anchor + "a")
        for stock in range(STOCKS):
            x, y, r = at + sign * unit * (1.0 + 2.4 * stock), unit * 6.0, unit * 0.8
            fill = panel.paint.rgb if stock < panel.stocks else Paint.STAR.rgb
            draw.ellipse((x - r, y - r, x + r, y + r), fill=fill)
        damage = f"{panel.damage}%"
        draw.text((at + sign * unit * 9, unit * 6.0), damage, fill=_heat(panel.damage), font=number,
                  anchor=anchor + "m")  # fmt: skip
        draw.text((at, unit * 8.4), panel.notes, fill=_GREY, font=small, anchor=anchor + "a")
    draw.text((full / 2, unit * 1.2), scene.clock, fill=_WHITE, font=number, anchor="ma")
    if scene.headline:
        words = _fitting(canvas, scene.headline, name, full - unit * 4)
        draw.text((full / 2, unit * 9.5), words, fill=Paint.STRIKE.rgb, font=name, anchor="mm")


def _fitting(canvas: _Canvas, words: str, font: Any, room: float) -> str:
    """On one line, and no wider than there is room: the end of a path says more than its start."""
    words = plain(words, limit=len(words))
    while canvas.draw.textlength(words, font=font) > room:
        words = words[1:]
    return words


def _heat(damage: int) -> tuple[int, int, int]:
    """White when fresh, red when the next blow flies far; in steps, to keep the colours few."""
    steps = ((30, _WHITE), (60, (0xFF, 0xE0, 0x8A)), (100, (0xFF, 0xA8, 0x5A)))
    return next((paint for limit, paint in steps if damage < limit), (0xFF, 0x5A, 0x5A))


def _palette(scenes: Sequence[Scene], width: int) -> Image:
    """The colours of a few frames from all over the match, smooth edges included."""
    pil, _, _ = require_pillow()
    samples = [image(scene, width=width) for scene in scenes[:: max(1, len(scenes) // 8)]]
    tall = pil.new("RGB", (width, sum(one.height for one in samples)))
    for index, one in enumerate(samples):
        tall.paste(one, (0, index * one.height))
    return tall.quantize(TRANSPARENT, method=pil.Quantize.MAXCOVERAGE)  # type: ignore[no-any-return]


def check_path(path: Path, ending: str) -> None:
    """A file that can be written, before anything is drawn."""
    if path.suffix.lower() != ending:
        raise ConfigError(f"--{ending[1:]} {path}: expected a name that ends in {ending}")
    if not path.parent.is_dir():
        raise ConfigError(f"--{ending[1:]} {path}: there is no folder {path.parent}")


def _save(path: Path, data: bytes) -> int:
    files.write_atomic(path, data)
    return len(data)
