"""The site's configuration in LSF's files: read, checked, typed. Imports nothing of lava.

Rooms from the bottom: model, text, values, check, then read and write.
"""
