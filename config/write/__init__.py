"""Configurations that lava writes or shows. May import model and text."""
