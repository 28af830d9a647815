"""Names of heads and experiments in sentences."""

import re


def in_sentence(name: str) -> str:
    """Return the name with its sharpness as a formula: `erf, $λ = 0.1$` for `erf, λ = 0.1`."""
    return re.sub(r"λ( = [\d.]+)?", r"$\g<0>$", name)
