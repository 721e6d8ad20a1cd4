"""A submission put together: command line, script, job file, esub. May import client."""
