"""Figures of the chapter gradient_concentration: one module per figure."""
