"""Figures of the chapter icl_infinite: one module per figure."""
