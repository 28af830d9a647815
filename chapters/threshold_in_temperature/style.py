"""Colours that the figures of this chapter share."""

# Colours of a cold and of a hot head.
COLD_COLOUR, HOT_COLOUR = "C0", "C3"
