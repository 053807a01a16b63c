"""The table builder: answering questions with protected tables, under the rules of a programme."""
