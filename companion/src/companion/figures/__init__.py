"""Published figures: record, files, tables, drawing, style, comparison."""
