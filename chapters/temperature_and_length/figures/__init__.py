"""Figures of the chapter temperature_and_length: one module per figure."""
