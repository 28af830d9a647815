"""Figures of the chapter softmax_variations: one module per figure."""
