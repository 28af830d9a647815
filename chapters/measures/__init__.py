"""A prompt is a probability measure, and attention is the mean of that measure, tilted."""
