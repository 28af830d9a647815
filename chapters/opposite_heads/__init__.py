"""Opposite heads: what a pair of softmax heads with opposite keys gains, exactly at every prompt length."""
