"""Rate at which the output of a finite prompt converges: bound, simulation and exact error."""
