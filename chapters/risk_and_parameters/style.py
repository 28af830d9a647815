"""Names of lengths in the pictures of this chapter."""

from companion.figures.style import power_of_ten


def tokens(length: int | float) -> str:
    """Return `L = 10⁴` for a power of ten and the plain number otherwise."""
    return f"$L={power_of_ten(length)}$"
