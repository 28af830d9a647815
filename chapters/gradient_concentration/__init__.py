"""Rate at which the gradients of a finite prompt converge, in L²(ν) and Hilbert–Schmidt norm."""
