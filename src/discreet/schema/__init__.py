"""What a user declares: variables, codelists, cubes, programmes; it runs nothing."""
