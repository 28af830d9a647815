"""Claims and numbers for readers: formulas between dollar signs are set, all other characters stay unchanged."""

import pytest

from companion.figures.plain_math import as_plain_text, bound, caption_as_plain_text, fault, number
from companion.figures.record import Claim

ODD = """a*b*c _x_ **d** __e__ `f` [g](h) {i}`j` <script>k</script> & &amp; $l$ \\m | # n ~o~ 'p' "q" snake_case <b"""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (9.4111e-16, "9.4×10⁻¹⁶"),
        (-9.68e-14, "−9.7×10⁻¹⁴"),
        (1e-10, "10⁻¹⁰"),
        (-1e-10, "−10⁻¹⁰"),
        (21477900.0, "2.1×10⁷"),
        (0.00025, "0.00025"),
        (0.93904, "0.939"),
        (0.0, "0"),
        (float("inf"), "∞"),
        (-float("inf"), "−∞"),
        (float("nan"), "not a number"),
        (None, "—"),
    ],
)
def test_numbers_are_formatted_for_readers(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("relation", "expected", "sentence"),
    [
        ("≤", 2.0, "above 5.77"),
        ("≥", 1.0, "below −2.77"),
        ("=", 0.0, "beyond ±3.77"),
        ("=", 1.0, "more than 3.77 away from 1"),
    ],
)
def test_a_verdict_names_its_threshold(relation, expected, sentence):
    numbers = {"measured": expected, "expected": expected, "tolerance": 3.77, "std_error": None}
    texts = {"id": "a", "statement": "A.", "source": "ours"}
    claim = Claim.judged(relation=relation, **numbers, **texts, alternative=("b", 99.0))
    assert bound(claim) == f"would fail {sentence}"
    assert bound(claim.model_copy(update={"holds": False})) == f"fails {sentence}"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        (r"$e^{-1/2}$ of $L^{-12}$ and $e^{ν²}$ of $q_k$", "e^(−1/2) of L⁻¹² and e^(ν²) of qₖ"),
        (r"$R_∞$, $2\ln L$ at \$5 or $x < y$", "R_∞, 2 ln L at $5 or x < y"),
        ("at $L = 10^{12}$ or L = 10", "at L = 10¹² or L = 10"),
        (r"$e^{τ²}/\ln L$, $2 ln L$ along $k*$, not v*", "e^(τ²)/ln L, 2 ln L along k*, not v*"),
        (r"of $∇_U$ and $\hat q_k$, $V(m + ΓUz)$", "of ∇_U and q̂ₖ, V(m + ΓUz)"),
        (r"$λ_{max}$, $R_{\mathrm{Bayes}}$, $e^{-t_k^2}$", "λₘₐₓ, R_(Bayes), e^(−tₖ²)"),
        (ODD, ODD.replace("$l$", "l")),
    ],
)
def test_a_sentence_as_plain_text_has_raised_and_lowered_characters(text, plain):
    """An exponent with a character that cannot be raised keeps its sign; text outside of formulas is unchanged."""
    assert as_plain_text(text) == plain
    assert text == ODD or fault(text) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            r"at most $\frac{1}{2}$",
            r"has `\frac` in `$\frac{1}{2}$`, which a formula of one line cannot show; write `a/b`",
        ),
        (r"$\sum_i p_i$", "write the sign itself, such as `≤` or `∑`, or words"),
        (
            "it costs $5",
            r"a dollar sign without a partner: a formula is between two of them, and the sign itself is `\$`",
        ),
        ("$10^12$", "an exponent or index without braces in `$10^12$`; write it as in `10^{12}`"),
        ("$L^-1$", "without braces"),
        ("$x_{a$", "a brace without a partner in `$x_{a$`"),
    ],
)
def test_a_formula_that_cannot_be_shown_has_a_reason(text, reason):
    assert reason in str(fault(text))


@pytest.mark.parametrize(
    ("caption", "text"),
    [
        (r"At $\tau=\sqrt{2\ln L}$ the *first* {numref}`figure <fig-one>`", "At τ=√(2 ln L) the first figure"),
        (r"$\hat\tau$, $\hat{q}_k$ and $L^{-0.6}$ fall like $1/\sqrt L$", "τ̂, q̂ₖ and L^(−0.6) fall like 1/√L"),
        (r"$\nabla_U$, $\lambda_{\max}$, $\|\Sigma\|^2\le1-P$", "∇_U, λₘₐₓ, ‖Σ‖²≤1−P"),
    ],
)
def test_a_caption_becomes_plain_text(caption, text):
    assert caption_as_plain_text(caption) == text
