"""Computing on Spark; nothing here imports pyspark before a session is requested."""
