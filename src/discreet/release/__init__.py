"""Writing and verifying what is published; it accepts protected tables only."""
