"""`ModelUploader` to real servers and folders."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ramps import fit_ramp, served, session_ramp

import hookbridge as hb


class _Server(http.server.BaseHTTPRequestHandler):
    """Takes PUT; the first `refusals` requests get an error."""

    files: dict[str, bytes]
    refusals = 0

    def do_PUT(self) -> None:
        cls = type(self)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        cls.refusals -= 1
        if cls.refusals < 0:
            cls.files[self.path] = body
        self.send_response(503 if cls.refusals >= 0 else 201)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Any]:
    """A real HTTP server; `(url, handler class)`."""
    handler = type("Handler", (_Server,), {"files": {}})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_address[1]}/models", handler
        running.shutdown()


def exported(folder: Path) -> dict[str, bytes]:
    """Fills a folder like a SavedModel; returns `{path: content}`."""
    files = {"saved_model.pb": b"graph", "variables/variables.index": b"index"}
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return files


def test_upload_by_http_tries_again(server: Any, tmp_path: Path) -> None:
    url, handler = server
    files = exported(tmp_path)
    handler.refusals = 2
    uploader = hb.callbacks.ModelUploader(url, str(tmp_path), retries=2, wait_secs=0)
    session_ramp([uploader])
    assert uploader.error is None
    assert handler.files == {f"/models/{name}": files[name] for name in files}
    assert list(handler.files)[-1] == "/models/saved_model.pb"


def test_a_failed_upload_loses_nothing(server: Any, tmp_path: Path, keras: Any) -> None:
    url, handler = server
    handler.refusals = 99
    path = str(tmp_path / "model")
    uploader = hb.callbacks.ModelUploader(url, path, retries=1, wait_secs=0)
    model = fit_ramp(keras, [hb.callbacks.SavedModelExporter(path), uploader])
    assert handler.refusals == 97
    assert "503" in str(uploader.error)
    x = np.array([[1.0]], "float32")
    np.testing.assert_allclose(served(tmp_path / "model", x), model.predict(x))


def test_upload_to_a_folder(tmp_path: Path) -> None:
    files = exported(tmp_path / "model")
    uploader = hb.callbacks.ModelUploader(str(tmp_path / "far" / "away"))
    session_ramp([uploader], params={"saved_model_path": str(tmp_path / "model")})
    assert uploader.error is None
    for name, content in files.items():
        assert (tmp_path / "far" / "away" / name).read_bytes() == content


def test_without_a_model_there_is_nothing_to_upload(tmp_path: Path) -> None:
    uploader = hb.callbacks.ModelUploader(str(tmp_path / "far"), str(tmp_path / "none"))
    session_ramp([uploader])
    assert isinstance(uploader.error, FileNotFoundError)
