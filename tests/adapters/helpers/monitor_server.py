"""A local HTTP server for `RemoteMonitor`."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from typing import Any


def monitor_server() -> Iterator[tuple[str, list[Any]]]:
    """Yields a local HTTP server's URL, and path, headers and body of each POST."""
    posted: list[Any] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            posted.append((self.path, dict(self.headers), body.decode()))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments: Any) -> None:
            del arguments

    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_port}", posted
    httpd.shutdown()
    thread.join()
    httpd.server_close()
