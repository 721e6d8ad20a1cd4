"""docs/reference: pages made of the code's own tables. ``make reference`` writes them; a test says when they are out of date.

Each module makes a page: ``page()`` gives its text. May import every other room; nothing imports it.
"""
