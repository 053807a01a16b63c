"""Declared attributes for noise that is made in memory."""

from discreet.programme.attributes import Attribute, Attributes, Holder


def own(*names: str) -> Attributes:
    """Variables that are no one else's."""
    return Attributes(dict.fromkeys(names, Attribute(Holder.PERSON)))
