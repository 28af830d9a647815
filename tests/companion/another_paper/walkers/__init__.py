"""The science of this book: random walks on the integers."""

from walkers.line import ends as ends
