"""What every option does, in a line: behind ``--help``, the manual pages and docs/reference/options.md.

The texts stand by command in ``submitting`` and ``others``; ``lookup`` finds them. May import the registry of commands and the
options of bsub. Loaded only where help is asked for, but for ``usages``.
"""
