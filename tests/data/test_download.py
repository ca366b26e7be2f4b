import hashlib
import io
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from graphgps_pearl.data.download import fetch_file, unzip
from graphgps_pearl.errors import DataError

CONTENT = b"molecules" * 1000
MD5 = hashlib.md5(CONTENT).hexdigest()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/whole")
            self.end_headers()
        elif self.path in ("/whole", "/cut", "/unsized"):
            self.send_response(200)
            if self.path != "/unsized":
                self.send_header("Content-Length", str(len(CONTENT)))
            self.end_headers()
            self.wfile.write(CONTENT[: 100 if self.path == "/cut" else None])
        else:
            self.send_error(404)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    httpd = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_port}"
    httpd.shutdown()
    thread.join()
    httpd.server_close()


@pytest.mark.parametrize("page", ["whole", "moved", "unsized"])
def test_a_file_arrives_whole(server: str, tmp_path: Path, page: str) -> None:
    target = tmp_path / "raw" / "file"
    fetch_file(f"{server}/{page}", target, MD5)
    assert target.read_bytes() == CONTENT
    assert [path.name for path in target.parent.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("page", "md5", "message"),
    [
        ("cut", None, "/cut: broke off after 100 "),
        ("whole", "0" * 32, f"/whole: has checksum {MD5}, not 00000"),
        ("absent", None, "/absent: the server answers 404 Not Found; download it by hand to .*file"),
    ],
)
def test_a_download_that_fails_leaves_nothing(
    server: str, tmp_path: Path, page: str, md5: str | None, message: str
) -> None:
    target = tmp_path / "file"
    with pytest.raises(DataError, match=message) as caught:
        fetch_file(f"{server}/{page}", target, md5)
    assert len(str(caught.value).splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_no_network_is_one_line(tmp_path: Path) -> None:
    free = HTTPServer(("127.0.0.1", 0), Handler)
    address = f"http://127.0.0.1:{free.server_port}/x"
    free.server_close()
    with pytest.raises(DataError, match=r"/x: cannot be reached \(.*refused.*\); download it by hand to"):
        fetch_file(address, tmp_path / "file")
    with pytest.raises(DataError, match="cannot be reached"):
        fetch_file("http://no-such-host.invalid/x", tmp_path / "file")


def test_archives_give_the_named_members_only(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("molecules/train.pickle", "train")
        archive.writestr("../../escaped", "bad")
    (tmp_path / "a.zip").write_bytes(packed.getvalue())
    unzip(tmp_path / "a.zip", {"molecules/train.pickle": tmp_path / "raw" / "train.pickle"})
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a.zip", "raw", "train.pickle"]
    with pytest.raises(DataError, match=r"a\.zip: has no file .*val\.pickle"):
        unzip(tmp_path / "a.zip", {"molecules/val.pickle": tmp_path / "val.pickle"})


def test_a_damaged_archive_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(b"PK not a zip")
    with pytest.raises(DataError, match=r"a\.zip: is damaged"):
        unzip(tmp_path / "a.zip", {"x": tmp_path / "x"})
