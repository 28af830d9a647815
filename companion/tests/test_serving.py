"""`companion site --serve`: the port, the browser, and incomplete sites.

A test of the transcripts presses Ctrl-C on a terminal (tests/companion/test_transcripts.py).
"""

import gzip
import http.client
import re
import socket
import threading
from http.server import ThreadingHTTPServer
from unittest.mock import Mock

import pytest

from companion.build import cache_keys
from companion.cli import site


@pytest.fixture
def served(clone):
    """Return a clone with a site, as after a build."""
    site = clone.project.site("laptop")
    site.mkdir(parents=True)
    (site / "index.html").write_text("<title>Front</title>", encoding="utf-8")
    stamp = cache_keys.stamp_of(clone.project, cache_keys.Site.BUILT, "laptop", {})
    cache_keys.leave_stamp(clone.project, stamp, [site / "index.html"])
    return clone


@pytest.fixture
def taken():
    """Return a port that another server uses."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_another_port_is_used_if_one_is_taken(served, taken, monkeypatch):
    """The output mentions the taken port. Ctrl-C ends the server."""
    monkeypatch.setattr(ThreadingHTTPServer, "serve_forever", Mock(side_effect=KeyboardInterrupt))
    first, address, last = served.succeed("site", "--serve", "--port", str(taken)).splitlines()
    assert (first, last) == (f"Port {taken} is taken.", "Stopped.")
    assert int(re.match(r"http://127\.0\.0\.1:(\d+)/ — press Ctrl-C", address)[1]) != taken


@pytest.mark.parametrize("wanted", ["gzip", "identity"])
def test_pages_are_compressed_for_browsers_that_read_this(served, wanted):
    """A second request on the same connection is answered; a page that the browser has is not sent again."""
    page = served.project.site("laptop") / "index.html"
    page.write_text("<title>Front</title>" * 100, encoding="utf-8")
    with site.listening(page.parent, 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
        for _ in range(2):
            connection.request("GET", "/index.html", headers={"Accept-Encoding": wanted})
            answer = connection.getresponse()
            body = answer.read()
            assert (gzip.decompress(body) if wanted == "gzip" else body) == page.read_bytes()
        assert (len(body) < 200) == (wanted == "gzip")
        current = {"Accept-Encoding": wanted, "If-Modified-Since": answer.getheader("Last-Modified")}
        connection.request("GET", "/index.html", headers=current)
        assert connection.getresponse().status == 304
        connection.close()
        server.shutdown()


@pytest.mark.parametrize("lost", ["page", "stamp"])
def test_incomplete_site_is_not_served(served, lost):
    """The error says whether no site was built or the last build failed, and what to type."""
    if lost == "page":
        (served.project.site("laptop") / "index.html").unlink()
    else:
        cache_keys.forget(served.project.build("laptop"), cache_keys.Site.BUILT)
    finished = served.companion("site", "--serve")
    assert finished.returncode == 2
    assert ("There is no site" if lost == "page" else "failed, and pages may be missing") in finished.stderr
    assert "`companion build --profile laptop`" in finished.stderr
