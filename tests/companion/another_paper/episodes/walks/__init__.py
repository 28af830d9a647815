"""The distance of random walks, and their returns to the start."""
