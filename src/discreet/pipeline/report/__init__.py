"""The report on a release: a confidential page for the office and a public one for those who use the tables."""
