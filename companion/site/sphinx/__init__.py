"""The Sphinx extension of the book: executed copies behind clean sources, figures with all that belongs to them."""

from companion.site.sphinx.extension import setup as setup
