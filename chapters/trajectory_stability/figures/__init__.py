"""Figures of the chapter trajectory_stability: one module per figure."""
