"""Chapter icl_infinite: the gradient flow of in-context regression on infinite prompts, its starts and its saddles."""
