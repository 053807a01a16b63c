"""Scripts that compute the tables and figures of five papers anew and set them beside the printed ones."""
