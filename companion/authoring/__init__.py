"""What runs inside a notebook's kernel: publishing, tasks, tracked datasets, checkpoints."""
