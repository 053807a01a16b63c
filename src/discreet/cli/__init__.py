"""The command line."""

import os

# before NumPy is imported: its BLAS would start a thread for each core, which costs more than small matrices do
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# pydantic would look for plugins in every installed package, and show them what is declared
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
