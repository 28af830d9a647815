"""In-context regression on finite prompts: training by exact flow and by stochastic descent, and what length buys."""
