"""What the pictures of this chapter share."""

SIZE = (8.0, 4.5)
