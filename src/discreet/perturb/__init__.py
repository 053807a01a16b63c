"""The only place that turns a confidential table into a protected one."""
