"""Training on finite prompts stays near training on infinite ones, for tokens that need not be Gaussian."""
