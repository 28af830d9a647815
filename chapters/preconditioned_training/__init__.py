"""Preconditioned training of a softmax head, and the size of the head at which it ends."""
