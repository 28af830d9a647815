"""Build the site: Jupyter Book, executed notebooks, the PDF, and the Sphinx extension."""
