"""Reading and storing: files, databases, the secret, atomic folders, durable tables."""
