"""Figures of the chapter trained_at_other_lengths: one module per figure."""
