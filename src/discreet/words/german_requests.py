"""German for what is said of requests: mistakes in a question, problems, jobs, downloads."""

REQUESTS: dict[str, str] = {}
