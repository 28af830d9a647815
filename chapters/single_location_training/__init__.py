"""Training a single head by projected gradient descent: what its two vectors learn, and from where they cannot."""
