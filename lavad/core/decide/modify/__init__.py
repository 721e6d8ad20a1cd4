"""bmod, bswitch, btop, bbot: jobs that are there are changed. May import decide.submit and below."""
