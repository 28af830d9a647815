"""The Sphinx extension of a book: it shows woven notebooks, and figures with claims, code, data and provenance."""

from companion.site.sphinx.extension import setup as setup
