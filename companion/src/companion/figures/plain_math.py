"""Format claims and numbers for readers: formulas in a plain sentence, powers of ten, verdicts.

A claim is plain text with formulas between dollar signs, as in captions: `the error falls like $L^{-1/2}$`. It has
one line: letters, which are italic, names of functions, signs, `^` and `_` with one character or a group in braces, and
the commands of `SYMBOLS`, `ACCENTS` and `\\sqrt`. All other text is shown as it is; a dollar sign is `\\$`.
"""

import math
import re
import unicodedata
from collections.abc import Iterator
from typing import Literal

from companion.figures.record import Claim, WithheldClaim

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
_LETTER = "A-Za-zĝŷα-ωℓ"
# Names of functions, which are upright, with or without a backslash.
FUNCTIONS = {
    *("arg", "cos", "coth", "Cov", "det", "erf", "exp", "Hess", "inf", "ln", "log", "max", "min", "sin", "sup", "tanh"),
    *("tr", "Var"),
}
UPRIGHT = r"\\(?:mathrm|mathbb|text|operatorname)\{"
_GROUP = r"\{((?:[^{}]|\{[^{}]*\})*)\}"
# Parts of a formula after its commands became characters: an exponent, an index, upright text, letters, a group.
PIECE = re.compile(
    rf"\^(?:{_GROUP}|(.))|_(?:{_GROUP}|(.))|{UPRIGHT}([^{{}}]*)\}}|([{_LETTER}][{_LETTER}\u0300-\u036f]*)|[{{}}]"
)
FORMULAS = re.compile(r"(?<!\\)(\$(?:[^$\\]|\\.)+\$)")
# A role with a title and a target, or with a target only.
ROLE = re.compile(r"\{[\w:+-]+\}`(?:([^`<]+?)\s*<[^`>]*>|([^`]*))`")
EMPHASIS = re.compile(r"(?<![\w*])\*([^*\s](?:[^*]*[^*\s])?)\*(?![\w*])")
# TeX: accents, roots and commands. A command without a symbol is shown as its name, as in `\ln L`.
ACCENTS = {"hat": "\u0302", "tilde": "\u0303", "bar": "\u0304"}
SYMBOLS = {
    **{name: unicodedata.lookup(f"GREEK SMALL LETTER {name}") for name in GREEK},
    **{name.title(): unicodedata.lookup(f"GREEK CAPITAL LETTER {name}") for name in GREEK},
    **{"lambda": "λ", "Lambda": "Λ", "infty": "∞", "nabla": "∇", "times": "×", "cdot": "·", "pm": "±", "to": "→"},
    **{"le": "≤", "ge": "≥", "ne": "≠", "approx": "≈", "sim": "∼", "in": "∈", "ell": "ℓ", "langle": "⟨", "rangle": "⟩"},
    **{"|": "‖", ",": " ", ";": " ", " ": " ", "!": "", "mathcal": "", "mathrm": "", "mathbf": ""},
}
ACCENT = re.compile(rf"\\({'|'.join(ACCENTS)})(?:\{{(.+?)\}}|\s*(\\[A-Za-z]+|\w))")
ROOT = re.compile(r"\\sqrt(?:\{([^{}]*)\}|\s*(\\[A-Za-z]+|\w))")
COMMAND = re.compile(rf"(?<=([\w)]))?(?!{UPRIGHT})\\([A-Za-z]+|.)\s*")
# What to write instead of a command that a formula of one line cannot have.
INSTEAD = {"frac": "`a/b`", "left": "the bracket alone", "right": "the bracket alone"}


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


def bound(claim: Claim) -> str:
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


def withheld_because(claim: WithheldClaim) -> str:
    """Return why a statement is not claimed, without a full stop; formulas are between dollar signs."""
    return f"not claimed here: {claim.reason.rstrip('.')}"


def split_formulas(text: str) -> Iterator[tuple[Kind, str]]:
    """Split `text` into parts that are set alike; yield the kind and the text of each.

    The text of an exponent or an index is a formula itself, which `split_formula` splits.
    """
    for place, part in enumerate(FORMULAS.split(text)):
        if place % 2:
            yield from split_formula(part[1:-1])
        else:
            yield "text", part.replace(r"\$", "$")


def split_formula(tex: str) -> Iterator[tuple[Kind, str]]:
    """Split a formula, without its dollar signs, like `split_formulas`."""
    formula, end = _unicode(tex), 0
    for match in PIECE.finditer(formula):
        yield "text", formula[end : match.start()]
        end = match.end()
        up_group, up, down_group, down, upright, letters = match.groups()
        if match[0].startswith("^"):
            yield "superscript", up or up_group
        elif match[0].startswith("_"):
            yield "subscript", down or down_group
        elif letters and letters not in FUNCTIONS:
            yield "variable", letters
        else:
            yield "text", letters or upright or ""
    yield "text", formula[end:]


def fault(text: str) -> str | None:
    """Return why the formulas of a plain sentence cannot be shown and what to write instead, or None if they can."""
    if "$" in FORMULAS.sub("", text).replace(r"\$", ""):
        return "has a dollar sign without a partner: a formula is between two of them, and the sign itself is `\\$`"
    for formula in FORMULAS.findall(text):
        tex = re.sub(UPRIGHT, "{", formula[1:-1])
        for name in re.findall(r"\\([A-Za-z]+|.)", tex):
            if name not in {*SYMBOLS, *ACCENTS, *FUNCTIONS, "sqrt"}:
                instead = INSTEAD.get(name, "the sign itself, such as `≤` or `∑`, or words")
                return f"has `\\{name}` in `{formula}`, which a formula of one line cannot show; write {instead}"
        if re.search(r"[\^_](?:\d\d|[-−(]|\s|$)", tex):
            return f"has an exponent or index without braces in `{formula}`; write it as in `10^{{12}}`"
        if re.search("[{}]", re.sub(_GROUP, "", tex)):
            return f"has a brace without a partner in `{formula}`"
    return None


def as_plain_text(text: str) -> str:
    """Return `text` with its exponents and indices as Unicode characters, or after `^` and `_` where there are none."""
    return "".join(_plain(kind, part) for kind, part in split_formulas(text))


def caption_as_plain_text(caption: str) -> str:
    """Return a caption in MyST as text without markup: formulas in Unicode characters, roles as their text."""
    return "".join(
        as_plain_text(part if place % 2 else _without_markup(part))
        for place, part in enumerate(FORMULAS.split(caption))
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
    if kind in ("text", "variable"):
        return part
    part = "".join(_plain(*piece) for piece in split_formula(part))
    alphabet, sign = (RAISED, "^") if kind == "superscript" else (LOWERED, "_")
    if all(letter in alphabet for letter in part):
        return "".join(alphabet[letter] for letter in part)
    return f"{sign}{part}" if len(part) == 1 else f"{sign}({part})"


def _without_markup(text: str) -> str:
    return EMPHASIS.sub(r"\1", ROLE.sub(lambda role: role[1] or role[2], text))
