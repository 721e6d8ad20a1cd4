"""The page and REST: a process of its own beside the master, whose client it is as any command. May import proto and config."""
