import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from graphgps_pearl.data.download import fetch_file
from graphgps_pearl.errors import DataError

CONTENT = b"molecules" * 1000
MD5 = "md5:" + hashlib.md5(CONTENT).hexdigest()
SHA256 = "sha256:" + hashlib.sha256(CONTENT).hexdigest()


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


@pytest.mark.parametrize("known", [MD5, SHA256, None])
@pytest.mark.parametrize("page", ["whole", "moved", "unsized"])
def test_a_file_arrives_whole(server: str, tmp_path: Path, page: str, known: str | None) -> None:
    target = tmp_path / "raw" / "file"
    fetch_file(f"{server}/{page}", target, known)
    assert target.read_bytes() == CONTENT
    assert [path.name for path in target.parent.iterdir()] == ["file"]


def test_without_a_published_checksum_one_line_says_the_files_own_and_where_to_put_another(
    server: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    target = tmp_path / "file"
    with caplog.at_level("INFO"):
        fetch_file(f"{server}/whole", target, None)
    said = [line for line in caplog.messages if SHA256 in line]
    assert len(said) == 1 and f"put it at {target}" in said[0] and len(said[0].splitlines()) == 1
    target.write_bytes(b"a copy of mine")
    fetch_file(f"{server}/whole", target, None)
    assert target.read_bytes() == b"a copy of mine"
    caplog.clear()
    with caplog.at_level("INFO"):
        fetch_file(f"{server}/whole", tmp_path / "other", SHA256)
    assert not any(SHA256 in line for line in caplog.messages)


@pytest.mark.parametrize(
    ("page", "known", "message"),
    [
        ("cut", None, r"/cut: broke off .*100 bytes read"),
        ("whole", "md5:" + "0" * 32, "/whole: has another checksum than md5:00000"),
        ("absent", None, "/absent: the server answers 404 Not Found; download it by hand to .*file"),
    ],
)
def test_a_download_that_fails_leaves_nothing(
    server: str, tmp_path: Path, page: str, known: str | None, message: str
) -> None:
    target = tmp_path / "file"
    with pytest.raises(DataError, match=message) as caught:
        fetch_file(f"{server}/{page}", target, known)
    assert len(str(caught.value).splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_no_network_is_one_line(tmp_path: Path) -> None:
    free = HTTPServer(("127.0.0.1", 0), Handler)
    address = f"http://127.0.0.1:{free.server_port}/x"
    free.server_close()
    with pytest.raises(DataError, match=r"/x: cannot be reached \(.*refused.*\); download it by hand to"):
        fetch_file(address, tmp_path / "file", None)
    with pytest.raises(DataError, match="cannot be reached"):
        fetch_file("http://no-such-host.invalid/x", tmp_path / "file", None)


def test_a_file_that_is_there_with_its_checksum_is_not_downloaded_again(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(CONTENT)
    fetch_file("http://no-such-host.invalid/x", tmp_path / "file", SHA256)
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_folder_that_cannot_be_written_is_one_line(server: str, tmp_path: Path) -> None:
    (tmp_path / "raw").write_text("a file")
    with pytest.raises(DataError, match=r"raw/file: cannot be written"):
        fetch_file(f"{server}/whole", tmp_path / "raw" / "file", MD5)
