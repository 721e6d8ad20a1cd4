"""bmod, bswitch, btop, bbot: changes of live jobs. May import decide.submit and below."""
