"""How fast a finite Gaussian prompt becomes the infinite one: the exponent, sharp, and why length buys so little."""
