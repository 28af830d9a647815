"""Figures of the chapter preconditioned_training: one module per figure."""
