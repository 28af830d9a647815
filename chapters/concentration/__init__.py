"""Rates at which the output and the gradients of a finite prompt converge: bounds, simulation and exact errors."""
