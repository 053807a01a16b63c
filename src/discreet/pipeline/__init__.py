"""The whole path from a programme to a release, in one direction."""
