"""The synthetic census: plausible records of people, households, families and dwellings; it protects nothing."""

from discreet.synth.generate import Census, generate

__all__ = ["Census", "generate"]
