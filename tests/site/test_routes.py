"""Routes and reading times: the site shows the minutes that are computed from the texts."""

import re
from pathlib import Path

from bs4 import BeautifulSoup

from companion.project.paths import Project
from companion.site.reading_time import of_page


def article(site: Path, name: str) -> BeautifulSoup:
    return BeautifulSoup((site / f"book/{name}.html").read_text(encoding="utf-8"), "html.parser").select_one("article")


def test_every_chapter_shows_its_minutes_before_its_question(site: Path, project: Project):
    lines = []
    for name in project.notebooks():
        text = (site / f"book/{name}.html").read_text(encoding="utf-8").partition("<article")[2]
        found = re.findall(r'class="companion-needs [^>]*>(.*?)</div>', text.partition("<h2>")[0], re.DOTALL)
        assert text.count('class="companion-needs ') == len(found), name
        for line in found:
            assert f"<strong>Takes</strong> {round(of_page(project, name).minutes)} minutes" in line, name
        lines += found
    assert len(lines) > 20


def test_routes_are_numbered_lists_with_their_minutes(site: Path, project: Project):
    """The second list is the core; each total is the sum of the minutes shown."""
    page = article(site, "routes")
    lists = page.select("ol")
    assert len(lists) == 4
    pages = [[link["href"].removesuffix(".html") for link in one.select("a")] for one in lists]
    assert pages[1] == project.notebooks()[:12]
    totals = [int(number) for number in re.findall(r"Together (\d+) minutes", page.get_text())]
    for names, total in list(zip(pages, totals, strict=True))[1:]:
        assert total == sum(max(1, round(of_page(project, name).minutes)) for name in names)
    assert totals[0] <= 30
    assert totals[1] <= 4 * 60
