"""Pictures that an environment drew, as an animation."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from understudy.core import files
from understudy.core.arrays import NDArray
from understudy.screens.picture import require_pillow

_HOLD_MS = 2_000
"""How long the last picture stays."""
_WIDEST = 480


def save_gif(path: Path, pictures: Sequence[NDArray], *, frame_s: float) -> int:
    """Write images uint8 [H, W, 3] as an animation; returns its size in bytes."""
    pil, _, _ = require_pillow()
    pages = []
    for picture in pictures:
        page = pil.fromarray(np.asarray(picture, np.uint8))
        if page.width > _WIDEST:
            page = page.resize((_WIDEST, page.height * _WIDEST // page.width))
        pages.append(page)
    buffer = io.BytesIO()
    duration_ms = max(int(1000 * frame_s), 20)
    pages[0].save(
        buffer,
        format="GIF",
        save_all=True,
        append_images=pages[1:],
        duration=[duration_ms] * (len(pages) - 1) + [_HOLD_MS],
        loop=0,
    )
    files.write_atomic(path, buffer.getvalue())
    return len(buffer.getvalue())
