"""The comparison of softmax with other activations, for other signals, random lengths and strong signals."""
