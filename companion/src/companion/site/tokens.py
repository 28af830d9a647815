"""The design of the pages in one place: colours, sizes and faces. `docs/site-design.md` says how they are used.

In the light theme, the background, the ink and the colours of sources are those of the figures. In the dark theme the
browser inverts the lightness of pictures and keeps the hues; white becomes the background, so that no picture has a
visible frame. `css()` writes the tokens as custom properties; the style sheets name no other colour.
"""

from companion.figures.style import FAINT, INK, PALETTE, PAPER

_BLUE, _ORANGE, _GREEN, _, _AMBER, _ = PALETTE
_DARK_PAPER = "#121212"
# The filter of pictures, by theme: it inverts all channels, turns the hues back, makes black as bright as the ink, and
# makes white the background.
_CONTRAST = 1 - 2 * int(_DARK_PAPER[1:3], 16) / 255
_FILTERS = {"light": "none", "dark": f"invert(1) hue-rotate(180deg) brightness(1.1) contrast({_CONTRAST:.4f})"}
# By name: the colour in the light and in the dark theme.
COLOURS: dict[str, dict[str, str]] = {
    "paper": {"light": PAPER, "dark": _DARK_PAPER},
    "ink": {"light": INK, "dark": "#e6e8eb"},
    "quiet": {"light": "#57606a", "dark": "#a3abb5"},
    "line": {"light": FAINT, "dark": "#3a3f45"},
    "surface": {"light": "#f5f6f8", "dark": "#1c1e21"},
    "link": {"light": "#0a4a9e", "dark": "#8ec5ff"},
    "holds": {"light": "#00734f", "dark": "#2fc79a"},
    "fails": {"light": "#b34700", "dark": "#ff8a47"},
    "focus": {"light": _ORANGE, "dark": "#ff8a47"},
    "from-paper": {"light": _BLUE, "dark": "#4fa8dc"},
    "derived": {"light": _GREEN, "dark": "#2fc79a"},
    "heuristic": {"light": _AMBER, "dark": "#f2b632"},
}
# A line of text in the size `text` has about 72 characters within `measure`; figures and code may be wider.
SIZES = {
    "text": "1.125rem",
    "measure": "40rem",
    "title": "2.25rem",
    "section": "1.625rem",
    "subsection": "1.25rem",
    "small": "0.9375rem",
    "tiny": "0.8125rem",
    "code": "0.8rem",
    # relative to the text around a formula: small letters of both have the same height
    "formula": "1.11em",
}
# By name: the family and its replacements, used for characters that the family lacks.
FACES = {
    "text": '"Book Serif", "Source Serif 4", Georgia, "DejaVu Serif", serif',
    "code": 'ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace',
}


def css() -> str:
    """Return the tokens as a style sheet: `--book-<colour>`, `--book-picture`, `--size-<size>` and `--face-<face>`.

    The light colours also apply without scripts, unless the system prefers dark.
    """
    sizes = [f"--size-{name}: {size}" for name, size in SIZES.items()]
    faces = [f"--face-{name}: {face}" for name, face in FACES.items()]
    light = _rule(":root", [*_colours("light"), *sizes, *faces])
    dark, automatic = (_rule(f'html[data-theme="{theme}"]', _colours("dark")) for theme in ("dark", "auto"))
    return f"{light}\n{dark}\n@media (prefers-color-scheme: dark) {{\n{automatic}\n}}\n"


def _colours(theme: str) -> list[str]:
    values = {name: colour[theme] for name, colour in COLOURS.items()} | {"picture": _FILTERS[theme]}
    return [f"--book-{name}: {value}" for name, value in values.items()]


def _rule(selector: str, declarations: list[str]) -> str:
    return f"{selector} {{ {'; '.join(declarations)} }}"
