"""How fast the output of a finite prompt approaches that of its law: bound, simulation and exact curve side by side."""
