"""From a start order to what the starter needs: command, environment, files, frameworks.

May import monitor, core and starter.
"""
