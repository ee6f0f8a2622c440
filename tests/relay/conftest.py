"""One moto for all tests of a worker that need it: it takes seconds to start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from relay.store_servers import environment, moto


@pytest.fixture(scope="session")
def moto_port() -> Iterator[int]:
    with moto() as port:
        yield port


@pytest.fixture
def s3(moto_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment names a store of S3 with a bucket called `bucket`."""
    for name, value in environment(moto_port).items():
        monkeypatch.setenv(name, value)
