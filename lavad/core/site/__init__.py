"""Records of the site: configuration, hosts, rights, limits, advance reservations, pend reasons. May import job and lang."""
