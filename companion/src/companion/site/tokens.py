"""The design of the pages in one place: colours, sizes and faces. `docs/site-design.md` says how they are used.

The background, the ink and the colours of sources are those of the figures, so that a picture has no visible frame.
`css()` writes the tokens as custom properties; the style sheets name no other colour, except that of search hits.
"""

from companion.figures.style import FAINT, INK, PALETTES, PAPER

THEMES = ("light", "dark")
_BLUE, _ORANGE, _GREEN, _, _AMBER, _ = range(6)


def _of_palette(place: int) -> dict[str, str]:
    return {theme: PALETTES[theme][place] for theme in THEMES}


# By name: the colour in the light and in the dark theme.
COLOURS: dict[str, dict[str, str]] = {
    "paper": dict(PAPER),
    "ink": dict(INK),
    "quiet": {"light": "#57606a", "dark": "#a3abb5"},
    "line": dict(FAINT),
    "surface": {"light": "#f5f6f8", "dark": "#1c1e21"},
    "link": {"light": "#0a4a9e", "dark": "#8ec5ff"},
    "holds": {"light": "#00734f", "dark": _of_palette(_GREEN)["dark"]},
    "fails": {"light": "#b34700", "dark": _of_palette(_ORANGE)["dark"]},
    "focus": _of_palette(_ORANGE),
    "from-paper": _of_palette(_BLUE),
    "derived": _of_palette(_GREEN),
    "heuristic": _of_palette(_AMBER),
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
    """Return the tokens as a style sheet: `--book-<colour>`, `--size-<size>` and `--face-<face>`.

    The light colours also apply without scripts, unless the system prefers dark.
    """
    sizes = [f"--size-{name}: {size}" for name, size in SIZES.items()]
    faces = [f"--face-{name}: {face}" for name, face in FACES.items()]
    dark = _rule('html[data-theme="dark"]', _colours("dark"))
    automatic = _rule('html[data-theme="auto"]', _colours("dark"))
    return "\n".join(
        [
            _rule(":root", [*_colours("light"), *sizes, *faces]),
            dark,
            f"@media (prefers-color-scheme: dark) {{\n{automatic}\n}}\n",
        ]
    )


def _colours(theme: str) -> list[str]:
    return [f"--book-{name}: {colour[theme]}" for name, colour in COLOURS.items()]


def _rule(selector: str, declarations: list[str]) -> str:
    return f"{selector} {{ {'; '.join(declarations)} }}"
