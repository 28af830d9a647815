"""Names that the figures of this chapter share."""

# Colours of a cold and of a hot head.
COLD_COLOUR, HOT_COLOUR = "C0", "C3"


def power_of_ten(decade: int) -> str:
    """Return 10 to the power `decade` as plain text, such as 10⁴."""
    return "10" + str(decade).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
