"""How fast the gradients of a finite prompt's output approach those of its law, in L²(ν) and Hilbert–Schmidt norm."""
