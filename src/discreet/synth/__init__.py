"""The synthetic census: plausible records of people, households, families and dwellings."""

from discreet.synth.generate import Census, generate

__all__ = ["Census", "generate"]
