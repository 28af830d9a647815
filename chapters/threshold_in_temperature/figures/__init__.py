"""Figures of the chapter threshold_in_temperature: one module per figure."""
