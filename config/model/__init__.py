"""The typed records of a configuration, and of what is wrong with one. Imports no other room."""
