"""Format claims and numbers for readers: powers of ten, exponents, indices and variables in a plain sentence.

A claim is text without markup. Exponents (`^`), indices (`_`) and single letters are set as mathematics, on the site
and in the report of a custom run; every other character is shown as it is.
"""

import html
import math
import re
import unicodedata
from collections.abc import Iterator
from typing import Literal

from companion.figures.record import ClaimRecord, WithheldRecord

Kind = Literal["text", "variable", "superscript", "subscript"]

# The mark of a withheld claim, where others have their verdict.
WITHHELD = "–"
SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
# Characters that exist as superscripts and as subscripts.
RAISED = dict(
    zip("0123456789+-−=()abcdeghijklmnoprstuvwxyzTVβγ", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ᵃᵇᶜᵈᵉᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻᵀⱽᵝᵞ", strict=True)
)
GREEK = (
    *("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "kappa", "mu", "nu", "xi", "pi", "rho"),
    *("sigma", "tau", "phi", "chi", "psi", "omega"),
)
LOWERED = dict(zip("0123456789+-−=()aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉₊₋₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ", strict=True))
TAGS = {"variable": "i", "superscript": "sup", "subscript": "sub"}
_LETTER = "A-Za-zα-ωΑ-Ω"
_GROUP = r"\{(?P<%s_braces>[^{}]*)\}|\((?P<%s_brackets>(?:[^()]|\([^()]*\))*)\)"
FORMULA = re.compile(
    # an exponent after its base: L^{-1/2}, e^(ν²), L^β(H), 10^12
    rf"(?<=[\w)\]|‖])\^(?:{_GROUP % ('up', 'up')}|(?P<up_plain>[{_LETTER}]\([^()]*\)|[-−]?\w+))"
    # an index of one character, on a letter that does not end a name in code: q_k, ∇_V, ∇_{U}, R_∞
    rf"|(?<![a-z_0-9])(?P<base>[{_LETTER}∇])_(?:\{{(?P<down_braces>[^{{}}]*)\}}|(?P<down_plain>[{_LETTER}0-9∞](?![a-z_])))"
    # a single letter is a variable, except the words `a`, `A` and `I`, and the E of an expectation
    rf"|(?<![{_LETTER}0-9_.'’-])(?P<variable>[b-zB-DF-HJ-Zα-ωΑ-Ω]|[aA](?=\s*[=<>≤≥≠√^*+/]))(?![{_LETTER}0-9_'’]|[-.][{_LETTER}0-9])"
    # a product of variables, recognised by a Greek letter or by upper and lower case: VΓUz, sξ, uI, Vm
    rf"|(?<![{_LETTER}0-9_])(?P<product>(?=[A-Za-z]{{0,4}}[α-ωΑ-Ω])[{_LETTER}]{{2,5}}|[a-z][A-Z]|[A-Z][mz])"
    rf"(?![{_LETTER}0-9_])"
)
FORMULAS = re.compile(r"(\$[^$]+\$)")
# A role with a title and a target, or with a target only.
ROLE = re.compile(r"\{[\w:+-]+\}`(?:([^`<]+?)\s*<[^`>]*>|([^`]*))`")
EMPHASIS = re.compile(r"(?<![\w*])\*([^*\s](?:[^*]*[^*\s])?)\*(?![\w*])")
# TeX in headlines: accents, roots and commands. A command without a symbol is the name of a function, as in `\ln L`.
ACCENTS = {"hat": "\u0302", "tilde": "\u0303", "bar": "\u0304"}
SYMBOLS = {
    **{name: unicodedata.lookup(f"GREEK SMALL LETTER {name}") for name in GREEK},
    **{name.title(): unicodedata.lookup(f"GREEK CAPITAL LETTER {name}") for name in GREEK},
    **{"lambda": "λ", "Lambda": "Λ", "infty": "∞", "nabla": "∇", "times": "×", "cdot": "·", "pm": "±", "to": "→"},
    **{"le": "≤", "ge": "≥", "ne": "≠", "approx": "≈", "sim": "∼", "in": "∈", "ell": "ℓ", "langle": "⟨", "rangle": "⟩"},
    **{"|": "‖", ",": " ", ";": " ", " ": " ", "!": "", "mathcal": "", "mathrm": "", "mathbf": "", "operatorname": ""},
}
ACCENT = re.compile(rf"\\({'|'.join(ACCENTS)})(?:\{{(.+?)\}}|\s*(\\[A-Za-z]+|\w))")
ROOT = re.compile(r"\\sqrt(?:\{([^{}]*)\}|\s*(\\[A-Za-z]+|\w))")
COMMAND = re.compile(r"(?<=([\w)]))?\\([A-Za-z]+|.)\s*")


def number(value: float | None) -> str:
    """Return a number as text for readers, such as `9.4×10⁻¹⁶`: four digits, or two with a power of ten."""
    if value is None:
        return "—"
    if not math.isfinite(value):
        return {math.inf: "∞", -math.inf: "−∞"}.get(value, "not a number")
    text = f"{value:.4g}"
    if "e" in text:
        mantissa, _, exponent = f"{value:.1e}".partition("e")
        power = f"10{str(int(exponent)).translate(SUPERSCRIPTS)}"
        text = {"1.0": power, "-1.0": f"-{power}"}.get(mantissa, f"{mantissa}×{power}")
    return text.replace("-", "−")


def bound(claim: ClaimRecord) -> str:
    """Return in words from which value on a claim fails."""
    expected, tolerance = claim.expected, claim.tolerance
    fails = "would fail" if claim.holds else "fails"
    match claim.relation:
        case "≤":
            return f"{fails} above {number(expected + tolerance)}"
        case "≥":
            return f"{fails} below {number(expected - tolerance)}"
        case "=":
            if expected:
                return f"{fails} more than {number(tolerance)} away from {number(expected)}"
            return f"{fails} beyond ±{number(tolerance)}"


def withheld_because(claim: WithheldRecord) -> str:
    """Return why a statement is not claimed, without a full stop."""
    return f"not claimed here: {claim.reason.rstrip('.')}"


def split_formulas(text: str) -> Iterator[tuple[Kind, str]]:
    """Split `text` into parts that are set alike; yield the kind and the text of each, without `^`, `_`, braces."""
    end = 0
    for match in FORMULA.finditer(text):
        yield "text", text[end : match.start()]
        end = match.end()
        parts = match.groupdict()
        up = next((parts[part] for part in ("up_braces", "up_brackets", "up_plain") if parts[part] is not None), None)
        if up is not None:
            yield "superscript", up.replace("-", "−")
        elif parts["base"]:
            yield ("variable" if parts["base"] != "∇" else "text"), parts["base"]
            yield "subscript", parts["down_braces"] if parts["down_braces"] is not None else parts["down_plain"]
        else:
            yield "variable", match[0]
    yield "text", text[end:]


def as_html(text: str) -> str:
    """Return `text` as HTML, with its formulas set and every other character escaped."""
    return "".join(
        f"<{TAGS[kind]}>{html.escape(part)}</{TAGS[kind]}>" if kind in TAGS else html.escape(part)
        for kind, part in split_formulas(text)
    )


def as_plain_text(text: str) -> str:
    """Return `text` with its exponents and indices as Unicode characters, or after `^` and `_` where there are none."""
    return "".join(_plain(kind, part) for kind, part in split_formulas(text))


def caption_as_plain_text(caption: str) -> str:
    """Return a caption in MyST as text without markup: formulas in Unicode characters, roles as their text."""
    return "".join(
        as_plain_text(_unicode(part[1:-1])) if part.startswith("$") and len(part) > 1 else _without_markup(part)
        for part in FORMULAS.split(caption)
    )


def _unicode(tex: str) -> str:
    """Return TeX with characters for its commands; exponents and indices stay as they are."""
    tex = ACCENT.sub(lambda accent: f"{COMMAND.sub(_symbol, accent[2] or accent[3])}{ACCENTS[accent[1]]}", tex)
    tex = ROOT.sub(lambda root: f"√({root[1]})" if root[1] and len(root[1]) > 1 else f"√{root[1] or root[2]}", tex)
    return COMMAND.sub(_symbol, tex).replace(" }", "}").replace("'", "′").replace("-", "−").strip()


def _symbol(command: re.Match[str]) -> str:
    before, name = command[1], command[2]
    return SYMBOLS.get(name, f"{' ' if before else ''}{name} ")


def _plain(kind: Kind, part: str) -> str:
    if kind not in ("superscript", "subscript"):
        return part
    alphabet, sign = (RAISED, "^") if kind == "superscript" else (LOWERED, "_")
    if all(letter in alphabet for letter in part):
        return "".join(alphabet[letter] for letter in part)
    return f"{sign}{part}" if len(part) == 1 else f"{sign}({part})"


def caption_as_html(caption: str) -> str:
    """Return a caption in MyST as HTML for a page without scripts: formulas as MathML, roles as their text."""
    return "".join(
        _formula(part[1:-1]) if part.startswith("$") and len(part) > 1 else _words(part)
        for part in FORMULAS.split(caption)
    )


def _formula(tex: str) -> str:
    try:  # docutils is installed with Sphinx, which builds the site and which a run does not need
        from docutils.utils.math import MathError
        from docutils.utils.math.latex2mathml import tex2mathml
    except ImportError:
        return f"<code>{html.escape(tex)}</code>"
    # docutils cannot read `\frac12`
    tex = re.sub(r"\\frac(\d)(\d)", r"\\frac{\1}{\2}", tex)
    try:
        return re.sub(r"\n\s*", "", tex2mathml(tex, as_block=False))
    except MathError:
        return f"<code>{html.escape(tex)}</code>"


def _words(text: str) -> str:
    return EMPHASIS.sub(r"<em>\1</em>", html.escape(_without_roles(text), quote=False))


def _without_markup(text: str) -> str:
    return EMPHASIS.sub(r"\1", _without_roles(text))


def _without_roles(text: str) -> str:
    return ROLE.sub(lambda role: role[1] or role[2], text)
