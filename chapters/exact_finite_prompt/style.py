"""How the pictures of this chapter draw what they share."""

SIZE = (8.0, 4.5)
