"""Commands that change jobs or the site which are there: selection, one ask, an answer line each.

May import options and client.
"""
