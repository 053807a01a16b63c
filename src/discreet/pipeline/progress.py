"""Who is told where the whole path stands: the same as for each of its steps; it adds nothing."""

from discreet.engine.progress import Progress, Quiet

__all__ = ["Progress", "Quiet"]
