"""The only package that turns a confidential table into a protected one."""
