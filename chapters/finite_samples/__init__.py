"""What n prompts are worth to a trained head: replica theory, training runs, and the best that anybody could do."""
