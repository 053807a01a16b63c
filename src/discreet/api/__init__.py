"""The library for notebooks: populations, cubes and noise as objects, and every command as a function."""
