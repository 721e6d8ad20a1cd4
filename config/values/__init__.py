"""One parser for each form of value, and the tables from parameter to parser. May import text, model and ``lsfconf.py``."""
