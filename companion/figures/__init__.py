"""Published figures: tables, claims, files, rendering, style and comparison."""
