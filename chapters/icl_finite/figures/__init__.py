"""Figures of the chapter icl_finite: one module per figure."""
