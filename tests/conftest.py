"""What all tests share: no deadlines, because kernels compile on first use and machines are noisy."""

from hypothesis import settings

settings.register_profile("discreet", deadline=None)
settings.load_profile("discreet")
