"""Chapter sharp_rates: the exact exponent with which the error of a finite prompt falls with its length."""
