"""The shepherd: one part on this host from preparing to gone, as its user. May import all of starter but supervisor."""
