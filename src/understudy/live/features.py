"""Numbers and masks as clients send them, checked and cast: float32 [F] and bool [options].

What is finite in JSON may not be in float32, so finiteness is asked after the cast.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from understudy.core.arrays import NDArray
from understudy.live.protocol import Error

_SHOWN = 3
_LONGEST_NAME = 64
_SHORTEST_PART = 3
Features = list[float] | dict[str, float]


class FeatureReader:
    """For the features of one game."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names
        self._known = frozenset(names)
        self._folded = {name.casefold(): name for name in names}

    def read(self, given: Sequence[Features]) -> list[NDArray | Error]:
        """float32 [F] each, raw and finite, or what is wrong."""
        rows = [self._in_order(one) for one in given]
        good = [row for row in rows if not isinstance(row, Error)]
        if not good:
            return list(rows)  # type: ignore[arg-type]  # nothing but errors
        with np.errstate(over="ignore"):  # 1e39 becomes inf, and is refused for it
            table = np.array(good, np.float64).astype(np.float32)
        finite: list[bool] = np.isfinite(table).all(axis=1).tolist()  # type: ignore[assignment]
        checked = iter(zip(table, finite, strict=True))
        read: list[NDArray | Error] = []
        for row, asked in zip(rows, given, strict=True):
            if isinstance(row, Error):
                read.append(row)
                continue
            values, is_finite = next(checked)
            # A copy: one row must not keep the numbers of everybody else alive.
            read.append(values.copy() if is_finite else self._not_finite(values, asked))
        return read

    def _in_order(self, features: Features) -> list[float] | Error:
        if isinstance(features, list):
            if len(features) == len(self._names):
                return features
            return _wrong(f"expected {len(self._names)} numbers, got {len(features)}")
        if features.keys() == self._known:
            return [features[name] for name in self._names]
        unknown = [name for name in features if name not in self._known]
        if unknown:
            name = unknown[0][:_LONGEST_NAME]
            return _wrong(f"there is no {name!r}.{self._hint(name)}", name)
        missing = [name for name in self._names if name not in features]
        shown = ", ".join(missing[:_SHOWN]) + (", ..." if len(missing) > _SHOWN else "")
        return _wrong(f"missing {len(missing)}: {shown}", missing[0])

    def _hint(self, name: str) -> str:
        """A feature that is the same but for case, or else has this in its name.

        No search for what is merely similar: it takes milliseconds, and anybody may ask for it.
        """
        folded = name.casefold()
        meant = self._folded.get(folded)
        if meant is None and len(folded) >= _SHORTEST_PART:
            meant = next((its for known, its in self._folded.items() if folded in known), None)
        return "" if meant is None else f" Did you mean {meant!r}?"

    def _not_finite(self, values: NDArray, given: Features) -> Error:
        index = int(np.flatnonzero(~np.isfinite(values))[0])
        field = (
            f"features[{index}]" if isinstance(given, list) else f"features.{self._names[index]}"
        )
        return Error(code="bad_number", message="too large for a 32-bit float", field=field)


class MaskReader:
    """For the options of one action space."""

    def __init__(self, parts: tuple[int, ...]) -> None:
        self._options = sum(parts)
        self._edges = list(itertools.accumulate(parts, initial=0))

    def read(self, legal: list[bool] | None) -> NDArray | Error | None:
        """bool [options] with something legal in every part; None: everything is."""
        if legal is None:
            return None
        if len(legal) != self._options:
            message = f"expected {self._options} booleans, one an option, got {len(legal)}"
            return Error(code="bad_message", message=message, field="legal")
        for start, end in itertools.pairwise(self._edges):
            if True not in legal[start:end]:
                message = f"at least one of options {start} to {end - 1} has to be legal"
                return Error(code="illegal", message=message, field="legal")
        return np.array(legal, np.bool_)


def legal_action(action: NDArray, legal: NDArray | None, parts: tuple[int, ...]) -> NDArray:
    """The action int32 [parts], but the first legal option where a part of it is not legal."""
    if legal is None:
        return action
    chosen, start = action.copy(), 0
    for index, size in enumerate(parts):
        options = legal[start : start + size]
        if not options[chosen[index]]:
            chosen[index] = options.argmax()
        start += size
    return chosen


def _wrong(message: str, name: str | None = None) -> Error:
    field = "features" if name is None else f"features.{name}"
    return Error(code="wrong_features", message=message, field=field)
