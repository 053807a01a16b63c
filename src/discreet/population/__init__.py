"""Microdata: validation, encoding, record keys and the synthetic census; no protection."""
