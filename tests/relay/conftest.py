"""One moto for all tests of a worker that need it: it takes seconds to start."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from required import skip_without

from relay.google_storage import GoogleStorage, account, google_storage
from relay.store_servers import azurite, environment, moto


@pytest.fixture(scope="session")
def moto_port() -> Iterator[int]:
    with moto() as port:
        yield port


@pytest.fixture(scope="session")
def azurite_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    if shutil.which("azurite-blob") is None:
        skip_without("azurite", "azurite is not installed (npm install -g azurite)")
    with azurite(tmp_path_factory.mktemp("azurite")) as port:
        yield port


@pytest.fixture
def azure(azurite_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment names an emulator of Azure with a container called `bucket`."""
    monkeypatch.setenv("AZURE_STORAGE_USE_EMULATOR", "true")
    monkeypatch.setenv("AZURITE_BLOB_STORAGE_URL", f"http://127.0.0.1:{azurite_port}")


@pytest.fixture
def google(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[GoogleStorage]:
    """The environment names a stand-in of Google Cloud Storage with any bucket."""
    with google_storage() as server:
        for name, value in account(tmp_path_factory.mktemp("google"), server.server_port).items():
            monkeypatch.setenv(name, value)
        yield server


@pytest.fixture
def s3(moto_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment names a store of S3 with a bucket called `bucket`."""
    for name, value in environment(moto_port).items():
        monkeypatch.setenv(name, value)
