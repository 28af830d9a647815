"""What a finite Gaussian prompt does, exactly: its mean, its error and its law, at any length."""
