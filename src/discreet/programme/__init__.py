"""What a user declares: variables, codelists, cubes, noise, gates; nothing runs here."""
