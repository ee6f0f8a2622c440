from __future__ import annotations

import io
import pickle
import struct
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from understudy.core.arrays import from_npz, read_bytes, read_npz, to_npz
from understudy.core.errors import FileFormatError

DTYPES = st.sampled_from([np.float32, np.float64, np.int32, np.int64, np.uint8, np.bool_])
SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
ARRAYS = st.dictionaries(
    st.text("abcd.", min_size=1, max_size=6), hnp.arrays(DTYPES, SHAPES), max_size=4
)


def member(name: str, body: bytes, *, packing: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", packing) as archive:
        archive.writestr(name, body)
    return buffer.getvalue()


def array_bytes(header: str, body: bytes = b"", version: int = 1) -> bytes:
    size = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + size + header.encode() + body


def declared(descr: str, shape: str, body: bytes = b"") -> bytes:
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n"
    return member("x.npy", array_bytes(header, body))


@settings(deadline=None)
@given(arrays=ARRAYS)
def test_what_is_written_is_read(arrays: dict[str, np.ndarray[Any, Any]]) -> None:
    back = from_npz(to_npz(arrays), what="it")
    assert back.keys() == arrays.keys()
    for name, array in arrays.items():
        assert back[name].dtype == array.dtype and back[name].shape == array.shape
        np.testing.assert_array_equal(back[name], array)


def test_what_numpy_writes_is_read(tmp_path: Path) -> None:
    arrays = {
        "row": np.arange(3, dtype=np.float32),
        "column_major": np.asfortranarray(np.arange(6).reshape(2, 3)),
        "one": np.array(2.5),
        "empty": np.zeros((0, 4), np.float32),
        "text": np.array(["ECONOMY", "ALL_IN"]),
    }
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "it.npz", **arrays)  # type: ignore[arg-type]
        back = read_npz(tmp_path / "it.npz")
        for name, array in arrays.items():
            np.testing.assert_array_equal(back[name], array)


def test_the_same_arrays_give_the_same_bytes() -> None:
    assert to_npz({"x": np.ones(3)}) == to_npz({"x": np.ones(3)})


class Bang:
    """Unpickling this writes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_a_pickle_is_refused_and_never_run(tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    objects = io.BytesIO()
    np.savez(objects, x=np.array([Bang(trap)], dtype=object))
    for data in (objects.getvalue(), pickle.dumps(Bang(trap)), member("x.pkl", b"cos\nsystem\n.")):
        with pytest.raises(FileFormatError, match="it"):
            from_npz(data, what="it")
    assert not trap.exists()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PK\x05\x06",
        declared("'|O'", "(1,)", b"12345678"),
        declared("[('a', '<f4')]", "(1,)", b"1234"),
        declared("'<f4'", "(-1,)", b"1234"),
        declared("'<f4'", "(99999999999,)", b"1234"),
        declared("'<f4'", "(1, 0, 99999999999999999999999)"),
        declared("'<f4'", "(2,)", b"1234"),
        declared("'<f4'", "(__import__('os').getpid(),)", b"1234"),
        declared("'<f3'", "(1,)", b"123"),
        declared("'|S0'", "(7,)"),
        declared("'<f4'", f"({'(' * 500}", b"1234"),
        declared("'<f4'", f"({'1, ' * 70})", b"1234"),
        member("x.npy", b"\x93NUMPY\x01\x00"),
        member("x.npy", array_bytes("{" + " " * 60_000)),
        member("x.npy", b"\x93NUMPY\x09\x00" + b"0" * 64),
        member("x.txt", b"hello"),
        member("x.npy", array_bytes("{}"), packing=zipfile.ZIP_LZMA),
        member("x.npy", array_bytes("{}"), packing=zipfile.ZIP_BZIP2),
    ],
)
def test_what_is_not_an_array_of_numbers_is_refused(data: bytes) -> None:
    with pytest.raises(FileFormatError, match=r"^it: "):
        from_npz(data, what="it")


def bomb(*, honest: bool) -> bytes:
    """64 MB of zeros in 64 KB; the dishonest one says that it is 128 bytes."""
    zeros = np.zeros(64 * 2**20, np.uint8)
    packed = io.BytesIO()
    np.savez_compressed(packed, x=zeros)
    data = packed.getvalue()
    if honest:
        return data
    true = struct.pack("<I", zeros.size + 128)
    assert data.count(true) >= 1
    small = declared("'|u1'", "(0,)")
    size = zipfile.ZipFile(io.BytesIO(small)).infolist()[0].file_size
    return data.replace(true, struct.pack("<I", size))


@pytest.mark.parametrize("honest", [True, False])
def test_a_bomb_does_not_explode(honest: bool) -> None:
    data = bomb(honest=honest)
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError):
            from_npz(data, what="it", limit=2**20)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2**20


def test_a_bomb_with_a_plausible_header_is_unpacked_no_further_than_it_says() -> None:
    header = "{'descr': '|u1', 'fortran_order': False, 'shape': (9000,), }\n"
    body = array_bytes(header, bytes(64 * 2**20))
    data = member("x.npy", body, packing=zipfile.ZIP_DEFLATED)
    lying = data.replace(
        struct.pack("<I", len(body)), struct.pack("<I", len(array_bytes(header)) + 9000)
    )
    assert lying != data
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError):  # the checksum is of all 64 MB
            from_npz(lying, what="it", limit=2**20)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2**20


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "it.npz"
    path.write_bytes(bytes(1000))
    assert len(read_bytes(path, limit=1000)) == 1000
    with pytest.raises(FileFormatError, match=r"it\.npz: larger than 999 bytes"):
        read_bytes(path, limit=999)


def test_too_many_members_are_refused() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for number in range(5000):
            archive.writestr(f"{number}.npy", b"")
    with pytest.raises(FileFormatError, match="5000 members"):
        from_npz(buffer.getvalue(), what="it")
