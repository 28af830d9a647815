"""How the pictures of this chapter draw what they share."""

SIZE = (8.5, 4.5)
