"""HTML pages that need no network: style, markup and charts."""
