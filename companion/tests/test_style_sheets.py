"""The style sheets of a page are joined in one file."""

from companion.site.sphinx.style_sheets import join_sheets


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
