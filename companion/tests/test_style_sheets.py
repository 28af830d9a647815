"""Style sheets of the site: unused rules are removed, and the sheets of a page are joined."""

import pytest

from companion.site.sphinx.style_sheets import join_sheets, reduced, remove_unlinked_sheets, slim_sheets

WORDS = {"shown", "also-shown"}


@pytest.mark.parametrize(
    ("rule", "kept"),
    [
        (".shown{color:red}", True),
        (".lost{color:red}", False),
        (".lost .shown{color:red}", False),
        ("p,a:hover{color:red}", True),
        (".shown:not(.lost){color:red}", True),
        (":is(.shown,.lost) p{color:red}", True),
        ('a[href=".lost"]{color:red}', True),
        ("@media print{.shown{color:red}}", True),
        ("@media print{.lost{color:red}}", False),
        ("@font-face{font-family:lost}", True),
        ("@keyframes lost{from{color:red}}", True),
        ('.shown::after{content:"}.lost{"}', True),
    ],
)
def test_only_rules_for_unknown_classes_are_removed(rule, kept):
    assert reduced(rule, WORDS) == (rule if kept else "")


def test_rules_for_composed_classes_are_kept():
    assert reduced(".made-0{color:red} .mad{color:red}", WORDS, ("made-",)) == ".made-0{color:red}"


def test_unknown_selectors_are_removed_from_a_list():
    assert reduced(".lost,.shown, .also-shown {color:red}", WORDS) == ".shown,.also-shown{color:red}"


def test_classes_of_scripts_and_licences_are_kept(tmp_path):
    static = tmp_path / "_static"
    static.mkdir()
    (static / "page.js").write_text('node.classList.add("by-script", `composed-${name}`);')
    sheet = static / "a.css"
    kept = ".by-script{color:red}.on-page{color:red}.composed-a{color:red}"
    sheet.write_text(f"/*! a licence */ /* a comment */ {kept} .lost{{color:red}}")
    slim_sheets(tmp_path, ['<p class="on-page">', "<p class=unquoted>"])
    assert sheet.read_text() == f"/*! a licence */{kept}"


def test_components_of_the_theme_that_no_page_has_are_removed(tmp_path):
    """Scripts of the theme name the classes of all components; a page or another script has those that are kept."""
    (tmp_path / "_static/scripts").mkdir(parents=True)
    (tmp_path / "_static/scripts/theme.js").write_text('"modal-open list-group-item popover-body tooltip"')
    (tmp_path / "_static/page.js").write_text('"popover-body"')
    sheet = tmp_path / "_static/a.css"
    sheet.write_text(".modal-open{a:b}.list-group-item{a:b}.popover-body{a:b}.tooltip{a:b}")
    slim_sheets(tmp_path, ['<ul class="list-group">'])
    assert sheet.read_text() == ".list-group-item{a:b}.popover-body{a:b}.tooltip{a:b}"


def test_unused_custom_properties_are_removed(tmp_path):
    """Also one that only an unused one refers to. A page, a script or another sheet may use a property."""
    static = tmp_path / "_static"
    static.mkdir()
    (static / "page.js").write_text('style.setProperty("--by-script", 1);')
    (static / "b.css").write_text("b{top:var( --elsewhere, 0)}")
    used = "--by-script:1;--on-page:2;--elsewhere:3;"
    unused = ';--lost:url(data:x;y,"}");--last:var(--only)'
    (static / "a.css").write_text(f"p{{--only:4;{used}left:var(--own);--own:'--x:1;'{unused}}}")
    slim_sheets(tmp_path, ['<p style="right: var(--on-page)">'])
    assert (static / "a.css").read_text() == f"p{{{used}left:var(--own);--own:'--x:1;';}}"


def test_the_sheets_of_a_page_are_joined_in_order(tmp_path):
    """Addresses in them still lead to the same files; another page with the same sheets gets the same file."""
    (tmp_path / "_static/styles").mkdir(parents=True)
    (tmp_path / "book").mkdir()
    (tmp_path / "_static/first.css").write_text('@import "basic.css";p{color:red}')
    (tmp_path / "_static/basic.css").write_text("b{color:red}")
    (tmp_path / "_static/styles/second.css").write_text("i{background:url(../fonts/x.woff)}u{background:url(data:x)}")
    links = [f'<link rel="stylesheet" href="../_static/{name}?v=1" />' for name in ("first.css", "styles/second.css")]
    page = join_sheets(tmp_path, tmp_path / "book/a.html", f"<head>{links[0]}<meta>{links[1]}</head>")
    (joined,) = (tmp_path / "_static").glob("sheets-*.css")
    assert page.count("stylesheet") == 1
    assert f"../_static/{joined.name}?v=" in page
    assert joined.read_text() == "b{color:red}p{color:red}i{background:url(fonts/x.woff)}u{background:url(data:x)}"
    assert join_sheets(tmp_path, tmp_path / "book/a.html", page) == page


def test_sheets_that_no_page_links_are_removed(tmp_path):
    """They are those that were joined; links of a page may have a version."""
    (tmp_path / "_static/styles").mkdir(parents=True)
    for name in ("sheets-0.css", "only.css", "styles/joined.css"):
        (tmp_path / "_static" / name).touch()
    page = (
        '<link rel="stylesheet" href="_static/sheets-0.css?v=1" />\n<link rel="stylesheet" href="_static/only.css" />'
    )
    remove_unlinked_sheets(tmp_path, [page])
    assert sorted(path.name for path in tmp_path.rglob("*.css")) == ["only.css", "sheets-0.css"]
