"""`companion serve`: the port, the browser, and sites that are not to be shown. On loopback, ended by the test."""

import functools
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

from companion.build import cache_keys
from companion.cli import serve
from companion.io.errors import UserError


@pytest.fixture
def served(clone):
    """A clone with a site, as if it had been built."""
    site = clone.project.site("laptop")
    site.mkdir(parents=True)
    (site / "index.html").write_text("<title>Front</title>", encoding="utf-8")
    stamp = cache_keys.stamp_of(clone.project, cache_keys.Site.BUILT, "laptop", {})
    cache_keys.leave_stamp(clone.project, stamp, [site / "index.html"])
    return clone


@pytest.fixture
def taken():
    """A port at which somebody else listens."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


def until_ended(clone, *arguments):
    """What a server says first, up to its address, and what it answers there; then Ctrl-C."""
    # where the tests run in the background, their children would ignore Ctrl-C
    heeding = {"preexec_fn": functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)}
    command = [sys.executable, "-m", "companion", "serve", *arguments]
    options = {"cwd": clone.root, "env": clone.environment, "stdout": subprocess.PIPE, "text": True, **heeding}
    with subprocess.Popen(command, **options) as server:
        try:
            said, found = [], None
            while not found:
                said.append(server.stdout.readline().strip())
                assert said[-1], said
                found = re.match(r"http://127\.0\.0\.1:(\d+)/", said[-1])
            with urllib.request.urlopen(found[0], timeout=20) as answer:
                page = answer.read().decode()
            yield said, int(found[1]), page
            server.send_signal(signal.SIGINT)
            assert server.wait(timeout=20) == 0
        finally:
            server.kill()


def test_taken_port_gives_way_to_the_next(served, taken):
    """And it is said."""
    for said, port, page in until_ended(served, "--port", str(taken)):
        assert said[0] == f"Port {taken} is taken."
        assert port > taken
        assert page == "<title>Front</title>"


def test_ports_that_are_all_taken_are_named(served, taken, monkeypatch):
    """With what to type instead."""
    monkeypatch.setattr(serve, "PORTS_TRIED", 1)
    with pytest.raises(UserError, match=f"Ports {taken} to {taken} are taken.*--port 0"):
        serve.listening(served.project.site("laptop"), taken)


def test_browser_is_opened_if_asked(served, tmp_path):
    """At the address that is served; a stand-in writes it down, and asks for the page as a browser does."""
    note = tmp_path / "opened"
    program = "import sys, urllib.request as u; open(sys.argv[2], 'w').write(u.urlopen(sys.argv[1]).url)"
    served.environment["BROWSER"] = f"{sys.executable} -c {shlex.quote(program)} %s {note}"
    for _, port, _ in until_ended(served, "--port", "0", "--open"):
        for _ in range(1200):  # a minute, where it takes a second
            if note.is_file() and note.read_text():
                break
            time.sleep(0.05)
        assert note.read_text() == f"http://127.0.0.1:{port}/"


@pytest.mark.parametrize("lost", ["page", "stamp"])
def test_site_that_is_not_whole_is_not_shown(served, lost):
    """None was built, or the last attempt failed; which, is said, and what to type."""
    if lost == "page":
        (served.project.site("laptop") / "index.html").unlink()
    else:
        cache_keys.forget(served.project.build("laptop"), cache_keys.Site.BUILT)
    finished = served.companion("serve")
    assert finished.returncode == 2
    assert ("There is no site" if lost == "page" else "failed, and pages may be missing") in finished.stderr
    assert "`companion build --profile laptop`" in finished.stderr
