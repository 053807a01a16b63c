"""The page of the table builder: its files and the routes that send them; what it shows comes from the API alone."""
