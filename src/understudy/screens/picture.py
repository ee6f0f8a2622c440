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
from understudy.games.shapes import (
    GREY,
    WHITE,
    YELLOW,
    Box,
    Disc,
    Label,
    Paint,
    Panel,
    Scene,
    Shape,
    View,
)
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
"""Pixels of a wide view; the height follows from what is in view."""
_MOST_HEIGHT = 0.7
"""Of the width: a tall view is drawn less wide."""
_MARGIN = 0.12
"""Of the width: the room above a view that has its words outside (`_Canvas`)."""
_SMOOTH = 2
_MOST_PER_S = 15
"""Frames a second of an animation, at most."""
_HOLD_MS = 2000
_DARK, _SPENT = (0x1C, 0x21, 0x33), (0x2A, 0x30, 0x46)


def require_pillow() -> Any:
    """The modules of Pillow; MissingDependency if it is not installed."""
    with needs("pictures need Pillow", extra="draw"):
        from PIL import Image, ImageDraw, ImageFont
    return Image, ImageDraw, ImageFont


def image(scene: Scene, *, width: int = WIDTH) -> Image:
    """One frame."""
    _, drawing, _ = require_pillow()
    canvas = _Canvas(scene.view, width)
    picture = _backdrop(scene.shapes[: scene.fixed], scene.background, scene.view, width).copy()
    canvas.draw = drawing.Draw(picture)
    for shape in scene.shapes[scene.fixed :]:
        canvas.shape(shape)
    _write_panels(canvas, scene)
    return picture.reduce(_SMOOTH)


def save_gif(
    path: Path,
    scenes: Sequence[Scene],
    *,
    frames_per_s: float = 30.0,
    width: int = WIDTH,
    show: Callable[[float], None] = lambda share: None,
) -> int:
    """An animation of a whole match in its own pace; returns its size in bytes."""
    pil, _, _ = require_pillow()
    every = max(1, round(frames_per_s / _MOST_PER_S))
    shown = [*scenes[:-1:every], scenes[-1]]
    palette = _palette(shown, width)
    animation = Animation()
    for index, scene in enumerate(shown):
        last = index == len(shown) - 1
        page = image(scene, width=width).quantize(palette=palette, dither=pil.Dither.NONE)
        # GIF counts in hundredths of a second; rounding the sum keeps the pace of the game.
        began, ends = (round(100 * at * every / frames_per_s) for at in (index, index + 1))
        animation.add(page, duration_ms=_HOLD_MS if last else 10 * (ends - began))
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
        draw.text((x + 2, y + height + 6), words, fill=WHITE.rgb, font=_font(18))
    buffer = io.BytesIO()
    sheet.quantize(128, dither=pil.Dither.NONE).save(buffer, format="PNG", optimize=True)
    return _save(path, buffer.getvalue())


class _Canvas:
    """World units to pixels of an oversized picture.

    A view that is wider than high has room for words at its top, as brawl's sky. Any other view is
    drawn below them, in the middle, and no higher than `_MOST_HEIGHT` of the width.
    """

    def __init__(self, view: View, width: int) -> None:
        self.view = view
        self.width = width
        wide = view.width * _MOST_HEIGHT >= view.height
        self.scale = _SMOOTH * width * min(1 / view.width, _MOST_HEIGHT / view.height)
        above = 0 if wide else round(_MARGIN * width)
        self.height = round(self.scale * view.height / _SMOOTH) + above
        self._left = (_SMOOTH * width - self.scale * view.width) / 2
        self._top = _SMOOTH * above
        self.draw: ImageDraw

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Where a place of the game is."""
        view = self.view
        return (
            (x - view.left) * self.scale + self._left,
            (view.top - y) * self.scale + self._top,
        )

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
        elif isinstance(shape, Label):
            font = _font(max(1, round(shape.size * self.scale)))
            words = plain(shape.text, limit=len(shape.text))
            self.draw.text(self.at(shape.x, shape.y), words, fill=paint, font=font, anchor="mm")
        else:
            ends = (*self.at(shape.x0, shape.y0), *self.at(shape.x1, shape.y1))
            self.draw.line(ends, fill=paint, width=max(1, round(shape.width * self.scale)))


@lru_cache(maxsize=4)
def _backdrop(fixed: tuple[Shape, ...], background: Paint, view: View, width: int) -> Image:
    """What never changes, drawn once."""
    pil, drawing, _ = require_pillow()
    canvas = _Canvas(view, width)
    picture = pil.new("RGB", (width * _SMOOTH, canvas.height * _SMOOTH), background.rgb)
    canvas.draw = drawing.Draw(picture)
    for shape in fixed:
        canvas.shape(shape)
    return picture  # type: ignore[no-any-return]


@lru_cache(maxsize=16)
def _font(size: int) -> Any:
    _, _, fonts = require_pillow()
    return fonts.load_default(size)


def _write_panels(canvas: _Canvas, scene: Scene) -> None:
    draw, full = canvas.draw, canvas.width * _SMOOTH
    unit = full / 100
    name, number = (_font(round(unit * size)) for size in (2.5, 4.2))
    room = (full - draw.textlength(scene.clock, font=number)) / 2 - unit * 4
    for side, panel in enumerate(scene.panels):
        _write_panel(canvas, panel, side, room=room)
    draw.text((full / 2, unit * 1.2), scene.clock, fill=WHITE.rgb, font=number, anchor="ma")
    if scene.headline:
        words = _fitting(canvas, scene.headline, name, full - unit * 4)
        draw.text((full / 2, unit * 9.5), words, fill=YELLOW.rgb, font=name, anchor="mm")


def _write_panel(canvas: _Canvas, panel: Panel, side: int, *, room: float) -> None:
    draw, full = canvas.draw, canvas.width * _SMOOTH
    unit = full / 100
    name, number, small = (_font(round(unit * size)) for size in (2.5, 4.2, 2.0))
    at, anchor = (unit * 2, "l") if side == 0 else (full - unit * 2, "r")
    sign = 1 if side == 0 else -1
    words = _fitting(canvas, panel.name, name, room)
    draw.text((at, unit * 1.2), words, fill=panel.paint.rgb, font=name, anchor=anchor + "a")
    left, all_ = panel.lives or (0, 0)
    for life in range(all_):
        x, y, r = at + sign * unit * (1.0 + 2.4 * life), unit * 6.0, unit * 0.8
        fill = panel.paint.rgb if life < left else _SPENT
        draw.ellipse((x - r, y - r, x + r, y + r), fill=fill)
    beside = at + sign * unit * (1.8 + 2.4 * all_ if all_ else 0.0)
    draw.text((beside, unit * 6.0), panel.value.strip(), fill=panel.value_paint.rgb, font=number,
              anchor=anchor + "m")  # fmt: skip
    below = unit * (8.4 if all_ or panel.value else 5.0)
    draw.text((at, below), panel.notes, fill=GREY.rgb, font=small, anchor=anchor + "a")


def _fitting(canvas: _Canvas, words: str, font: Any, room: float) -> str:
    """On one line, and no wider than there is room: the end of a path says more than its start."""
    words = plain(words, limit=len(words))
    while canvas.draw.textlength(words, font=font) > room:
        words = words[1:]
    return words


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
