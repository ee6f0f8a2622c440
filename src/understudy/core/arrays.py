"""Named arrays as `.npz` bytes, read without pickle and without trusting a single size.

Every member's declared size is checked against its own header and against a limit *before* any of
it is decompressed, and no more than that ever is, so a damaged file, a pickle or a bomb is a
`FileFormatError`, never a crash.
"""

from __future__ import annotations

import io
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.core.errors import FileFormatError

NDArray = npt.NDArray[Any]

MAX_BYTES = 256 * 2**20
_MAX_MEMBERS = 4096
_MAX_HEADER = 4096
_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_MAGIC = {b"\x93NUMPY\x01\x00": "<H", b"\x93NUMPY\x02\x00": "<I"}
"""How an array begins, and how the length of its header is written after that."""
_HEADER = re.compile(
    r"\{'descr': '([<>|=]?[biufSU]\d+)', 'fortran_order': (True|False), "
    r"'shape': \(([\d, ]*)\), \}\s*"
)
"""What NumPy writes for plain numbers, and nothing else: no expression is ever evaluated."""


def to_npz(arrays: Mapping[str, NDArray]) -> bytes:
    """The same arrays give the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            body = io.BytesIO()
            np.lib.format.write_array(body, np.asarray(array, order="C"), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), body.getvalue())
    return buffer.getvalue()


def read_npz(path: Path, *, limit: int = MAX_BYTES) -> dict[str, NDArray]:
    """All arrays of a file. The file is closed before anything is decoded."""
    return from_npz(read_bytes(path, limit=limit), what=path.name, limit=limit)


def read_bytes(path: Path, *, limit: int = MAX_BYTES) -> bytes:
    """All bytes of a file that is not larger than it may be."""
    with path.open("rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise FileFormatError(f"{path.name}: larger than {limit} bytes")
    return data


def from_npz(
    data: bytes, *, what: str, limit: int = MAX_BYTES, only: Collection[str] | None = None
) -> dict[str, NDArray]:
    """Arrays from bytes, all or only some; `what` names the source in errors."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            if len(members) > _MAX_MEMBERS:
                raise FileFormatError(f"{what}: {len(members)} members, at most {_MAX_MEMBERS}")
            total = sum(member.file_size for member in members)
            if total > limit:
                raise FileFormatError(f"{what}: would unpack to {total} bytes, at most {limit}")
            return dict(
                _member(archive, member, what)
                for member in members
                if only is None or member.filename.removesuffix(".npy") in only
            )
    except (
        zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError,
        ValueError, TypeError, OverflowError,
    ) as error:  # fmt: skip
        raise FileFormatError(f"{what}: not a readable .npz file ({error})") from error


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, what: str) -> tuple[str, NDArray]:
    name = member.filename.removesuffix(".npy")
    if name == member.filename:
        raise FileFormatError(f"{what}: member {member.filename[:80]!r} is not an array")
    if member.compress_type not in _PACKINGS:
        raise FileFormatError(f"{what}: array {name!r} is packed in a way that NumPy does not use")
    with archive.open(member) as file:
        magic = file.read(8)
        if magic not in _MAGIC:
            raise FileFormatError(f"{what}: array {name!r} does not begin like an array")
        width = _MAGIC[magic]
        (length,) = struct.unpack(width, file.read(struct.calcsize(width)))
        header = file.read(min(length, _MAX_HEADER)).decode("latin-1")
        match = _HEADER.fullmatch(header)
        if match is None:
            raise FileFormatError(
                f"{what}: array {name!r} holds something else than plain numbers ({header[:80]!r})"
            )
        dtype = np.dtype(match[1])
        shape = tuple(int(side) for side in match[3].replace(",", " ").split())
        size = math.prod(shape) * dtype.itemsize
        if size != member.file_size - file.tell() or dtype.itemsize == 0:
            raise FileFormatError(
                f"{what}: array {name!r} says {shape} {dtype} ({size} bytes) "
                f"but holds {member.file_size - file.tell()} bytes"
            )
        body = file.read(size)
    if len(body) != size:
        raise FileFormatError(f"{what}: array {name!r} is cut short")
    array = np.frombuffer(body, dtype=dtype)
    fortran = match[2] == "True"
    return name, array.reshape(shape[::-1]).T if fortran else array.reshape(shape)
