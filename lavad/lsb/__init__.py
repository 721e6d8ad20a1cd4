"""LSF's own log formats, lsb.events, lsb.acct and lsf.acct: written and read. May import store and core."""
