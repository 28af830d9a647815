"""How the pictures of this chapter draw what they share."""

from companion.figures.style import power_of_ten

SIZE = (8.0, 4.5)


def tokens(length: int | float) -> str:
    """`L = 10⁴` for a power of ten, the plain number otherwise."""
    return f"$L={power_of_ten(length)}$"
