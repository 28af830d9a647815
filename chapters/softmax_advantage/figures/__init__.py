"""Figures of the chapter softmax_advantage: one module per figure."""
