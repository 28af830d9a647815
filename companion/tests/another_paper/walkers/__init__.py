"""The library of this book: random walks on the line."""

from walkers.line import ends as ends
