"""Release folders: manifest, reading, verification."""
