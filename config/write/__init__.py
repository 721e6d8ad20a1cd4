"""Configurations that lava writes or shows. May import values and below."""
