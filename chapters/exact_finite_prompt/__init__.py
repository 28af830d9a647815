"""Chapter exact_finite_prompt: exact mean output, error and output distribution of a finite Gaussian prompt."""
