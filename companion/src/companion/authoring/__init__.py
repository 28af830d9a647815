"""What runs inside a notebook's kernel: publish, tasks, datasets, checkpoints."""
