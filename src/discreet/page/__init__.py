"""Pages for people that need no network: their frame, style, tables and charts; they know nothing of statistics."""
