"""Figures of the chapter output_concentration: one module per figure."""
