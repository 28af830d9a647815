"""How the pictures of this chapter draw what they share."""

WIDE = (9.5, 4.6)
DASHES = {"softmax": "-", "sigmoid": "--", "linear": ":"}
TITLES = {"spiked": "spiked model", "max": "max model"}
