"""What every parameter of LSF's files does here, in a line: behind docs/reference/parameters.md and ``lava explain``.

Those that lava alone has stand in docs/configuration.md. May import nothing.
"""
