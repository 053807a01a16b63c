"""The command line; it shows what the library returns and owns no method."""
