"""The site's configuration in LSF's files: read, checked, typed. Imports nothing of lava.

``lsfconf.py`` stands outside the rooms, since every command waits for it. Rooms from the bottom: model, text, values, check,
then read, write and programs (which the site has, as egroup); ``describe.py`` says what a parameter is.
"""
