"""Message passing for single-location regression: where it reaches the optimum, and where it does not."""
