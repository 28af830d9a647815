"""Building the site: what it does not tell, and that a build which was killed leaves nothing to clean up."""

import signal

import pytest

# Python runs it at every start, in every process of a build: what they could tell of the machine is known, and rare.
ELSEWHERE = """\
import os
import socket

_real = os.uname()
os.uname = lambda: os.uname_result((_real.sysname, "lovelace-desk", *_real[2:]))
socket.gethostname = lambda: "lovelace-desk"
"""
WARNING = """    import warnings

    warnings.warn("this is approximate", stacklevel=1)
    return {
        length: np.random"""


# Jupyter Book killed with its builder when half of the search index is written.
KILLED = """
import os, signal, sys
from companion.site import jupyter_book
from companion.project.paths import Project

project = Project.here()
index = project.site("laptop") / "searchindex.js"
harm = (
    f"import os, signal; text = open({str(index)!r}).read(); open({str(index)!r}, 'w').write(text[:len(text) // 2]);"
    f"os.kill({os.getpid()}, signal.SIGKILL)"
)
jupyter_book.JUPYTER_BOOK = (sys.executable, "-c", harm)
jupyter_book.build_site(project, "laptop")
"""


@pytest.fixture(scope="module")
def site(pristine, tmp_path_factory):
    """A clone whose notebook warns, built by somebody with a name, on a machine with a name."""
    clone = pristine.copy_to(tmp_path_factory.mktemp("analytical-engine") / "clone")
    clone.write("sitecustomize.py", ELSEWHERE)
    clone.replace("clone/toy/figures/toy_error.py", "    return {\n        length: np.random", WARNING)
    home = clone.root.parent / "augusta"
    home.mkdir()
    clone.environment |= {"HOME": str(home), "USER": "augusta", "LOGNAME": "augusta", "HOSTNAME": "lovelace-desk"}
    finished = clone.companion("build")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return clone


def test_site_tells_nothing_of_who_built_it_and_where(site):
    """No file of it holds a folder, a user's name or a machine's; what was warned of is there, with its file."""
    files = [path for path in site.project.site("laptop").rglob("*") if path.is_file()]
    names = [str(site.root), str(site.root.parent), "augusta", "lovelace-desk", "analytical-engine"]
    told = [(path.name, name) for path in files for name in names if name.encode() in path.read_bytes()]
    assert told == []
    (notebook,) = [path for path in files if path.name == "toy.ipynb" and path.parent.name == "notebooks"]
    page = site.project.site("laptop") / "book/toy.html"
    for path in (notebook, page):
        text = path.read_text(encoding="utf-8")
        assert "this is approximate" in text
        assert "clone/toy/figures/toy_error.py" in text


def test_build_after_a_kill_reads_every_page_again(site):
    """It succeeds at once, and its search index is whole."""
    index = site.project.site("laptop") / "searchindex.js"
    size = index.stat().st_size
    site.replace("book/index.md", "Every figure", "Each figure")
    assert site.python("-c", KILLED).returncode == -signal.SIGKILL
    assert index.stat().st_size < size
    assert site.project.build("laptop").site_begun.exists()
    finished = site.companion("build")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert index.read_text(encoding="utf-8").endswith("})")
    assert not site.project.build("laptop").site_begun.exists()
