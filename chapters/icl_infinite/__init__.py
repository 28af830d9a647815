"""In-context regression on infinite prompts: the gradient flow of [BB26, Thm 5.1], its start and its saddles."""
