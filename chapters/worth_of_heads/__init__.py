"""The worth of H heads: how close several softmax heads come to linear attention, and what several tasks gain."""
