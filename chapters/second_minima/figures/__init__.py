"""Figures of the chapter second_minima: one module per figure."""
