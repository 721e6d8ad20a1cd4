"""A cluster on one machine (``lava up``): its folder, daemons, certificates and shells."""
