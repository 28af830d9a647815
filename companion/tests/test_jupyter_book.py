"""Building the site: no file identifies the builder, and a build after a killed build succeeds."""

import os
import signal
import time

import pytest
from bs4 import BeautifulSoup

from companion.site import jupyter_book
from small_books import Clone

# Python imports `sitecustomize` at each start: every process of a build sees an unusual host name.
SITECUSTOMIZE = """\
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


# Start a build whose Jupyter Book truncates a page by half and kills the build.
KILLED = """
import os, signal, sys
from companion.site import jupyter_book
from companion.project.paths import Project

project = Project.here()
page = project.site("laptop") / "book/toy.html"
harm = (
    f"import os, signal; text = open({str(page)!r}).read(); open({str(page)!r}, 'w').write(text[:len(text) // 2]);"
    f"os.kill({os.getpid()}, signal.SIGKILL)"
)
jupyter_book.JUPYTER_BOOK = (sys.executable, "-c", harm)
jupyter_book.build_site(project, "laptop")
"""


@pytest.fixture(scope="module")
def site(pristine, tmp_path_factory):
    """A clone built by a user and on a host with unusual names.

    Its notebook warns and has a technical figure.
    """
    clone = pristine.copy_to(tmp_path_factory.mktemp("analytical-engine") / "clone")
    clone.edit_notebook(lambda notebook: notebook["cells"][-1]["metadata"].update(tags=["technical"]))
    clone.write("sitecustomize.py", SITECUSTOMIZE)
    clone.replace("clone/toy/figures/toy_error.py", "    return {\n        length: np.random", WARNING)
    home = clone.root.parent / "augusta"
    home.mkdir()
    clone.environment |= {"HOME": str(home), "USER": "augusta", "LOGNAME": "augusta", "HOSTNAME": "lovelace-desk"}
    clone.succeed("build")
    (clone.root / "sitecustomize.py").unlink()
    return Clone(clone.root)  # whose commands have usual names again, and are forked


def test_site_does_not_identify_its_builder(site):
    """No file contains a path, user name or host name of the builder; the warning is shown with its relative path."""
    files = [path for path in site.project.site("laptop").rglob("*") if path.is_file()]
    names = [str(site.root), str(site.root.parent), "augusta", "lovelace-desk", "analytical-engine"]
    leaks = [(path.name, name) for path in files for name in names if name.encode() in path.read_bytes()]
    assert leaks == []
    (notebook,) = [path for path in files if path.name == "toy.ipynb" and path.parent.name == "notebooks"]
    page = site.project.site("laptop") / "book/toy.html"
    for path in (notebook, page):
        text = path.read_text(encoding="utf-8")
        assert "this is approximate" in text
        assert "clone/toy/figures/toy_error.py" in text


def test_a_page_that_is_older_than_the_last_build_is_built_again(site):
    """As a page is that was moved into place or restored."""
    site.replace("book/index.md", "Every figure", "Any figure")
    yesterday = time.time() - 24 * 3600
    os.utime(site.root / "book/index.md", (yesterday, yesterday))
    site.succeed("site")
    assert "Any figure" in (site.project.site("laptop") / "book/index.html").read_text(encoding="utf-8")
    site.replace("book/index.md", "Any figure", "Every figure")


def test_a_technical_figure_is_folded_below_its_headline(site):
    page = BeautifulSoup((site.project.site("laptop") / "book/toy.html").read_text(encoding="utf-8"), "html.parser")
    (fold,) = page.select("details.companion-technical")
    caption = fold.select_one("figcaption .caption-text").get_text(" ", strip=True)
    assert fold.find("summary").get_text(" ", strip=True) == f"Technical figure: {caption}"
    assert fold.select("figure.companion-figure") == page.select("figure.companion-figure")
    assert fold.select(".companion-details") != []


def test_build_after_a_killed_build_is_complete(site):
    """It succeeds at once and repairs the truncated page, which has not changed."""
    page = site.project.site("laptop") / "book/toy.html"
    size = page.stat().st_size
    site.replace("book/index.md", "Every figure", "Each figure")
    assert site.python("-c", KILLED).returncode == -signal.SIGKILL
    assert page.stat().st_size < size
    assert site.project.build("laptop").site_begun.exists()
    assert not jupyter_book.is_built(site.project, "laptop")
    site.succeed("site")
    assert page.read_text(encoding="utf-8").rstrip().endswith("</html>")
    assert not site.project.build("laptop").site_begun.exists()
