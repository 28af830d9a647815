"""Pictures in a browser: the colours of both themes, enlarged pictures, and PNG files."""

import base64
import io
import re
from collections.abc import Callable
from importlib.resources import files

import pytest
from matplotlib.colors import rgb_to_hsv, to_hex, to_rgb
from PIL import Image
from playwright.sync_api import Locator, Page

from companion.figures.style import INK, PALETTE, PAPER, contrast, sequence
from companion.project.paths import Project
from companion.site import tokens

DESKTOP, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
FIGURE = "figure.companion-figure"
SCROLL_THROUGH = """async () => {
    for (let y = 0; y < document.documentElement.scrollHeight; y += 500) {
        scrollTo({ top: y, behavior: 'instant' });
        await new Promise(resolve => setTimeout(resolve, 30));
    }
}"""

# The files of figures that the page shows, each once: findings show some of them, too.
SHOWN = """() => [...new Set([...document.images].filter(image => image.checkVisibility()).map(image => image.src))]
    .filter(address => address.endsWith('.svg') && address.includes('/figures/')).sort()"""


def test_one_file_is_shown_in_both_themes(visit: Callable[..., Page], events, project: Project):
    """After a change of the theme, the page has the same file in the other colours; white is the background."""
    page = visit(project.notebooks()[1])
    for theme in ("light", "dark"):
        page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
        page.evaluate(SCROLL_THROUGH)
        page.wait_for_load_state("networkidle")
        pictures = sorted(url for url in events["request"] if url.endswith(".svg") and "/figures/" in url)
        assert pictures == page.evaluate(SHOWN)  # not those in folds
        for image in page.locator(f"{FIGURE} img:visible").all()[:2]:
            assert paper_of(image) == pytest.approx(colour_of_paper(theme), abs=1)


def test_colours_of_pictures_keep_their_hue_in_the_dark_theme(visit: Callable[..., Page], project: Project):
    """Each colour contrasts with the dark background about as with the light one, or by 3 to 1."""
    page, colours = visit(project.notebooks()[1], color_scheme="dark"), [*PALETTE, *map(to_hex, sequence(5)), INK]
    drawn, stripes = io.BytesIO(), Image.new("RGB", (len(colours), 1))
    stripes.putdata([tuple(round(255 * part) for part in to_rgb(colour)) for colour in colours])
    stripes.resize((20 * len(colours), 60), Image.Resampling.NEAREST).save(drawn, "PNG")
    source = f"data:image/png;base64,{base64.b64encode(drawn.getvalue()).decode()}"
    image = page.locator(f"{FIGURE} img").first
    image.scroll_into_view_if_needed()  # it is loaded then
    image.evaluate(
        "(image, source) => { Object.assign(image, {decoding: 'sync', src: source}); return image.decode() }", source
    )
    shown = picture_of(image)
    for place, colour in enumerate(colours):
        middle = int((place + 0.5) * shown.width / len(colours)), shown.height // 2
        dark = tuple(part / 255 for part in shown.getpixel(middle))
        assert contrast(dark, tokens.COLOURS["paper"]["dark"]) > min(3, 0.9 * contrast(colour, PAPER)), colour
        hue, before = (rgb_to_hsv(to_rgb(one))[0] for one in (dark, colour))
        assert colour == INK or abs((hue - before + 0.5) % 1 - 0.5) < 0.06, colour


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE])
def test_a_picture_can_be_enlarged(visit: Callable[..., Page], project: Project, viewport):
    """Enter opens the large picture in the colours of the theme; Escape closes it and returns the focus."""
    page = visit(project.notebooks()[0], viewport, color_scheme="dark")
    link = page.locator("a.companion-zoom:visible").first
    link.focus()
    page.keyboard.press("Enter")
    large = page.locator("dialog.companion-large img")
    large.evaluate("image => image.decode()")
    assert paper_of(large) == pytest.approx(colour_of_paper("dark"), abs=1)
    assert large.get_attribute("alt") == link.locator("img").get_attribute("alt")
    assert large.bounding_box()["width"] > link.bounding_box()["width"]
    large.click()  # the picture has the focus now
    page.keyboard.press("Escape")
    assert not large.is_visible()
    assert link.evaluate("link => link === document.activeElement")


def test_a_png_of_a_figure_is_made_in_the_browser(visit: Callable[..., Page], project: Project):
    """It has three times the size on the page and the colours of the theme."""
    page = visit(project.notebooks()[1], color_scheme="dark")
    link, image = page.locator("a.companion-png").first, page.locator(f"{FIGURE} img:visible").first
    link.evaluate("link => { link.closest('details').open = true }")
    with page.expect_download() as download:
        link.click()
    assert download.value.suggested_filename == link.inner_text().strip()
    picture = Image.open(download.value.path()).convert("RGB")
    assert picture.width == 3 * int(image.get_attribute("width"))
    assert picture.getpixel((9, 9)) == pytest.approx(colour_of_paper("dark"), abs=1)


def test_style_sheets_use_the_colours_of_the_tokens():
    """They name no colour, except that of a shadow in `companion.css`, and all their tokens exist."""
    assets = files("companion.site.sphinx") / "assets"
    sheets = "".join((assets / name).read_text(encoding="utf-8") for name in ("design.css", "navigation.css"))
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b|rgba?\(", sheets) == []
    used = re.findall(r"var\((--(?:book|size|face)-[\w-]+)", sheets)
    assert set(used) <= set(re.findall(r"(--[\w-]+):", tokens.css()))


def picture_of(image: Locator) -> Image.Image:
    """Return a picture as it is shown, after it scrolled into view."""
    return Image.open(io.BytesIO(image.screenshot())).convert("RGB")


def paper_of(image: Locator) -> tuple[int, ...]:
    """Return the colour of a picture near its corner."""
    return picture_of(image).getpixel((3, 3))


def colour_of_paper(theme: str) -> list[float]:
    return [255 * part for part in to_rgb(tokens.COLOURS["paper"][theme])]
