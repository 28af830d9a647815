"""Serve the files of a site on this machine as a web host does: text is compressed, and connections are kept open."""

import functools
import gzip
import io
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO

COMPRESSED = {".css", ".csv", ".html", ".ipynb", ".js", ".json", ".svg", ".txt", ".xml"}


class Handler(SimpleHTTPRequestHandler):
    """Answers requests for files of a folder."""

    protocol_version = "HTTP/1.1"

    def send_head(self) -> IO[bytes] | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Send the header of a file, and return its content, compressed if it is text and the browser reads that."""
        path = Path(self.translate_path(self.path))
        readable = "gzip" in self.headers.get("Accept-Encoding", "")
        # the base class answers whether a file that the browser has is still current
        if not readable or "If-Modified-Since" in self.headers or path.suffix not in COMPRESSED or not path.is_file():
            return super().send_head()
        changed = path.stat().st_mtime_ns
        body = compressed(path, changed)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(path))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Last-Modified", self.date_time_string(int(changed / 1e9)))
        self.send_header("Vary", "Accept-Encoding")
        self.end_headers()
        return io.BytesIO(body)


class QuietHandler(Handler):
    """The same without a line of log per request."""

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@functools.lru_cache(maxsize=256)
def compressed(path: Path, changed: int) -> bytes:
    """Return the content of a file, last changed at `changed`, compressed by gzip."""
    return gzip.compress(path.read_bytes(), compresslevel=6)


def server(site: Path, port: int, handler: type[Handler] = Handler) -> ThreadingHTTPServer:
    """Return a server of the files in `site` at a port of the loopback interface; 0 is any free port."""
    return ThreadingHTTPServer(("127.0.0.1", port), functools.partial(handler, directory=str(site)))
