"""The page of the table builder: its files and the routes that send them; all that it shows comes from the API."""
