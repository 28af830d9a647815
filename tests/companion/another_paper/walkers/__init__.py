"""The science of this book: walkers on the line."""

from walkers.line import ends as ends
