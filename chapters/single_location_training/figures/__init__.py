"""Figures of the chapter single_location_training: one module per figure."""
