"""Figures of the chapter which_kernel: one module per figure."""
